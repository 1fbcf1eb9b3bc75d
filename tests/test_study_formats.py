"""What studies compute beside the library: formats of any precision, and long inputs in them."""

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import BFLOAT16, FLOAT16, FLOAT32, FORMATS
from transformist.studies import (
    STUDIES,
    format_limits,
    format_results,
    format_trials,
    length_search,
    short_formats,
    uniform_heads,
)

ROOT = Path(__file__).parents[1]
NUMBERS = np.random.default_rng(0).normal(size=(40, 8)) * 2.0 ** np.arange(-4, 4)


@pytest.mark.parametrize("named", [BFLOAT16, FLOAT16, FLOAT32])
@pytest.mark.parametrize("kind", [short_formats.WIDE, short_formats.OWN])
def test_a_short_float_has_the_numbers_of_the_named_format(named, kind):
    short = short_formats.format_of(kind, named.precision)
    exact = [Fraction(i, 7919) for i in range(1, 2000)]
    for given in (NUMBERS, exact):
        assert short.array(given).tolist() == named.numbers(named.array(given)).tolist()
    above = 1 + short.unit_roundoff + Fraction(1, 2**60)  # rounded to float64 first, it is a tie
    assert short.array([above])[0] == 1 + 2 * float(short.unit_roundoff)


def test_a_short_float_of_24_bits_computes_as_float32():
    """Which sums in itself, from left to right."""
    short = short_formats.format_of(short_formats.OWN, 24)
    x, y = NUMBERS[:20], NUMBERS[20:]
    pairs = {
        "add": (x, y),
        "multiply": (x, y),
        "divide": (x, y),
        "affine": (x, y),
        "scores": (x, y),
    }
    pairs |= {"matmul": (x, y.T), "sum": (x,), "exp": (x,), "sqrt": (abs(x),)}
    for name, given in pairs.items():
        mine, theirs = (a.numbers(getattr(a, name)(*map(a.array, given))) for a in (short, FLOAT32))
        assert mine.tolist() == theirs.tolist(), name
    wide = short_formats.format_of(short_formats.WIDE, 24)
    assert wide.sum(wide.array(x)).tolist() != short.sum(short.array(x)).tolist()
    assert (short.accumulator_roundoff, wide.accumulator_roundoff) == (2**-24, 2**-53)


@pytest.mark.filterwarnings("ignore::transformist.errors.OutsideClaim")
@pytest.mark.parametrize("recipe", format_limits.RECOGNIZERS)
def test_uniform_heads_give_what_the_reference_gives(recipe):
    """To the bit: a mean, and the answers that rest on it."""
    n = 60
    model = format_limits.recognizer(recipe, n)
    head = model.layers[0].heads[0]
    strings = format_results.strings_of(n)
    for a in FORMATS:
        z = model.embedding([next(iter(strings))], a)
        mine = uniform_heads.means(head, z, a, np.arange(n + 1))
        assert a.numbers(mine).tolist() == a.numbers(head.on(z, a)).tolist()
        for x in list(strings)[::7]:
            try:
                expected = model(x, a.name)
            except tf.TransformistError:
                with pytest.raises(tf.TransformistError):
                    uniform_heads.answer(model, x, a)
            else:
                assert uniform_heads.answer(model, x, a) == expected


@pytest.mark.parametrize(
    "changed", [{"W_Q": [[1]]}, {"mask": "none"}, {"weighting": "leftmost-hard"}]
)
def test_another_head_is_no_uniform_head(changed):
    uniform = {"W_Q": [[0]], "W_K": [[1]], "W_V": [[1]], "mask": "future"}
    head = tf.Attention(**{**uniform, **changed})
    with pytest.raises(ValueError, match="W_Q = 0"):
        uniform_heads.means(head, FLOAT16.array([[[1]]]), FLOAT16, np.arange(1))


def test_a_fault_is_diagnosed_on_a_short_prefix(monkeypatch):
    diagnosed, diagnose = [], tf.diagnose

    def seen(model, x, arithmetic):
        diagnosed.append(x)
        return diagnose(model, x, arithmetic)

    monkeypatch.setattr(tf, "diagnose", seen)
    model = tf.recipe("dyck-1").build(max_length=1000, weighting="softmax")
    fault = format_results.fault(model, ")(" + "()" * 499, "bfloat16")
    assert (fault, diagnosed) == ("BelowResolution: hidden unit 1 of layer 0", [")("])


@pytest.mark.parametrize("first", [1, 3, 19, 64, 100, None])
def test_a_search_ends_at_the_first_quarter_of_an_octave_that_fails(first):
    tried = []

    def passes(n):
        tried.append(n)
        return first is None or n < first

    last, failing = length_search._search(passes, 128)
    assert len(set(tried)) == len(tried)  # no length twice
    lengths = [round(2 ** (k / 4)) for k in range(1, 29)]
    if first is None:
        assert (last, failing) == (128, None)
        return
    assert failing == min(n for n in lengths if n >= first)
    assert last == max([n for n in lengths if n < first], default=0)


@pytest.mark.filterwarnings("ignore::transformist.errors.OutsideClaim")
@pytest.mark.parametrize(("name", "n"), [("dyck-1", 16), ("parity", 30), ("reverse", 38)])
def test_strings_evaluated_together_are_judged_as_each_alone(name, n):
    """By the answers of the reference; one whose numbers overflow has none."""
    program = tf.programs.PROGRAMS[name]
    trials = format_trials.Trials(program)
    model = tf.compile(program, max_length=n, arithmetic="float64")
    strings = format_trials._numbered(list(program.alphabet), n)
    for kind, bits in ((short_formats.OWN, 6), (short_formats.FIXED, 4), (short_formats.NAMED, 11)):
        system, wrong = short_formats.format_of(kind, bits), []
        for number, x in strings.items():
            try:
                wrong += [number] * (tf.run(model, x, system) != program(x))
            except tf.TransformistError:
                wrong.append(number)
        assert trials._wrong(system, n, list(strings)) == wrong
        assert trials.is_right(system, n) == (not wrong)


def test_beyond_128_the_strings_that_failed_at_the_largest_length_come_first(monkeypatch):
    trials = format_trials.Trials(tf.programs.PROGRAMS["dyck-1"])
    tried = []

    def wrong(_system, n, numbers):
        tried.append((n, *numbers))
        return [k for k in numbers if k in failing.get(n, ())]

    monkeypatch.setattr(trials, "_wrong", wrong)
    failing = {64: (5, 7), 128: (9,)}
    assert [trials.is_right(None, n) for n in (32, 64, 128)] == [True, False, False]
    tried.clear()
    assert trials.is_right(None, 512)
    assert [numbers for _, numbers in tried] == [9, 5, 7, 0, 1, 2, 3, 4, 6, 8, 10, 11]


def test_an_exponent_is_fitted_to_lengths_inside_the_search():
    case = {"bits": [2, 4, 6, 8, 10], "N to": 512}
    assert length_search.exponent(case, [1, 4, 16, 64, 512]) == pytest.approx(1)
    assert length_search.exponent(case, [1, 4, 16, None, None]) is None


def test_pages_and_help_name_no_document_by_a_number_of_ours():
    """A reader has no source 003, and no check 3."""
    shown = [f"{each.question} {each.method}" for each in STUDIES.values()]
    shown += [page.read_text() for page in (ROOT / "docs" / "studies").glob("*.md")]
    shown += [page.read_text() for page in (ROOT / "src/transformist/studies").glob("*.py")]
    for text in shown:
        assert not re.search(
            r"[Ss]ource \d|of 003|\((check|experiment|limitation|(open )?question) \d\)", text
        )
