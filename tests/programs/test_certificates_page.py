"""The page of certificates: what it says is certified, and each failure that it shows."""

import itertools
import json
import operator
import random

import pytest
from references import ALPHABETS, REFERENCES, every_string

import certificates as page
import failing
from transformist.programs import PROGRAMS
from transformist.verify.certificate import certify

WRITTEN = page.PAGE.read_text(encoding="utf-8")
FOUND = page.recorded()
FAILED = {key: each for key, each in FOUND.items() if each.max_length is not None}

QUICK = ("majority", "fraction-of-previous")


def slow_but(keys, are_quick):
    return [key if are_quick(key) else pytest.param(key, marks=pytest.mark.slow) for key in keys]


@pytest.mark.parametrize("name", slow_but(PROGRAMS, lambda name: name in QUICK))
def test_the_page_has_what_would_be_written(name):
    assert page.section(name) in WRITTEN, "run python docs/certificates.py"


def test_every_program_is_searched_in_every_format():
    assert WRITTEN.startswith(page.HEAD)
    sections = WRITTEN.removeprefix(page.HEAD).splitlines()
    assert [line[3:] for line in sections if line.startswith("## ")] == list(PROGRAMS)
    assert list(FOUND) == [(name, each) for name in PROGRAMS for each in page.FORMATS]
    kept = page.RECORDED.read_text("utf-8")
    assert [json.loads(line.rstrip(",")) for line in kept.splitlines()[1:-1]] == json.loads(kept)


def is_short(key):
    return FAILED[key].max_length <= 40


@pytest.mark.parametrize("key", slow_but(FAILED, is_short), ids="-".join)
def test_what_is_recorded_as_failing_fails(key):
    """Evaluated anew; and no certificate holds for it."""
    (name, arithmetic), found = key, FAILED[key]
    model = failing.built(name, found.max_length)
    assert len(found.text) <= found.max_length
    answer = failing.wrong(model, name, found.text, arithmetic)
    assert answer is not None and answer[:80] == found.answer
    assert not certify(model, arithmetic).holds


@pytest.mark.parametrize(("name", "after", "N"), [("sort", 12, 14), ("reverse", 15, 17)])
def test_a_search_finds_the_first_that_fails(name, after, N):
    """In bfloat16, the same each time; at the N before every answer is right."""
    searches = [failing.Search(name, "bfloat16", 1, 2**13) for _ in range(2)]
    found, again = (each.run(N + 3, after) for each in searches)
    assert found.max_length == N and found == again
    assert found.text and failing.wrong(failing.built(name, N), name, found.text, "bfloat16")


@pytest.mark.parametrize(
    ("name", "N"), [("parity", 22), ("fraction-of-previous", 115), ("histogram", 18)]
)
def test_a_margin_is_above_0_where_the_answer_is_right(name, N):
    """Of what fails and of strings like it, one by one, by the answers themselves."""
    model, draw = failing.built(name, N), random.Random(0)
    x = FOUND[name, "bfloat16"].text
    xs = [x, *every_string(ALPHABETS[name], 3)[1:20]]
    xs += [failing.changed(x, ALPHABETS[name], draw) for _ in range(20)]
    right = [failing.wrong(model, name, each, "bfloat16") is None for each in xs]
    found = failing.margins(model, name, xs, "bfloat16")
    decided = [margin > 0 for margin in found]
    assert all(map(operator.le, decided, right)) and not right[0] and sum(decided) > 5


def test_an_overflow_is_no_answer():
    """And the others of its batch are evaluated."""
    model = failing.built("parity", 100)
    found = failing.wrong(model, "parity", "1" * 100, "float16")
    assert found == "no answer: attention scores must stay below 65504 in float16"
    assert failing.margins(model, "parity", ["1" * 100, "0"], "float16")[0] <= 0


def test_a_program_that_answers_otherwise_is_caught():
    model = failing.built("majority", 8)
    assert failing.wrong(model, "majority", "0111", "float32") is None
    assert failing.wrong(model, "parity", "0011", "float32") is None
    assert failing.wrong(model, "parity", "0111010", "float32") == "True"
    assert failing.wrong(model, "parity", "0001", "float32") == "False"


@pytest.mark.parametrize("x", ["", "a", "ab", "ababab", "aaaaaaab", "abcabcabcabcd" * 3, "(()())"])
def test_a_string_is_folded_and_spelled(x):
    assert failing.spelled(failing.folded(x)) == x
    assert len(failing.folded("ab" * 50 + "c" * 9)) == 2


def test_lengths_grow_by_a_little():
    found = list(failing.lengths(0, 6000))
    assert found[: failing.EACH] == list(range(1, failing.EACH + 1)) and found[-1] == 6000
    assert all(1 < b / a <= 1.15 for a, b in itertools.pairwise(found[failing.EACH :]))
    assert set(failing.lengths(50, 200)) & set(range(51)) == set()


def test_blocks_have_the_length_that_is_asked_for():
    for maker in failing.makers("abc"):
        for n in (0, 1, 7, 100):
            assert len(failing.made(maker, n)) == n
    assert failing.made((("a", 0.25), ("b", 0.75)), 8) == "aabbbbbb"
    assert REFERENCES["reverse"](failing.made((("ab", 1.0),), 5)) == "ababa"
