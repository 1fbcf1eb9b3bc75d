"""The search for the first length at which a format breaks a recipe, and for the least error."""

import importlib.util
import json
import re
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import BFLOAT16, FLOAT16, FLOAT64, SYSTEMS, Floating
from transformist.catalogue import positions
from transformist.claims import LengthClaim
from transformist.cli import main
from transformist.errors import InvalidValue, UnknownName
from transformist.model import Attention
from transformist.report.precision_table import found_facts, shortened
from transformist.verify import SHORT_WORK, first_failure, formats, least_error, search
from transformist.verify.attempt import places
from transformist.verify.sequence_claims import _results, list_attempts
from transformist.verify.string_claims import string_attempts

ROOT = Path(__file__).parents[2]


def quadratic_scores(a, n, q):
    """fl(fl(2 q j − fl(j²))/fl(√2)) for j from 1 to n, by numpy alone."""
    j = np.arange(1, n + 1, dtype=np.float32)
    dots = (2 * q * j - (j * j).astype(a.dtype).astype(np.float32)).astype(a.dtype)
    root = np.float64(np.sqrt(2)).astype(a.dtype)
    return (dots.astype(np.float32) / root.astype(np.float32)).astype(a.dtype)


@pytest.mark.parametrize("a", [FLOAT16, BFLOAT16], ids=lambda a: a.name)
def test_the_first_failing_length_of_the_quadratic_lookup_is_that_of_its_scores(a):
    def ties(n):
        return any(
            np.flatnonzero(scores == scores.max()).tolist() != [q - 1]
            for q in range(1, n + 1)
            for scores in [quadratic_scores(a, n, q)]
        )

    first = next(n for n in range(1, 100) if ties(n))
    found = first_failure(tf.recipe("quadratic-lookup"), a)
    assert found.length == first == found.every_length_to + 1
    assert first == {"float16": 40, "bfloat16": 17}[a.name]
    assert found.claimed < first and not found.refutes_the_claim
    q = found.input["q"]
    scores = quadratic_scores(a, first, q)
    assert np.flatnonzero(scores == scores.max()).tolist() != [q - 1]
    assert found.expected == list(found.input["v"]) and found.got != found.expected


@pytest.mark.slow
def test_the_quadratic_lookup_breaks_in_float32_at_3448():
    found = first_failure(tf.recipe("quadratic-lookup"), "float32", work=2**27)
    assert found.length == 3448 and found.input["q"] == 3448


KNOWN = [
    ("tie-break", {}, "bfloat16", 67),
    ("tie-break", {"term": "-1/i"}, "bfloat16", 17),
    ("tie-break", {"term": "-1/i"}, "float16", 40),
    ("predecessor-quadratic", {}, "float16", 41),
    ("predecessor-quadratic", {}, "bfloat16", 17),
    ("parity", {}, "bfloat16", 17),
    ("position-power", {}, "float16", 41),
]


@pytest.mark.parametrize(("name", "given", "arithmetic", "length"), KNOWN)
def test_known_thresholds(name, given, arithmetic, length):
    found = first_failure(tf.recipe(name), arithmetic, longest=128, work=2**24, **given)
    assert found.length == length == found.every_length_to + 1
    assert found.ended == "a failing length was found"


def test_an_overflow_is_a_failure_with_the_refusal():
    found = first_failure(tf.recipe("position-power"), "float16", work=2**24)
    assert found.input == {"n": 41} and "68921" in found.got


def test_a_claim_that_is_false_is_reported():
    recipe = tf.recipe("quadratic-lookup")
    bold = replace(recipe, claim=replace(recipe.claim, safe_length=lambda: 64))
    found = first_failure(bold, "float16", longest=64)
    assert found.length == 40 and found.claimed == 64 and found.refutes_the_claim
    boundless = replace(recipe, claim=replace(recipe.claim, safe_length=lambda: None))
    assert first_failure(boundless, "float16", longest=64).refutes_the_claim


def test_weights_that_are_wrong_from_some_length_on_are_found_on_the_grid():
    """A head that averages is wrong from n = 2 on; one that is wrong near n = 5000 alone, too."""
    recipe = tf.recipe("quadratic-lookup")
    flat = Attention(
        W_Q=np.zeros((2, 5)),
        W_K=np.zeros((2, 5)),
        W_V=[[0, 0, 0, 0, 1]],
        weighting="average-hard",
    )
    found = first_failure(replace(recipe, construct=lambda weighting="average-hard": flat), FLOAT16)
    assert found.length == 2 and found.refutes_the_claim

    def late(*, q, v, n):
        values = [list(v[position - 1]) for position in q]
        return values if n < 700 else [[Fraction(9)]] * n

    odd = replace(recipe, claim=replace(recipe.claim, reference=late))
    found = first_failure(odd, "float64", work=2**23)
    assert found.length == 700 and found.every_length_to < 699 < found.searched


def test_a_softened_lookup_is_wrong_beyond_the_error_at_its_safe_length():
    found = first_failure(tf.recipe("quadratic-lookup-soft"), "float16", longest=64, work=2**23)
    (value,), (got,) = found.expected, found.got
    assert found.claimed < found.length and abs(value - Fraction(got)) > Fraction(1, 4)


def test_a_recipe_for_N_is_built_for_each_length():
    built = []
    recipe = tf.recipe("dyck-1")

    def construct(max_length=1024, printed=False):
        built.append(max_length)
        return recipe.construct(max_length, printed=printed)

    found = first_failure(replace(recipe, construct=construct), "bfloat16", longest=6, work=2**24)
    assert {1, 2, 3, 4, 5, 6} <= set(built)
    assert found.length is None and found.every_length_to == found.searched == 6
    assert found.ended == "no longer input was asked for than 6" and found.claimed == 63


def test_a_claim_about_N_itself_is_asked_for_each_length():
    recipe = tf.recipe("soften")
    claim = replace(recipe.claim, safe_length=lambda *, max_length: None if max_length < 5 else 0)
    found = first_failure(replace(recipe, claim=claim), "float32", longest=9, work=2**22)
    assert found.claimed == 4 and found.length is None
    assert first_failure(recipe, "float32", longest=9, work=2**22).claimed is None


def test_rows_are_those_of_the_whole_model(monkeypatch):
    """Evaluating some rows, and the columns with weight alone, changes no bit."""
    weights = Attention.weights
    for name in ("quadratic-lookup", "quadratic-lookup-soft", "tie-break", "prefix-mean"):
        recipe, a, n = tf.recipe(name), SYSTEMS["float32"], 150
        settings = recipe.settings({})
        model, domain = recipe.construct(**settings), recipe.claim.domain
        domain = domain(**{key: settings[key] for key in ("term", "width") if key in settings})
        vectors = domain.encode(domain.hard(n, 4, a, places(n)), n, a)
        rows = np.array(places(n)) - 1
        whole = model(vectors, a)[:, rows]
        seen = []

        def watched(self, z, a, rows, seen=seen):
            seen.extend(rows.tolist())
            return weights(self, z, a, rows)

        with monkeypatch.context() as patch:
            patch.setattr(Attention, "weights", watched)
            some = _results(model, vectors, a, rows)
        assert np.array_equal(some, whole) and seen == rows.tolist()


def test_every_query_is_tried_in_short_lists():
    recipe, a = tf.recipe("quadratic-lookup"), FLOAT16
    asked = set()

    def reference(*, q, v, n):
        asked.update((n, i, each) for i, each in enumerate(q, start=1))
        return [list(v[each - 1]) for each in q]

    watched = replace(recipe, claim=replace(recipe.claim, reference=reference))
    attempt = list_attempts(watched, watched.settings({}), a)
    for n in (1, 2, 7, 12, 38):
        attempt(n).run()
        pairs = {(i, q) for m, i, q in asked if m == n}
        assert {q for _, q in pairs} == set(range(1, n + 1))
        assert len(pairs) == n * min(n, 12) if n <= 12 else len(pairs) >= 4 * n


def test_places_hold_the_ends_the_middle_and_powers_of_two():
    assert places(64) == list(range(1, 65))
    far = places(1000)
    assert {1, 2, 499, 500, 501, 511, 512, 513, 985, 1000} <= set(far) and len(far) < 60
    assert all(1 <= place <= 1000 for place in far)


class TestBudget:
    def test_the_work_is_bounded_and_decides_how_far_a_search_goes(self):
        recipe, a = tf.recipe("quadratic-lookup"), SYSTEMS["float64"]
        attempt, reached = list_attempts(recipe, recipe.settings({}), a), []
        for work in (2**16, 2**18, 2**20):
            found = first_failure(recipe, a, work=work)
            assert found.length is None and "more than the work" in found.ended
            assert attempt(found.searched).scores <= work
            every = sum(attempt(n).scores for n in range(1, found.every_length_to + 1))
            assert every <= work
            reached.append(found.searched)
        assert reached == sorted(set(reached))

    def test_no_work_no_length(self):
        found = first_failure(tf.recipe("dyck-1"), "float32", work=1)
        assert (found.length, found.searched, found.every_length_to) == (None, 0, 0)
        assert found.claimed == 2047

    def test_the_same_search_finds_the_same(self):
        for name in ("tie-break", "induction-most-recent", "dyck-1"):
            one, other = (first_failure(tf.recipe(name), FLOAT16, work=2**18) for _ in range(2))
            assert one == other

    def test_a_table_too_large_to_build_ends_a_search(self, monkeypatch):
        monkeypatch.setattr(positions, "MOST_NUMBERS", 256)
        found = first_failure(tf.recipe("position-one-hot"), "float16", work=2**21)
        assert found.length is None and found.searched == found.every_length_to == 16
        assert found.ended == "a table of positions must hold at most 256 numbers"


@pytest.mark.parametrize(
    "recipe",
    [each for each in tf.recipes() if isinstance(each.claim, LengthClaim)],
    ids=lambda recipe: recipe.name,
)
@pytest.mark.parametrize("work", [2**10, pytest.param(SHORT_WORK // 4, marks=pytest.mark.slow)])
def test_no_short_search_refutes_a_claim(recipe, work):
    for name in formats(recipe):
        found = first_failure(recipe, name, longest=256, work=work)
        assert not found.refutes_the_claim, found
        json.dumps(found_facts(found), allow_nan=False)


class TestRefusals:
    def test_a_recipe_without_lengths(self):
        with pytest.raises(InvalidValue, match="'min', in which nothing grows with a length"):
            first_failure(tf.recipe("min"), "float32")
        with pytest.raises(InvalidValue, match="functions with a tolerance; received 'min'"):
            least_error(tf.recipe("min"), "float32")
        with pytest.raises(InvalidValue, match="nothing grows with a length"):
            search(tf.recipe("min"), "float32", {}, None)

    def test_an_arithmetic_that_does_not_round(self):
        for function in (first_failure, least_error):
            with pytest.raises(InvalidValue, match="exact, in which nothing rounds"):
                function(tf.recipe("dyck-1"), "exact")
        with pytest.raises(UnknownName, match="float31"):
            first_failure(tf.recipe("dyck-1"), "float31")

    @pytest.mark.parametrize("count", [0, -1, 1.5, True, "9"])
    def test_counts(self, count):
        with pytest.raises(InvalidValue, match="longest must be a whole number of at least 1"):
            first_failure(tf.recipe("dyck-1"), "float32", longest=count)
        with pytest.raises(InvalidValue, match="work must be a whole number of at least 1"):
            first_failure(tf.recipe("dyck-1"), "float32", work=count)

    def test_settings_that_are_searched_over(self):
        with pytest.raises(InvalidValue, match="declared as N; received max_length = 4"):
            first_failure(tf.recipe("dyck-1"), "float32", max_length=4)
        with pytest.raises(InvalidValue, match="search varies it; received tolerance = 1"):
            least_error(tf.recipe("multiply-by-gelu"), "float32", tolerance=1)
        with pytest.raises(InvalidValue, match="max_length = 9 for multiply-by-gelu"):
            search(tf.recipe("multiply-by-gelu"), "float32", {}, 9)


class TestLeastError:
    @pytest.mark.parametrize(
        ("name", "s", "figure"), [("float32", 8, 5e-5), ("float64", 18, 7e-11)]
    )
    def test_of_the_product(self, name, s, figure):
        found = least_error(tf.recipe("multiply-by-gelu"), name)
        assert found.scale == Fraction(1, 2**s) and figure / 2 < found.error < 2 * figure

    def test_of_a_recipe_that_admits_no_tolerance_of_1(self):
        """σ(c x) is 1 for x ≥ 1/8 once c x is above ln 2¹¹ = 7.6, where float16 rounds to 1."""
        found = least_error(tf.recipe("step-by-sigmoid"), "float16")
        assert found.tolerance < 1 and found.scale >= 64 and found.error == 0

    def test_it_is_the_least_of_all_tolerances_and_that_of_the_weights(self):
        recipe, a = tf.recipe("multiply-by-gelu"), SYSTEMS["float16"]
        found = least_error(recipe, a)
        x, y = found.input
        got = a.numbers(recipe.build(tolerance=found.tolerance)([x, y], a))[0]
        assert float(abs(Fraction(got) - x * y)) == found.error
        for k in range(12):
            model = recipe.build(tolerance=Fraction(1, 2**k))
            pairs = [(Fraction(1), Fraction(1)), found.input, (Fraction(1, 2), Fraction(-1))]
            worst = max(abs(Fraction(a.numbers(model([x, y], a))[0]) - x * y) for x, y in pairs)
            if Fraction(1, 2**k) > 4 * found.tolerance:
                assert worst > found.error

    def test_weights_that_overflow_end_it(self):
        found = least_error(tf.recipe("relu-by-gelu"), "float16")
        assert 0 < found.error < 1e-3 and found.tried < found.tolerance


class TestCommand:
    def run(self, capsys, *arguments):
        code = main([str(each) for each in ("precision", *arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    def test_json(self, capsys):
        code, out, _ = self.run(capsys, "quadratic-lookup", "--max-length", 50, "--json")
        got = json.loads(out)
        assert code == 0 and got["recipe"] == "quadratic-lookup" and got["settings"] == {}
        floats = {name for name, system in SYSTEMS.items() if isinstance(system, Floating)}
        rows = {row["arithmetic"]: row for row in got["results"]}
        assert set(rows) == floats
        keys = "arithmetic claimed first_failure searched every_length_to input expected got"
        assert all(set(keys.split()) <= set(row) for row in rows.values())
        assert rows["float16"]["first_failure"] == 40 and rows["float16"]["claimed"] == 38
        assert rows["float64"]["first_failure"] is None and rows["float64"]["searched"] == 50

    def test_text(self, capsys):
        _, out, _ = self.run(capsys, "quadratic-lookup", "--max-length", 50)
        lines = {line.split()[0]: line for line in out.splitlines() if line}
        assert "38" in lines["float16"] and "40" in lines["float16"] and "q = 40" in out
        assert "none to 50" in lines["float64"]

    def test_settings_and_one_format(self, capsys):
        arguments = ("tie-break", "--set", "term=-1/i", "--arithmetic", "bfloat16", "--json")
        got = json.loads(self.run(capsys, *arguments)[1])
        assert got["settings"] == {"term": "-1/i"}
        assert [row["first_failure"] for row in got["results"]] == [17]

    def test_a_tolerance(self, capsys):
        _, out, _ = self.run(capsys, "multiply-by-gelu", "--arithmetic", "float32", "--json")
        (row,) = json.loads(out)["results"]
        assert row["scale"] == 2**-8 and row["least_error"] < 1e-4
        assert "2^-8" in self.run(capsys, "multiply-by-gelu", "--arithmetic", "float32")[1]

    def test_every_recipe(self, capsys):
        arguments = ("--arithmetic", "bfloat16", "--max-length", 20, "--work", 30000, "--json")
        code, out, _ = self.run(capsys, *arguments)
        rows = json.loads(out)["results"]
        lengths = [each for each in tf.recipes() if isinstance(each.claim, LengthClaim)]
        wanted = [
            each.name for each in lengths if "bfloat16" in each.claim.arithmetics(each.settings({}))
        ]
        assert len(wanted) > 40 and "zero-at-flag" not in wanted
        assert code == 0 and [row["recipe"] for row in rows] == wanted

    def test_bad_requests_are_one_line(self, capsys):
        for arguments, words in (
            (["nope"], "which names no recipe, program or file"),
            (["min"], "nothing grows with a length"),
            (["dyck-1", "--arithmetic", "exact"], "nothing rounds"),
            (["--arithmetic", "exact"], "nothing rounds"),
            (["dyck-1", "--max-length", "0"], "--max-length must be a whole number from 1 to"),
            (["dyck-1", "--work", "x"], "--work must be a whole number from 1 to"),
            (["dyck-1", "--set", "max_length=4"], "declared as N"),
            (["--set", "term=i/n"], "--set without NAME"),
        ):
            code, out, err = self.run(capsys, *arguments)
            assert code == 2 and out == "" and words in err and len(err.splitlines()) == 1

    def test_show_tells_what_a_short_search_finds(self, capsys):
        assert main(["show", "quadratic-lookup"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "first failure found float16 40, bfloat16 17, float8_e5m2" in shown
        assert "; none to" in shown
        assert main(["show", "quadratic-lookup", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["first_failures"]
        assert found["float16"]["first_failure"] == 40
        assert main(["show", "min", "--json"]) == 0
        assert "first_failures" not in json.loads(capsys.readouterr().out)


# The page

_spec = importlib.util.spec_from_file_location("page", ROOT / "docs" / "precision.py")
page = sys.modules["page"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(page)
PAGE = page.PAGE.read_text(encoding="utf-8")

CHEAP = ("quadratic-lookup", "tie-break (term=-1/i)", "multiply-by-gelu")


def rows_of(part):
    return PAGE.partition(f"## {part.title}\n")[2].partition("\n## ")[0].splitlines()


@pytest.mark.parametrize("part", [each for each in page.present() if each.title in CHEAP])
def test_rows_of_the_page_are_what_is_found(part):
    for name in ("float16", "bfloat16"):
        assert page.line(part, name) in rows_of(part), "run python docs/precision.py"


SAMPLED = dict.fromkeys(("bfloat16", "float16", "float32", "float64"), "dyck-1")
"""Formats in which the search of a recipe takes about 2³⁰ scores, a minute and more each: their
rows are not searched anew, but the failing length in them and a few that pass are tried."""


def written_row(part, arithmetic):
    (row,) = (each for each in rows_of(part) if each.startswith(f"| {arithmetic} |"))
    return row


@pytest.mark.slow
@pytest.mark.parametrize("part", list(page.present()), ids=lambda part: part.title)
def test_the_page_is_what_is_found(part, monkeypatch):
    line = page.line

    def line_or_written(part, arithmetic):
        sampled = SAMPLED.get(arithmetic) == part.title
        return (written_row if sampled else line)(part, arithmetic)

    monkeypatch.setattr(page, "line", line_or_written)
    assert "\n".join(page.section(part)).rstrip() in PAGE, "run python docs/precision.py"


@pytest.mark.slow
@pytest.mark.parametrize(("arithmetic", "name"), SAMPLED.items())
def test_lengths_in_a_row_that_is_not_searched_anew_pass_or_fail_as_it_has_them(arithmetic, name):
    (part,) = (each for each in page.present() if each.title == name)
    recipe, row = tf.recipe(name), written_row(part, arithmetic)
    _, _, claimed, found, on, _ = row.split("|", 5)
    attempt = string_attempts(recipe, recipe.settings({}), SYSTEMS[arithmetic])
    length, *_ = map(int, re.findall(r"\d+", found.replace(",", "")))
    assert int(re.search(r"[\d,]+", claimed)[0].replace(",", "")) == attempt(length).claimed
    if "none to" in found:
        assert attempt(length).run() is None
    else:
        assert shortened(attempt(length).run().input) == on.strip()
    for n in (*range(1, 64), 128, 256, 418, 512, 1024, 2048, 4096, length - 1):
        assert n >= length or attempt(n).run() is None, n


def test_the_page_has_every_part_and_a_reason_for_every_loose_claim():
    assert PAGE.startswith(page.INTRODUCTION)
    for part in page.present():
        rows = rows_of(part)
        assert rows
        loose = {row.split("|")[1].strip() for row in rows if "(loose)" in row}
        assert loose == set(part.loose), part.title


def test_some_rows_of_a_biased_head_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    weights = {"W_Q": (2, 3), "W_K": (2, 3), "W_V": (2, 3), "W_O": (3, 2)}
    biases = {"b_Q": 2, "b_K": 2, "b_V": 2, "b_O": 3}
    drawn = {name: rng.normal(size=shape) for name, shape in {**weights, **biases}.items()}
    z = FLOAT64.array(rng.normal(size=(2, 6, 3)))
    rows = np.array([0, 3, 5])
    for mask in ("none", "strict-future"):
        head = tf.Attention(**drawn, mask=mask)
        some = _results(head, z, FLOAT64, rows)
        assert np.allclose(some, head(z)[:, rows], rtol=1e-14, atol=1e-14)
