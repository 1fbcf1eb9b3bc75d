"""Margins in the files of a suite against those of the eager engines, which share no code."""

import json

import numpy as np
import pytest
from eager_engines import ENGINES, rounded
from planted_suites import suite_directory

from transformist.conformance.rounding_margins import CACHES, FORMATS, LARGEST

BY_FORMULAS = ("norm", "activation", "depth", "heads")
"""Instruments of a number that every rounding changes; two evaluations change it differently."""


def exact(family):
    """The engine in float64, with rotations of float64 angles."""

    class Exact(ENGINES[family]):
        def loaded(self, name, tensor):
            return tensor.astype(np.float64)

        def round(self, x):
            return x

        def angles(self, places):
            half = self.size // 2
            frequencies = self.theta ** -(np.arange(half) / half)
            return places.astype(np.float64)[:, None, :, None] * frequencies

    return Exact


def in_format(family, name):
    """The function that opens a directory with numbers, or keys and values, of a format."""
    if name in FORMATS:
        return lambda directory: ENGINES[family].read(directory, name)

    class Cached(ENGINES[family]):
        def stored(self, x):
            return rounded(x, name.removesuffix(" cache"))

    return Cached.read


def measured(logits, changed, right):
    """The least lead of each right token in units of its change."""
    leads = [np.take_along_axis(each, right[:, None], 1) - each for each in (logits, changed)]
    with np.errstate(all="ignore"):
        change = abs(leads[1] - leads[0])
        known = np.where(np.isfinite(change), np.minimum(leads[0] / change, LARGEST), 0.0)
    known[np.arange(len(right)), right] = LARGEST
    return known.min(1)


def margins(family):
    """Margins of every fourth prompt by instrument and format, as pairs: measured, in the file."""
    found = {}
    for directory in sorted(
        each.parent for each in suite_directory(family).glob("*/prompts.jsonl")
    ):
        lines = (directory / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
        engines = {name: in_format(family, name)(directory) for name in FORMATS}
        engines |= {
            f"{each} cache": in_format(family, f"{each} cache")(directory) for each in CACHES
        }
        right_engine = exact(family).read(directory)
        for line in map(json.loads, lines[::4]):
            reads, right = line["reads"], np.array(line["expected"])
            logits = right_engine.logits([line["ids"]])[0][reads]
            assert {*line["margins"]} == {*engines}
            for name, engine in engines.items():
                changed = engine.logits([line["ids"]])[0][reads].astype(np.float64)
                own = found.setdefault((directory.name, name), [])
                own += zip(measured(logits, changed, right), line["margins"][name], strict=True)
    return found


SMALL, FACTOR, SHARE = 16.0, 8, 0.7
"""Margins below the first depend on single roundings: they count as equal. Of all, this share must
be equal within this factor."""


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_margins_are_those_of_another_evaluation(family):
    with np.errstate(all="ignore"):
        found = margins(family)
    large = 0
    for (instrument, name), pairs in found.items():
        own, file = np.maximum(np.array(pairs).T, SMALL)
        large += sum(file > SMALL)
        if instrument in BY_FORMULAS and name in FORMATS:
            # One number is rounded, up or down by chance, and the sums of the engine as well.
            assert (own >= file / 1000).all() and (own <= 1000 * file).all(), (instrument, name)
            assert name != "float32" or (own > SMALL).all(), instrument
            continue
        near = (own >= file / FACTOR) & (own <= FACTOR * file)
        assert near.mean() >= SHARE, (instrument, name, own / file)
    assert large > 500
