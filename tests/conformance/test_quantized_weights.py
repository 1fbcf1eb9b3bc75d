"""Weights of 8 and 4 bits: the instruments that rounding to nearest keeps, and planted bugs."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from eager_engines import ENGINES
from judging import instruments, wrong_tokens

from transformist.conformance import suite_files, write

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"

FAMILIES = ("gpt2", "llama", "bert")

KEPT = ("sort", "marker", "place", "vocabulary")
"""The instruments whose weights are kept."""

KEPT_WITH_POSITIONS = "recall"
"""The instrument whose weights are kept in a class with a table of positions."""

FORMATS = {"int8": (127, None), "int4": (7, 32)}
"""The largest whole number of a format, and the numbers that share a scale; None for a row."""


def is_transposed(name):
    """True for a matrix of GPT-2, which is stored as (in, out)."""
    return name.startswith("transformer.h.")


class Quantized:
    """Whole numbers with a scale for each row, or for each group of 32 numbers of a row."""

    number_format = "int8"

    def loaded(self, name, tensor):
        if tensor.ndim < 2:
            return super().loaded(name, tensor)
        rows = tensor.T if is_transposed(name) else tensor
        made = self.read_back(*quantized(rows, *FORMATS[self.number_format])).reshape(rows.shape)
        return super().loaded(name, made.T if is_transposed(name) else made)

    def read_back(self, whole, scale):
        return whole * scale


def quantized(rows, most, size):
    groups = rows.astype(np.float32).reshape(-1, size or rows.shape[-1])
    scale = abs(groups).max(1, keepdims=True) / np.float32(most)
    return np.round(groups / np.where(scale, scale, np.float32(1))), scale


class NextScale(Quantized):
    """The scale of the next row."""

    def read_back(self, whole, scale):
        return whole * np.roll(scale, -1, axis=0)


class ZeroPoint(Quantized):
    """Numbers stored from 1 on, with a zero point that is not subtracted."""

    def read_back(self, whole, scale):
        return (whole + FORMATS[self.number_format][0] + 1) * scale


class SwappedNibbles(Quantized):
    """The two numbers of a byte, in the other order."""

    def read_back(self, whole, scale):
        return whole.reshape(len(whole), -1, 2)[:, :, ::-1].reshape(whole.shape) * scale


def engine(family, bug, number_format):
    return type(bug.__name__, (bug, ENGINES[family]), {"number_format": number_format})


@pytest.fixture(scope="module")
def suites(tmp_path_factory):
    """Suites of the instruments that are kept."""
    base = tmp_path_factory.mktemp("quantized")
    with pytest.MonkeyPatch.context() as patch:
        few = {name: suite_files.INSTRUMENTS[name] for name in (*KEPT, KEPT_WITH_POSITIONS)}
        patch.setattr(suite_files, "INSTRUMENTS", few)
        for family in FAMILIES:
            write(base / family, family, 40)
    return {family: instruments(base / family) for family in FAMILIES}


@cache
def tensors_of(family, name):
    made = suite_files.INSTRUMENTS[name].make(family, 32)
    return safetensors.numpy.load(made.files["model.safetensors"])


def is_kept(family, name, number_format):
    """True if every weight of an instrument is kept, bit for bit."""
    for tensor_name, tensor in tensors_of(family, name).items():
        if tensor.ndim < 2:
            continue
        rows = tensor.T if is_transposed(tensor_name) else tensor
        most, size = FORMATS[number_format]
        if size and rows.shape[-1] % size:
            return False
        whole, scale = quantized(rows, most, size)
        if ((whole * scale).reshape(rows.shape) != rows).any():
            return False
    return True


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("number_format", FORMATS)
def test_the_page_names_the_instruments_whose_weights_are_kept(family, number_format):
    (line,) = re.findall(
        r"represent every weight of ([^.]*?) of\sGPT-2 and BERT, exactly", PAGE.read_text()
    )
    assert re.findall(r"`(\w+)`", line) == [*KEPT, KEPT_WITH_POSITIONS]
    own = [name for name, each in suite_files.INSTRUMENTS.items() if family in each.families]
    kept = [name for name in own if is_kept(family, name, number_format)]
    assert family == "llama" or KEPT_WITH_POSITIONS in kept
    assert {*kept} - {KEPT_WITH_POSITIONS} == {*own} & {*KEPT}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("number_format", FORMATS)
def test_right_engines_give_the_known_answers(suites, family, number_format):
    for each in suites[family]:
        made = engine(family, Quantized, number_format).read(each.directory)
        assert not any(wrong_tokens(made, each.prompts).values()), each.name


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("number_format", FORMATS)
@pytest.mark.parametrize("bug", [NextScale, ZeroPoint, SwappedNibbles])
def test_wrong_ones_are_found(suites, family, number_format, bug):
    found = [
        each.name
        for each in suites[family]
        for made in [engine(family, bug, number_format).read(each.directory)]
        if wrong_tokens(made, each.prompts, ["alone"])["alone"]
    ]
    # In BERT norms subtract the mean: a number added to every weight of a row changes no answer.
    assert bool(found) == (bug is not ZeroPoint or (family, number_format) != ("bert", "int8"))
