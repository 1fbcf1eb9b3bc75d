"""The command line: what it prints, its exit codes, and one clear line for each bad request."""

import argparse
import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

import transformist as tf
from command_line import answer, run
from transformist import running
from transformist.programs import PROGRAMS
from transformist.report.recipe_sheet import recipe_facts, recipe_table
from transformist.verify import suite

OF_THE_REFERENCE = (("--arithmetic", "bfloat16"), ("--trace",))


class TestRun:
    @pytest.mark.parametrize(
        ("string", "expected"), [("(()())", True), (")(", False), ("", True), ("(", False)]
    )
    def test_json(self, capsys, string, expected):
        got = answer(capsys, "run", "dyck-1", string)
        assert got["answer"] is expected
        assert got["model"] == "dyck-1" and got["length"] == len(string)
        assert got["arithmetic"] == "float64" and got["engine"] == "reference"

    @pytest.mark.parametrize("arithmetic", ["exact", "float64", "float32", "float16", "bfloat16"])
    def test_every_arithmetic(self, capsys, arithmetic):
        got = answer(capsys, "run", "dyck-1", "(())", "--arithmetic", arithmetic)
        assert got["answer"] is True and got["arithmetic"] == arithmetic

    @pytest.mark.parametrize(
        ("engine", "string", "taken"),
        [
            pytest.param("auto", "()" * 2047, "reference", marks=pytest.mark.slow),
            ("auto", "()" * 20, "reference"),
            ("auto", "()" * 2048, "structured"),
            ("structured", "(())", "structured"),
            ("structured", "", "structured"),
            pytest.param("reference", "()" * 2048, "reference", marks=pytest.mark.slow),
            ("reference", "()" * 20, "reference"),
        ],
    )
    def test_engines(self, capsys, engine, string, taken):
        got = answer(capsys, "run", "dyck-1", string, "--engine", engine)
        assert got["answer"] is True and got["engine"] == taken
        assert got["within_claim"] is True and got["length"] == len(string)

    @pytest.mark.parametrize("half", [32, pytest.param(2048, marks=pytest.mark.slow)])
    def test_other_arithmetics_and_traces_are_the_reference(self, capsys, half, monkeypatch):
        monkeypatch.setattr(running, "STRUCTURED_FROM", 2 * half)
        asked = ("run", "dyck-1", "()" * half, "--engine", "auto")
        engines = [answer(capsys, *asked)["engine"]]
        engines += [answer(capsys, *asked, *more)["engine"] for more in OF_THE_REFERENCE]
        assert engines == ["structured", "reference", "reference"]

    def test_a_long_input_in_words(self, capsys):
        code, out, _ = run(capsys, "run", "dyck-1", "(" * 5000, "--engine", "auto")
        assert code == 0 and out.startswith("rejected\ndyck-1 on 5000 symbols in float64, by the ")

    def test_a_long_input_beyond_the_claim_is_warned_of(self, capsys):
        arguments = ("run", "dyck-1", "()" * 2048, "--arithmetic", "float32", "--engine", "auto")
        code, _, err = run(capsys, *arguments)
        assert code == 0 and "the claim of dyck-1 holds up to N = " in err
        assert answer(capsys, *arguments)["within_claim"] is False

    def test_vectors(self, capsys):
        assert answer(capsys, "run", "min", "[3, -2]")["answer"] == [-2]
        assert answer(capsys, "run", "min", '["1/3", 0.1]', "--arithmetic", "exact")["answer"] == [
            "1/10"
        ]
        assert answer(capsys, "run", "scale", "[2]", "--set", "factor=1/2")["answer"] == [1]
        code, out, _ = run(capsys, "run", "max", "[3, -2]")
        assert code == 0 and out.startswith("max([3, -2]) = [3.0] in float64, exactly")

    def test_a_vector_outside_the_claim_is_marked(self, capsys):
        code, out, err = run(capsys, "run", "conditional", "[1, 5, 7]", "--json")
        assert code == 0 and "claims nothing outside {0, 1}^1 × [0, 1]^2" in err
        assert json.loads(out)["within_claim"] is False
        assert json.loads(out)["error_bound"] is None
        got = answer(capsys, "run", "min", "[1e16, 1]")
        assert got["within_claim"] is True and got["error_bound"][0] >= 1  # it is off by 1
        exact = answer(capsys, "run", "min", "[1e16, 1]", "--arithmetic", "exact")
        assert exact["error_bound"] == [0] and exact["answer"] == [1]

    def test_a_model_is_built_within_the_claim_where_the_input_fits(self, capsys):
        for n in (40, 63):
            got = answer(capsys, "run", "dyck-1", "(" * n, "--arithmetic", "bfloat16")
            assert got["within_claim"] is True
        got = answer(capsys, "run", "dyck-1", "(" * 64, "--arithmetic", "bfloat16")
        assert got["within_claim"] is False

    def test_a_trace_as_json(self, capsys):
        got = answer(capsys, "run", "dyck-1", "())", "--trace", "--arithmetic", "exact")
        assert got["trace"][1]["after"] == "layer 0 attention"
        assert got["trace"][1]["values"]["balance"] == [0, "1/2", 0, "-1/4"]

    def test_a_file_with_other_characters(self, capsys, tmp_path):
        path = tmp_path / "code.py"
        path.write_text("def f(x):\n    return g(x))\n")
        arguments = ("run", "dyck-1", "--file", path, "--ignore-others")
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert out.startswith("rejected: a ) closes a bracket that was never opened")
        assert f"{path}, line 2, column 16" in out and out.count("\n") == 2
        assert "layer 0 attention" in run(capsys, *arguments, "--trace")[1]
        assert "2 layers, width 6" in out and "depend on N, N = 8" in out
        got = answer(capsys, "run", "dyck-1", "--file", path, "--ignore-others")
        assert got["length"] == 5 and got["position"] == 5
        assert got["place"] == f"{path}, line 2, column 16"

    def test_standard_input_without_its_last_newline(self, capsys, monkeypatch):
        class Stdin(io.TextIOWrapper):
            pass

        monkeypatch.setattr(sys, "stdin", Stdin(io.BytesIO(b"(())\n")))
        assert answer(capsys, "run", "dyck-1")["answer"] is True

    def test_a_file_called_minus_is_standard_input(self, capsys, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "-").write_text("))")
        for file, right in (("-", True), ("./-", False)):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"(())\n")))
            assert answer(capsys, "run", "dyck-1", "--file", file)["answer"] is right

    def test_input_may_begin_with_a_dash(self, capsys):
        code, _, err = run(capsys, "run", "dyck-1", "-(")
        assert code == 2 and "received '-' at position 1" in err

    def test_the_last_line_is_alike_by_either_engine(self, capsys):
        for model in ("dyck-1", "programs/dyck-1"):
            lines = []
            for engine in ("reference", "structured"):
                arguments = ("run", model, "(())", "--set", "max_length=16", "--engine", engine)
                lines.append(run(capsys, *arguments)[1].splitlines()[-1])
            assert lines[0].endswith(", N = 16")
            assert lines[1].replace(", by the structured engine", "") == lines[0]

    def test_trace_shows_the_layers(self, capsys):
        code, out, _ = run(capsys, "run", "dyck-1", "())", "--trace", "--arithmetic", "exact")
        assert code == 0
        for words in ("symbol", "BOS", "-1/4", "layer 1 feed-forward", "accept"):
            assert words in out

    def test_an_answer_beyond_the_claim_is_marked(self, capsys):
        code, out, err = run(
            capsys, "run", "dyck-1", "()" * 40, "--arithmetic", "bfloat16", "--json"
        )
        assert code == 0 and json.loads(out)["within_claim"] is False
        assert "holds up to N = 63 in bfloat16" in err
        assert json.loads(out)["finding"] is None
        assert answer(capsys, "run", "dyck-1", "()" * 7)["within_claim"] is True


def test_demo(capsys):
    code, out, _ = run(capsys, "demo")
    assert code == 0
    assert argparse.__file__ in out
    assert "accepted: every bracket is matched" in out or "rejected: a" in out
    for words in ("layer 0 attention", "balance", "2 layers, width 6", "non-zero", "depend on N"):
        assert words in out


def test_a_recipe_on_finite_arithmetic_runs_in_the_first_that_it_claims(capsys):
    got = answer(capsys, "run", "zero-at-flag", "[[3, 1, 1], [2, 5, 0]]")
    assert got["arithmetic"] == "saturating:16:1/16"
    assert got["answer"] == [[0, 0], [2, 5]] and got["within_claim"] and got["error_bound"] == [0]
    wide = ("run", "zero-at-flag", "[[300, 1, 1]]", "--set", "largest=512")
    assert answer(capsys, *wide)["arithmetic"] == "saturating:512:1/512"
    clamped = answer(capsys, *wide, "--arithmetic", "float16:512")
    assert clamped["arithmetic"] == "float16:512" and clamped["within_claim"]
    default = answer(capsys, "run", "max-of-two", "[[1, 2]]", "--arithmetic", "saturating")
    assert default["arithmetic"] == "saturating:16:1/16"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "zero-at-flag", "[[1, 1, 1]]", "--arithmetic", "float32"], "not clamped at B"),
        (["run", "zero-at-flag", "[[1, 1, 1]]", "--arithmetic", "float32:8"], "float32:16"),
        (["run", "zero-at-flag", "[[17, 1, 1]]"], "at most 16 in magnitude"),
        (["run", "max-of-two", "[[1, 2]]", "--arithmetic", "saturating:3:1"], "power of two"),
        (["run", "max-of-two", "[[1, 2]]", "--arithmetic", "saturating:8"], "no arithmetic has"),
        (["run", "dyck-1", "()", "--arithmetic", "saturating"], "dyck-1 is claimed in: exact"),
        (["run", "add-at-flag", "[[1, 1, 1]]", "--set", 'vector=["1/3", 1]'], "none of them holds"),
        (["run", "zero-at-flag", "[[1e400, 1, 1]]"], "a number of about 401 digits"),
        (["precision", "max-of-two"], "claims none of them as it is"),
    ],
)
def test_a_finite_arithmetic_that_does_not_fit_is_refused_in_a_line(capsys, arguments, words):
    code, out, err = run(capsys, *arguments)
    assert code == 2 and out == "" and words in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "vectors", "more", "outside"),
    [
        ("max-of-two", '[["0.03", "0.0925"]]', ["--arithmetic", "bfloat16:16"], True),
        ("max-of-two", '[["0.03", "0.0925"]]', ["--arithmetic", "saturating"], False),
        ("linear-in-place", '[["1.45", 1]]', ["--set", "matrix=[[11]]"], False),
        (
            "linear-in-place",
            '[["1.45", 1]]',
            ["--set", "matrix=[[11]]", "--arithmetic", "saturating:16:1/2"],
            True,
        ),
        ("linear-in-place", '[["2.1", 0.05, 1]]', ["--arithmetic", "float8_e5m2"], False),
        ("linear-to-the-right", "[[1, 2, 0, 0], [5, 5, 0, 1]]", [], True),
        ("linear-to-the-right", "[[1, 2, 1, 0], [5, 5, 1, 1]]", [], True),
    ],
)
def test_what_a_claim_covers_is_asked_of_the_stored_input(capsys, name, vectors, more, outside):
    got = answer(capsys, "run", name, vectors, *more)
    assert got["within_claim"] is not outside
    code, out, err = run(capsys, "run", name, vectors, *more)
    assert code == 0 and ("exactly" in out or "within" in out) is not outside
    assert ("claims nothing" in err) is outside


def test_the_positions_of_which_a_claim_speaks_are_named(capsys):
    got = answer(capsys, "run", "linear-to-the-right", "[[1, 2, 1, 0], [5, 5, 0, 1]]")
    assert got["claimed_positions"] == [2] and got["answer"][1] == [5, 1]
    _, out, _ = run(capsys, "run", "linear-to-the-right", "[[1, 2, 1, 0], [5, 5, 0, 1]]")
    assert "exactly, at position 2; of the others nothing is claimed" in out
    got = answer(capsys, "run", "zero-at-flag", "[[1, 2, 1]]")
    assert got["claimed_positions"] is None


def test_a_bound_is_shown_rounded_up(capsys):
    words = ("linear-in-place", '[["1/16", "1/16", 1]]', "--set", 'matrix=[["1/2", "1/2"], [0, 1]]')
    _, out, _ = run(capsys, "run", *words)
    assert "within 0.063 of the exact result" in out, "0.0625 is the error"


def test_a_function_outside_its_arithmetics_is_answered_with_a_warning(capsys):
    code, out, err = run(capsys, "run", "min", "[3, 1]", "--arithmetic", "saturating")
    assert code == 0 and "= [1.0]" in out and "claims nothing in saturating:16:1/16" in err


def test_list(capsys):
    got = answer(capsys, "list")
    assert [row["name"] for row in got["recipes"]] == [recipe.name for recipe in tf.recipes()]
    assert [row["name"] for row in got["programs"]] == list(PROGRAMS)
    assert all(set(row) == {"name", "summary"} for row in got["programs"])
    assert got["programs"][0]["summary"].startswith("Accept well nested parentheses")
    assert answer(capsys, "list", "--chapter", "9")["programs"] == []
    assert {"name", "chapter", "section", "document", "summary"} == set(got["recipes"][0])
    chapters = """
        positions representations feed-forward other-activations attention lookup weighting
        normalization rounding
        composition finite examples original
    """
    assert list(dict.fromkeys(row["chapter"] for row in got["recipes"])) == chapters.split()
    sections = answer(capsys, "list", "--chapter", "9")["recipes"]
    assert all(row["section"].startswith("9.") for row in sections)
    third = answer(capsys, "list", "--chapter", "3")["recipes"]
    assert third and all("Cookbook" in row["document"] for row in third)
    (encoder,) = answer(capsys, "list", "--chapter", "original")["recipes"]
    assert encoder["document"].startswith("Attention Is All You Need")
    only = answer(capsys, "list", "--chapter", "examples")["recipes"]
    assert {row["name"] for row in only} == {
        "parity",
        "count-modulo",
        "induction-most-recent",
        "induction-most-frequent",
        "dyck-1-uniform",
        "dyck-1",
        "dyck-1-nonuniform",
        "dyck-1-exact-uniform",
        "dyck-1-2",
        "dyck-k-d",
    }
    code, out, _ = run(capsys, "list")
    assert code == 0 and all(recipe.name in out for recipe in tf.recipes())
    assert all(f"programs/{name} " in out for name in PROGRAMS)


@pytest.mark.parametrize("width", [40, 80])
def test_a_list_has_a_line_a_model_below_the_heading_of_its_chapter(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run(capsys, "list")[1].splitlines()
    assert max(map(len, lines)) == width
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    assert names == [each.name for each in tf.recipes()] + [f"programs/{name}" for name in PROGRAMS]
    headings = [line for line in lines if line and not line.startswith("  ")]
    assert len(headings) == len({each.chapter for each in tf.recipes()}) + 1
    assert headings[-1] == "programs" and lines[0] == headings[0] == "positions"


def test_a_list_that_is_no_terminals_is_not_cut(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    out = run(capsys, "list")[1]
    assert all(each.summary in out for each in tf.recipes())


@pytest.mark.parametrize("place", ["5.3", "3", "9.2.1"])
def test_a_section_is_listed_with_those_below_it(capsys, place):
    got = answer(capsys, "list", "--chapter", place)
    cookbook = [each for each in tf.recipes() if each.cookbook_section is not None]
    wanted = [each.name for each in cookbook if f"{each.cookbook_section}.".startswith(f"{place}.")]
    assert [row["name"] for row in got["recipes"]] == wanted != []
    assert got["programs"] == []


def test_the_programs_are_listed_alone(capsys):
    got = answer(capsys, "list", "--chapter", "programs")
    assert got["recipes"] == [] and [row["name"] for row in got["programs"]] == list(PROGRAMS)


by_name = pytest.mark.parametrize("recipe", tf.recipes(), ids=lambda recipe: recipe.name)


@pytest.mark.slow
@by_name
def test_show_with_the_search_a_user_gets(capsys, recipe):
    keys_of_show(answer(capsys, "show", recipe.name), recipe)
    code, out, _ = run(capsys, "show", recipe.name)
    assert code == 0 and recipe.name in out and "claim" in out


@by_name
def test_show(recipe, short):
    facts = recipe_facts(recipe, {})
    keys_of_show(json.loads(json.dumps(facts, allow_nan=False)), recipe)
    out = Console(file=io.StringIO(), width=90)
    out.print(recipe_table(facts))
    assert recipe.name in out.file.getvalue() and "claim" in out.file.getvalue()


def keys_of_show(got, recipe):
    keys = "name section claim parameters layers width heads nonzero depends_on gap safe_lengths"
    assert {*keys.split(), "sources", "errata"} <= set(got)
    assert set(got["parameters"]) == set(recipe.parameters)


def test_show_counts_what_was_built(capsys, short):
    got = answer(
        capsys,
        "show",
        "max-affine",
        "--set",
        "pieces=[[1,0],[2,0],[3,0]]",
        "--set",
        "minus=[[0,0]]",
    )
    assert got["layers"] == 2 and got["width"] == 1
    dyck = answer(capsys, "show", "dyck-1")
    assert (dyck["layers"], dyck["width"], dyck["heads"], dyck["nonzero"]) == (2, 6, 2, 26)
    assert dyck["depends_on"] == ["N"] and dyck["safe_lengths"]["bfloat16"] == 63


class TestCheck:
    def test_one_recipe(self, capsys):
        got = answer(capsys, "check", "clip")
        assert got["held"] is True
        (row,) = got["recipes"]
        assert row["name"] == "clip" and row["held"] and row["counterexample"] is None
        assert row["cases"] > 1000 and "bfloat16" in row["arithmetics"]
        code, out, _ = run(capsys, "check", "clip")
        assert code == 0 and "held" in out and "[-8, 8]" in out

    def test_a_failure_exits_with_1_and_shows_the_first_counterexample(self, capsys, tmp_path):
        oracle = tmp_path / "oracle.py"
        oracle.write_text("def never(x):\n    return False\n")
        arguments = ("check", "dyck-1", "--against", f"{oracle}:never", "--max-length", "4")
        code, out, _ = run(capsys, *arguments, "--json")
        assert code == 1
        got = json.loads(out)
        assert got["held"] is False
        assert got["recipes"][0]["counterexample"] == {
            "input": "",
            "expected": False,
            "got": True,
            "arithmetic": "float64",
            "settings": "",
        }
        code, out, _ = run(capsys, *arguments)
        assert code == 1 and "FAILED" in out and "expected False" in out

    def test_against_a_right_function(self, capsys, tmp_path):
        oracle = tmp_path / "oracle.py"
        body = "while '()' in x:\n        x = x.replace('()', '')\n    return x == ''"
        oracle.write_text(f"def balanced(x):\n    {body}\n")
        got = answer(
            capsys, "check", "dyck-1", "--against", f"{oracle}:balanced", "--max-length", 9
        )
        assert got["held"] and got["recipes"][0]["cases"] == 1023

    @pytest.mark.slow
    def test_the_whole_catalogue(self, capsys, short, monkeypatch):
        # On fewer cases: every claim is tested whole in catalogue/test_claims.py, and every
        # program on more strings than `check` tries in programs/test_compiled.py.
        few = [(weighting, arithmetic, 2**6) for weighting, arithmetic, _ in suite.TRIED]
        monkeypatch.setattr(suite, "TRIED", few)
        got = answer(capsys, "check")
        assert got["held"] is True
        programs = [f"programs/{name}" for name in PROGRAMS]
        names = [recipe.name for recipe in tf.recipes()]
        assert [row["name"] for row in got["recipes"]] == [*names, *programs]


def bad_requests(tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00(")
    nul = tmp_path / "nul"
    nul.write_bytes(b"(\0)")
    broken = tmp_path / "broken.py"
    broken.write_text(
        "def f(x):\n    return inner(x)\ndef inner(x):\n    return 1/0\nnot_callable = 3\n"
    )
    raising = tmp_path / "raising.py"
    raising.write_text("import json\nvalue = json.loads('{')\n")
    within = tmp_path / "within.py"
    within.write_text(
        "import transformist as tf\n@tf.program(alphabet='ab')\ndef p(x):\n    return {}['no']\n"
    )
    syntax = tmp_path / "syntax.py"
    syntax.write_text("def f(:\n")
    return [
        (["run", "dyck-1", "(a)"], "'a' at position 2", "--ignore-others"),
        (["run", "dyck-1", "(a)", "--engine", "structured"], "--ignore-others"),
        (["run", "dyck-1", "(())", "--set", "max_length=3"], "length 4", "at most N = 3"),
        (
            ["run", "dyck-1", "()" * 60_000, "--engine", "reference"],
            "28,800,480,002",
            "GiB",
            "at most 46339 symbols, or evaluate it by the structured engine (--engine structured)",
        ),
        (
            ["run", "programs/majority", "01" * 2000, "--arithmetic", "exact"],
            "(--engine structured, in float64 or float32)",
        ),
        (["run", "dyck-1", "()", "--engine", "structured", "--trace"], "--trace", "reference"),
        (["run", "min", "[1, 2]", "--engine", "structured"], "a model on strings", "with min"),
        (
            ["run", "dyck-1", "()", "--engine", "structured", "--arithmetic", "exact"],
            "float64 or float32",
            "received exact",
        ),
        (["run", "dyck-1", "()" * 4000, "--set", "max_length=100"], "N = 100", "length 8000"),
        (["run", "dyck1", "()"], "'dyck1'", "did you mean dyck-1"),
        (["show", "mim"], "did you mean min"),
        (["export", "dyck-1", "--host", "GPT-2", "-o", "x"], "'GPT-2'", "did you mean gpt2"),
        (["show", "sort"], "did you mean programs/sort?"),
        (["check", "nothing-like-it"], "no recipe"),
        (["show", "equal-zero", "--set", "epsilon=0"], "epsilon = 0", "positive"),
        (["show", "equal-zero", "--set", "epsilon"], "name=value"),
        (["show", "equal-zero", "--set", "espilon=1"], "did you mean epsilon"),
        (["show", "cpwl", "--set", "knots=[2,1]", "--set", "values=[0,0]"], "2 before 1"),
        (["show", "cpwl", "--set", "knots=[2"], "list of numbers"),
        (["show", "linear", "--set", "matrix=[[1],[1,2]]"], "rows"),
        (["show", "linear", "--set", "matrix=[[NaN]]"], "finite"),
        (["show", "scale", "--set", "factor=1e400000000000"], "factor"),
        (["run", "dyck-1", "--file", tmp_path / "absent"], "absent", "No such file"),
        (["run", "dyck-1", "--file", tmp_path], "directory"),
        (["run", "dyck-1", "--file", tmp_path / ("x" * 300)], "xxx (File name too long)"),
        (["run", "dyck-1", "--file", binary], "byte 1", "UTF-8"),
        (["run", "dyck-1", "--file", nul], "NUL"),
        (["run", "dyck-1", "()", "--file", binary], "given once"),
        (["run", "min", "[1]"], "min must be given 2 numbers", "received 1"),
        (["run", "and", "[1]"], "give 2, or set width"),
        (["run", "min", "[1, 2"], "JSON list of 2 numbers"),
        (["run", "min", "[[1, 2]]"], "JSON list"),
        (["run", "min", '[1, "x"]'], "'x'"),
        (["run", "min", "[1, null]"], "None"),
        (["run", "min", "[1, NaN]"], "finite"),
        (["run", "min", "[1, 1e999]", "--arithmetic", "float32"], "finite"),
        (["run", "scale", "[60000]", "--arithmetic", "float16"], "inf"),
        (["run", "relu-by-gelu", "[1]", "--arithmetic", "exact"], "other than ReLU", "float64"),
        (["run", "min", "[1, 2]", "--arithmetic", "flaot32"], "did you mean float32"),
        (["run", "min", "[1, 2]", "--engine", "fast"], "engine"),
        (["list", "--chapter", "feedforward"], "did you mean feed-forward"),
        (["frobnicate"], "frobnicate"),
        (["run"], "MODEL"),
        (["show", "min", "--colour"], "--colour"),
        (["check", "dyck-1", "--max-length", "ten"], "ten"),
        (["check", "dyck-1", "--max-length", "-1"], "at least 0"),
        (["check", "--against", f"{broken}:f"], "whole catalogue"),
        (["check", "dyck-1", "--against", "oracle.py"], "FILE.py:NAME"),
        (["check", "min", "--max-length", "4"], "a recipe on strings"),
        (["check", "dyck-1", "--max-length", "30"], "at most 24"),
        (["run", "min", "[1, 2]", "--trace"], "on strings"),
        (["check", "min", "--against", f"{broken}:f"], "min"),
        (
            ["check", "dyck-1", "--against", f"{broken}:f"],
            "broken.py, line 4: return 1/0: a reference must answer",
            "ZeroDivisionError",
        ),
        (["check", "dyck-1", "--against", f"{raising}:f"], "raising.py, line 2: value = json"),
        (["run", f"{within}:p", "ab"], "within.py, line 4: return {}['no']: a file of", "KeyError"),
        (["compile", "dyck-1", "-o", tmp_path / "f"], "write programs/dyck-1 for", "FILE.py:NAME"),
        (["compile", "zzz", "-o", tmp_path / "f"], "write programs/NAME for", "transformist list"),
        (["check", "dyck-1", "--against", "dyck-1"], "write programs/dyck-1 for"),
        (["check", "dyck-1", "--against", f"{broken}:g"], "no function of the file"),
        (["check", "dyck-1", "--against", f"{broken}:not_callable"], "no function of the file"),
        (["check", "dyck-1", "--against", f"{syntax}:f"], "SyntaxError"),
        (["check", "dyck-1", "--against", "absent.py:f"], "absent.py"),
        (["check", "dyck-1", "--set", "max_length=4"], "--against"),
        (["show", "programs/dyck-1", "--set", "positions=2"], "positions must be a list of names"),
        (["show", "programs/dyck-1", "--set", "positions=[[1]]"], "no position function has"),
        (["certify", "dyck-1", "--set", "self=1"], "no parameter of this recipe", "'self'"),
        (["run", "dyck-1", "()", "--set", "self=1"], "no parameter of this recipe", "'self'"),
        *(
            ([*command, "--set", f"max_length=1{'0' * 400}"], "must be a whole number from 1 to")
            for command in (
                ["compile", "programs/parity", "-o", tmp_path / "f"],
                ["certify", "programs/parity"],
                ["certify", "dyck-1"],
                ["run", "programs/dyck-1", "()"],
            )
        ),
        (["run", "min", '["1e9_9_9_9_9_9_9_9", 1]'], "an exponent must be between"),
        (["run", "min", '["1e９９９９９９９９９", 1]'], "an exponent must be between"),
        (["show", "scale", "--set", "factor=1e9_9_9_9_9_9_9_9"], "factor"),
        (["run", "dyck-1", "()", "--arithmetc", "float32"], "'--arithmetc'", "--arithmetic"),
        (["run", "dyck-1", "--arithmetc", "float32"], "'--arithmetc'", "--arithmetic"),
        (["run", "dyck-1", "--jsn"], "no option has this name", "did you mean --json"),
        (["run", "dyck-1", "()", "--zzz"], "'--zzz'", "choose from"),
        (["run", "dyck-1", "--zzz"], "received '-' at position 1"),
    ]


def test_an_input_may_be_like_an_option(capsys):
    code, _, err = run(capsys, "run", "dyck-1", "--", "--json")
    assert code == 2 and "received '-' at position 1" in err
    alphabet = ("--set", "alphabet=-jsno")
    for given in (["-on"], ["--", "--on"], ["--", "--json"]):
        code, out, _ = run(capsys, "run", "induction-most-recent", *alphabet, "--json", *given)
        got = json.loads(out)
        assert got["answer"].startswith("-") and got["length"] == len(given[-1])


@pytest.mark.parametrize(
    "command", [["show"], pytest.param(["compile", "-o", "f"], marks=pytest.mark.slow)]
)
def test_a_program_that_does_not_fit_the_usual_length_has_the_largest_that_fits(
    capsys, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    warned = "does not fit the usual N = 256: it is compiled for N = 255, the largest that fits"
    code, out, err = run(capsys, *command, "programs/dyck-k-d", "--json")
    assert code == 0 and json.loads(out)["max_length"] == 255 and warned in err
    code, _, err = run(capsys, "show", "programs/dyck-k-d", "--set", "max_length=256")
    assert code == 2 and "max_length=255 fits" in err
    assert run(capsys, "show", "programs/dyck-1", "--json")[2] == ""


def test_a_check_says_whether_the_empty_string_was_tried(capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import transformist as tf\n@tf.program(alphabet='ab')\ndef p(x):\n"
        "    return (x == 'a').tag()\n@tf.program(alphabet='ab')\ndef q(x):\n"
        "    return (x == 'a').any().accept()\n"
    )
    for name, words in (("p", "every string of length 1 to 2"), ("q", "every string to length 2")):
        given = f"{path}:{name}"
        (row,) = answer(capsys, "check", given, "--max-length", 2)["recipes"]
        assert row["covered"] == f"{words} with softmax and {words} with average-hard"
        (row,) = answer(capsys, "check", given, "--against", given, "--max-length", 2)["recipes"]
        assert row["covered"] == words
        assert row["cases"] == (6 if name == "p" else 7)


def test_a_search_names_the_weighting_and_those_left_out(capsys):
    few = ("--work", 1000, "--arithmetic", "float16")
    got = answer(capsys, "precision", "induction-most-recent", *few)
    assert got["weighting"] == "rightmost-hard"
    assert got["other_weightings"] == ["average-hard", "softmax"]
    code, out, _ = run(capsys, "precision", "mean", *few, "--set", "weighting=average-hard")
    assert code == 0 and "mean with average-hard weights; not searched: softmax (--set" in out
    assert "weighting" not in answer(capsys, "precision", "position-power", *few)


def test_every_bad_request_is_one_line_and_exit_code_2(capsys, tmp_path):
    for arguments, *words in bad_requests(tmp_path):
        for more in ([], ["--json"]):
            code, out, err = run(capsys, *arguments, *more)
            assert code == 2, (arguments, out)
            assert out == "", arguments
            assert err.startswith("error: ") and err.count("\n") == 1, (arguments, err)
            for word in words:
                assert word in err, (arguments, err)


@pytest.mark.parametrize(
    ("name", "given", "setting"),
    [
        ("multiply-by-gelu", "[0.5, 0.25]", "hi=1e80"),
        ("greater-than-zero", '["1/3"]', "epsilon=1e-320"),
        ("identity-by-tanh", '["1/3"]', "hi=1e300"),
        ("soften", "[[1, 1], [1, 0]]", "max_length=1000000000000"),
    ],
)
def test_a_setting_beyond_what_float64_computes_is_refused(capsys, name, given, setting):
    code, out, err = run(capsys, "run", name, given, "--set", setting)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert "must be within float64; received values for which one is not" in err


def test_the_installed_command_prints_no_traceback():
    command = [sys.executable, "-m", "transformist", "run", "dyck-1", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert "Traceback" not in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("transformist list | head -1", 0),
        ("transformist run dyck-1 <&-", 2),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [
                ("transformist list --json | head -c 1", 0),
                ("PYTHONIOENCODING=ascii transformist show min", 0),
                ("transformist list >&-", 2),
                ("transformist list --json >&-", 2),
                ("transformist list > /dev/full", 2),
                ("transformist list --json > /dev/full", 2),
                ("transformist show identity --set width=1000000000", 2),
                ("transformist run dyck-1 $'\\xff('", 2),
            ]
        ),
    ],
)
def test_pipes_encodings_and_closed_streams(command, code):
    words = command.replace("transformist", f"{sys.executable} -m transformist", 1)
    done = subprocess.run(["bash", "-o", "pipefail", "-c", words], capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr and done.stderr.count(b"\n") == (code == 2)


@pytest.mark.parametrize("nowhere", ["2>&-", pytest.param("2>/dev/full", marks=pytest.mark.slow)])
def test_errors_never_go_to_standard_output(nowhere):
    words = f"{sys.executable} -m transformist run dyck-1 x --json"
    done = subprocess.run(["bash", "-c", f"{words} {nowhere}"], capture_output=True, check=False)
    assert done.stdout == b"" and done.returncode == 2


def test_ctrl_c_is_one_line_and_exit_code_130(capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("transformist.cli.run.evaluate", interrupted)
    code, out, err = run(capsys, "run", "dyck-1", "()", "--engine", "structured", "--json")
    assert (code, out, err.strip()) == (130, "", "error: interrupted")


def test_help_and_version(capsys):
    code, out, err = run(capsys)
    assert code == 0 and "Usage" in out and err == ""
    code, out, _ = run(capsys, "--version")
    assert code == 0 and tf.__version__ in out
    for command in ("demo", "list", "show", "run", "check", "compile"):
        code, out, _ = run(capsys, command, "--help")
        assert code == 0 and "Usage" in out


class TestLists:
    """Recipes on lists of vectors and on positions."""

    def test_a_lookup_takes_queries_and_values_and_adds_the_positions(self, capsys):
        got = answer(capsys, "run", "quadratic-lookup", "[[2, 10], [1, 20]]")
        assert got["answer"] == [[20], [10]] and got["length"] == 2
        assert got["error_bound"] == [0] and got["input_rounded"] is False
        exact = answer(
            capsys, "run", "prefix-mean", '[["1/3", 1], [1, 2]]', "--arithmetic", "exact"
        )
        assert exact["answer"] == [["1/3", 1], ["2/3", "3/2"]]
        rounded = answer(capsys, "run", "one-hot-lookup", '[[1, "1/3"]]', "--arithmetic", "float16")
        assert rounded["input_rounded"] is True

    def test_positions_take_n(self, capsys):
        assert answer(capsys, "run", "position-power", "2")["answer"] == [[1, 1, 1], [2, 4, 8]]
        assert answer(capsys, "run", "first", "3")["answer"] == [[1], [0], [0]]
        code, out, _ = run(capsys, "run", "position-reciprocal", "4")
        assert code == 0 and "0.25" in out

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (
                ["quadratic-lookup", "[[3, 10], [1, 20]]"],
                "from 1 to n, here 2",
            ),
            (["quadratic-lookup", "[[1.5, 10]]"], "a query must be a position"),
            (
                ["quadratic-lookup", "[[1, 1]]", "--set", "weighting=softmax"],
                "claims: average-hard",
            ),
            (["quadratic-lookup", str([[1, 1]] * 40), "--arithmetic", "float16"], "at most 38"),
            (["quadratic-lookup-soft", "[[1, 1]]", "--arithmetic", "exact"], "irrational"),
            (
                [
                    "soften-by-precision",
                    "[[1, 1]]",
                    "--set",
                    "format=float16",
                    "--arithmetic",
                    "float64",
                ],
                "claimed in: float16",
            ),
            (["soften", "[[1, 1]]", "--set", "tolerance=1e400"], "between 0 and 1"),
            (["one-hot-lookup", "[[1, 1], [1, 1]]", "--set", "max_length=1"], "at most N = 1"),
            (["mean", "[1, 2]"], "each vector must have 2 numbers"),
            (["mean", "[[1, 2], [3]]"], "received 1 at position 2"),
            (["mean", '{"1": 2}'], "JSON list of vectors"),
            (["mean", "[[true, 1]]"], "JSON list of vectors"),
            (["mean", "[]"], "JSON list of vectors"),
            (["mean", "[[1, NaN]]"], "JSON list of vectors"),
            (["first", "0"], "from 1 to"),
            (["position-reciprocal", "9999999"], "from 1 to"),
            (["mean", "[[1, 2]]", "--trace"], "--trace must come with a model on strings"),
            (
                ["mean", "[[1, 2]]", "--ignore-others"],
                "--ignore-others must come with a model on strings",
            ),
            (["dyck-k-d", "()", "--set", "depth=0"], "depth must be a whole number from 1"),
            (["dyck-k-d", "()", "--set", "kinds=0"], "kinds must be a whole number from 1"),
            (["dyck-k-d", "()", "--set", "kinds=5"], "JSON list"),
            (["dyck-k-d", "([)]" * 30, "--arithmetic", "bfloat16"], "at most 85"),
            (["position-almost-orthogonal", "3", "--set", "width=2"], "none among 64 families"),
            (["position-almost-orthogonal", "3", "--set", "epsilon=1e-300"], "must hold at most"),
            (["position-almost-orthogonal", "3", "--set", "epsilon=1/2"], "ε < 1/2"),
            (["position-sinusoidal", "3", "--set", "width=3"], "in pairs"),
            (["predecessor", "[1]", "--set", "lo=1", "--set", "hi=1"], "lo < hi"),
            (["induction-most-recent", "ab", "--set", "alphabet=aa"], "different characters"),
        ],
    )
    def test_what_cannot_be_met_is_refused_in_a_line(self, capsys, arguments, words):
        code, out, err = run(capsys, "run", *arguments)
        assert code == 2 and out == "" and words in err and err.count("\n") == 1

    def test_softmax_without_exact_arithmetic(self, capsys):
        arguments = ["run", "induction-most-recent", "abab", "--set", "weighting=softmax"]
        code, _, err = run(capsys, *arguments, "--arithmetic", "exact")
        assert code == 2 and "claimed in: float64" in err
        empty = ["run", "induction-most-recent", "", "--set", "alphabet=ab"]
        assert answer(capsys, *empty)["answer"] == ""


class TestFiles:
    """Real input."""

    def test_the_brackets_of_a_file(self, capsys, tmp_path):
        path = tmp_path / "some.json"
        path.write_text('{"a": [1, 2, {"b": [3]}],\n "c": [4}}\n')
        arguments = [
            "run",
            "dyck-k-d",
            "--set",
            "kinds=3",
            "--set",
            "depth=20",
            "--file",
            str(path),
        ]
        got = answer(capsys, *arguments, "--ignore-others")
        assert got["answer"] is False and got["position"] == 1
        assert got["place"] == f"{path}, line 1, column 1"
        assert got["related"] == [f"{path}, line 2, column 7", f"{path}, line 2, column 9"]
        path.write_text('{"a": [1, 2, {"b": [3]}]}')
        assert answer(capsys, *arguments, "--ignore-others")["answer"] is True
        code, out, _ = run(capsys, *arguments, "--ignore-others")
        assert code == 0 and out.startswith("accepted: every bracket is matched")

    def test_how_often_induction_predicts_the_next_character(self, capsys, tmp_path):
        path = tmp_path / "text"
        path.write_text("abcabcabd")
        got = answer(capsys, "run", "induction-most-recent", "--file", str(path))
        # by hand: a, b, c predict themselves first; then bca bca b, of which the last b errs
        assert got["answer"] == "abcbcabcd" and (got["predicted"], got["of"]) == (4, 8)
        code, out, _ = run(capsys, "run", "induction-most-recent", "--file", str(path))
        assert code == 0 and "predicted at 4 of 8 positions (50.0 %)" in out

    def test_numbers_for_many_kinds(self, capsys):
        got = answer(capsys, "run", "dyck-k-d", "--set", "kinds=5", "[1, 5, -5, -2]")
        assert got["answer"] is False and got["related"] == [
            "the input, number 1",
            "the input, number 4",
        ]
        kept = ["run", "dyck-k-d", "--set", "kinds=5", "[1, 9, -1]", "--ignore-others"]
        assert answer(capsys, *kept)["answer"] is True
