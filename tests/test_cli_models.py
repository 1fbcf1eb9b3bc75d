"""What MODEL may be on the command line: a recipe, a program, a saved file; and `compile`."""

import dataclasses
import io
import json
import os
import re

import pytest

import transformist as tf
from command_line import answer, run
from transformist.arithmetic import number_system
from transformist.cli import printing
from transformist.cli.options import COMPILER_OPTIONS
from transformist.compiler import HEADS, POSITION_CODES, TARGETS, WEIGHTINGS
from transformist.errors import InvalidValue, UnknownName
from transformist.named import find_model
from transformist.named.named_file import NamedFile
from transformist.named.named_program import NamedProgram
from transformist.named.named_recipe import NamedRecipe
from transformist.programs import PROGRAMS
from transformist.texts import Text, TextSource
from transformist.user_files import load_function, load_program

TWO_PROGRAMS = """
import transformist as tf

@tf.program(alphabet="012")
def descending(x):
    above = sum((x == v) * x.isin([w for w in "012" if w > v]).count() for v in "012")
    equal = sum((x == v) * (x == v).count("strict-future") for v in "012")
    return (x.position() - 1).select(above + equal).rightmost(x, default="0").tag()

@tf.program(alphabet="ab")
def last(x):
    return (x == "a").tag()
"""

SOURCE = '''
import transformist as tf

@tf.program(alphabet="()")
def nested(x):
    """Whether the parentheses are well nested."""
    balance = x.map({"(": 1, ")": -1}).prefix_mean()
    return ((balance == 0) & (balance >= 0).all_so_far()).accept()

@tf.program(alphabet="ab")
def share(x):
    """The fraction of a up to each position."""
    return (x == "a").prefix_mean().tag()

@tf.program(alphabet="ab")
def both_ways(x):
    return (((x == "a").prefix_mean() > 0) & ((x == "a").mean() > "1/2")).accept()

def balanced(x):
    while "()" in x:
        x = x.replace("()", "")
    return x == ""

def silent(x):
    pass

def even(x):
    return x.count("(") == x.count(")")
'''


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def models(source, tmp_path):
    """The four ways to name a model that judges parentheses."""
    saved = tmp_path / "saved"
    tf.save(tf.recipe("dyck-1").build(max_length=16), saved)
    return {
        "recipe": "dyck-1",
        "packaged": "programs/dyck-1",
        "file": f"{source}:nested",
        "saved": str(saved),
    }


FLOAT64 = number_system("float64")

KINDS = ("recipe", "packaged", "file", "saved")


class TestNames:
    def test_each_kind(self, models):
        kinds = {"recipe": NamedRecipe, "saved": NamedFile}
        for kind, given in models.items():
            named = find_model(given, {})
            assert type(named) is kinds.get(kind, NamedProgram) and named.name == given
            assert named.takes_strings and named.alphabet(1, FLOAT64) == ("(", ")")

    def test_a_recipe_comes_before_a_file_and_a_program_before_a_directory(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "dyck-1").write_text("not a model")
        (tmp_path / "programs").mkdir()
        (tmp_path / "programs" / "dyck-1").write_text("not a model")
        model = tf.recipe("parity").build()
        tf.save(model, tmp_path / "programs" / "own")
        assert isinstance(find_model("dyck-1", {}), NamedRecipe)
        assert isinstance(find_model("programs/dyck-1", {}), NamedProgram)
        assert find_model("programs/own", {}).alphabet(1, FLOAT64) == model.alphabet

    def test_a_file_may_have_a_colon_in_its_name(self, tmp_path):
        tf.save(tf.recipe("parity").build(), tmp_path / "a:b.py:c")
        assert isinstance(find_model(str(tmp_path / "a:b.py:c"), {}), NamedFile)

    @pytest.mark.parametrize("given", ["", "xyzzy", "\0", "no/such.safetensors", "x" * 5000])
    def test_what_is_no_name_is_told_what_it_may_be(self, given):
        with pytest.raises(
            UnknownName, match=r"^MODEL must be a recipe's name, a packaged program \(pro"
        ):
            find_model(given, {})

    def test_near_names(self):
        with pytest.raises(UnknownName, match=r"did you mean programs/dyck-1 or "):
            find_model("programs/dyck1", {})

    def test_functions_and_programs(self, source):
        assert load_function(f"{source}:balanced")("()") is True
        assert load_function("programs/majority") is PROGRAMS["majority"]
        assert load_function(f"{source}:nested") == PROGRAMS["dyck-1"]
        assert load_program(f"{source}:nested").name == "nested"

    @pytest.mark.parametrize("name", ["", ":balanced"])
    def test_a_file_of_functions_that_are_not_programs(self, tmp_path, name):
        path = tmp_path / "plain.py"
        path.write_text(
            "from math import sqrt\nfrom os.path import join\ndef balanced(x): return x"
        )
        refusal = r"received balanced in .*, without @tf.program; .* above def balanced$"
        with pytest.raises(InvalidValue, match=refusal):
            load_program(f"{path}{name}")
        with pytest.raises(UnknownName, match="there are none"):
            load_program(f"{path}:join")

    def test_an_assignment_that_is_refused_hides_no_other_name(self, tmp_path):
        path, start = tmp_path / "sort.py", TWO_PROGRAMS
        path.write_text(f"{start}after = other = tf.answered_after(descending)\n")
        assert load_program(f"{path}:last").name == "last"
        for name in ("after", "other"):
            with pytest.raises(InvalidValue, match="a select that is none of these"):
                load_program(f"{path}:{name}")
        path.write_text(f"{start}\nprint(tf.answered_after(descending))\n")
        with pytest.raises(InvalidValue, match=r"\(raised by sort.py, line 14: print\("):
            load_program(f"{path}:last")

    @pytest.mark.parametrize(
        "command",
        [pytest.param(("export", "-o", "x"), marks=pytest.mark.hosts), ("certify",)],
        ids=lambda command: command[0],
    )
    def test_a_form_that_is_refused_is_not_advised(self, tmp_path, capsys, command):
        """The tags of `descending` need the whole input; its select cannot be computed after it."""
        if command[0] == "export":
            pytest.importorskip("torch", reason="torch is not installed (extra `huggingface`)")
        path = tmp_path / "sort.py"
        path.write_text(TWO_PROGRAMS)
        code, _, err = run(capsys, *command, f"{path}:descending", "--host", "gpt2")
        assert code == 2 and "a select that is none of these; use only these" in err
        assert "answered_after" not in err and "masks=any" not in err
        assert "for gpt2, after its input" in err
        assert (command[0] == "export") == ("a host of all masks: transformist export" in err)
        assert (command[0] == "certify") == ("or leave out --host" in err)


class TestRun:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize(
        ("string", "expected"), [("(()())", True), (")(", False), ("", True), ("(" * 16, False)]
    )
    def test_every_kind(self, capsys, models, kind, string, expected):
        got = answer(capsys, "run", models[kind], string)
        keys = ("model", "length", "answer", "arithmetic", "engine")
        assert [got[key] for key in keys] == [
            models[kind],
            len(string),
            expected,
            "float64",
            "reference",
        ]
        assert ("within_claim" in got) is (kind == "recipe")

    @pytest.mark.parametrize("kind", KINDS)
    def test_in_words_with_the_layers(self, capsys, models, kind):
        code, out, _ = run(capsys, "run", models[kind], "())", "--trace", "--arithmetic", "float32")
        assert code == 0 and out.startswith("rejected")
        assert "layer 0 attention" in out and f"{models[kind]} on 3 symbols in float32: " in out

    def test_a_program_is_compiled_for_the_length(self, capsys):
        for length, built in ((0, 16), (3, 16), (16, 16), (17, 32)):
            code, out, _ = run(capsys, "run", "programs/dyck-1", "(" * length)
            assert code == 0 and out.rstrip().endswith(f"N = {built}")
        code, out, _ = run(capsys, "run", "programs/dyck-1", "(", "--set", "max_length=5")
        assert code == 0 and out.rstrip().endswith("N = 5")

    def test_a_program_is_compiled_for_the_arithmetic_it_is_run_in(self, capsys):
        long = "1" * 1200  # float32 keeps the margins of parity up to N = 1121
        assert run(capsys, "run", "programs/parity", long)[0] == 0
        code, out, err = run(capsys, "run", "programs/parity", long, "--arithmetic", "float32")
        assert code == 2 and out == "" and "in float32 must be below" in err
        assert run(capsys, "run", "programs/parity", long, "--set", "arithmetic=float32")[0] == 2
        for arithmetic in ("exact", "interval"):  # of any N
            options = ("--set", "max_length=9999", "--set", "weighting=average-hard")
            fits = ("run", "programs/parity", "01", *options, "--arithmetic", arithmetic)
            assert run(capsys, *fits)[::2] == (0, "")

    def test_where_the_length_rounded_up_does_not_fit_it_is_compiled_for_the_length(self, capsys):
        fits = ("run", "programs/dyck-1", "--arithmetic", "float16")
        code, out, err = run(capsys, *fits, "(" * 63)  # N = 64 is refused in float16
        assert code == 0 and out.rstrip().endswith("N = 63") and err == ""
        code, out, err = run(capsys, *fits, "(" * 64)
        assert code == 2 and "max_length=63 fits" in err
        code, out, err = run(capsys, *fits, "()", "--set", "max_length=64")
        assert code == 2 and "max_length=63 fits" in err

    def test_a_format_for_which_nothing_is_compiled_is_marked(self, capsys, tmp_path):
        path = tmp_path / "model"
        run(capsys, "compile", "programs/dyck-1", "-o", path)
        for model, more in (
            ("programs/dyck-1", ("--set", "arithmetic=float32")),
            (path, ()),
        ):
            arguments = ("run", model, "()", "--json", *more, "--arithmetic")
            for fine in ("float32", "float64", "interval"):
                assert run(capsys, *arguments, fine)[2] == ""
            line = f"warning: {model} is compiled for float32: in %s the answer may be wrong\n"
            for narrow in ("bfloat16", "float16"):
                code, out, err = run(capsys, *arguments, narrow)
                assert code == 0 and "answer" in json.loads(out)
                assert err == line % narrow
            against = ("check", model, *more, "--against", "programs/dyck-1", "--max-length", 1)
            assert run(capsys, *against, "--arithmetic", "bfloat16")[2] == line % "bfloat16"
            assert run(capsys, *against, "--arithmetic", "float32")[2] == ""

    def test_which_formats_are_as_fine(self, capsys, tmp_path):
        path = tmp_path / "model"
        for built, run_in, fine in (
            ("float16", "float32", True),
            ("float16", "bfloat16", False),
            ("bfloat16", "float16", False),
            ("float64", "float32", False),
            ("exact", "float64", False),
            ("exact", "interval", True),
        ):
            options = ("--set", f"arithmetic={built}", "--set", "max_length=1")
            assert run(capsys, "compile", "programs/dyck-1", "-o", path, *options)[0] == 0
            err = run(capsys, "run", path, "(", "--arithmetic", run_in)[2]
            expected = f"warning: {path} is compiled for {built}: in {run_in} the answer may be"
            assert err == "" if fine else err.startswith(expected), (built, run_in)

    def test_no_warning_where_a_certificate_in_the_file_holds(self, capsys, tmp_path):
        """For all lengths, in an order of the engine."""
        model = tf.compile(PROGRAMS["dyck-1"], max_length=30, arithmetic="exact")
        path = tmp_path / "model"

        def warned(of, *certificates, engine="reference"):
            tf.save(of, path, certificates)
            arguments = ("run", path, "()", "--arithmetic", "float32", "--engine", engine)
            lines = run(capsys, *arguments)[2].splitlines()  # on a busy machine also of progress
            return "".join(line for line in lines if line.startswith("warning:"))

        holds = tf.certify(model, "float32", 30)
        assert warned(model).startswith("warning:") and warned(model, holds) == ""
        assert warned(model, tf.certify(model, "float32", 29)).startswith("warning:")
        assert warned(model, tf.certify(model, "float64", 30)).startswith("warning:")
        assert warned(model, holds, engine="structured").startswith("warning:")
        structured = tf.certify(model, "float32", 30, "structured")
        assert warned(model, structured, engine="structured") == ""
        assert warned(model, structured).startswith("warning:")

    def test_a_recipe_in_a_file_has_no_arithmetic_that_it_is_built_for(self, capsys, tmp_path):
        tf.save(tf.recipe("dyck-1").build(max_length=4), tmp_path / "model")
        assert tf.load(tmp_path / "model").built_for is None
        assert run(capsys, "run", tmp_path / "model", "()", "--arithmetic", "bfloat16")[2] == ""

    def test_a_file_with_other_characters(self, capsys, models, tmp_path):
        path = tmp_path / "code"
        path.write_text("f(x))\n")
        for model in models.values():
            got = answer(capsys, "run", model, "--file", path, "--ignore-others")
            assert got["answer"] is False and got["length"] == 3

    def test_fractions(self, capsys, source):
        got = answer(capsys, "run", f"{source}:share", "aba")
        assert got["answer"] == [1, "1/2", "2/3"]
        code, out, _ = run(capsys, "run", f"{source}:share", "aba")
        assert code == 0 and out.startswith("1 1/2 2/3\n")

    def test_symbols_that_are_no_characters(self, capsys, tmp_path):
        embedding = tf.Embedding(symbols=("no", "yes", 3), vectors=[[-1], [1], [0]])
        read_out = tf.MultiClass(W_out=[[1], [-1]], labels=(7, "minus"), at="last")
        model = tf.Transformer(
            stream=tf.Stream(("x",)), embedding=embedding, layers=(), read_out=read_out
        )
        tf.save(model, tmp_path / "model")
        assert answer(capsys, "run", tmp_path / "model", '["no", "yes"]')["answer"] == 7
        assert answer(capsys, "run", tmp_path / "model", '["yes", "no"]')["answer"] == "minus"
        code, out, _ = run(capsys, "run", tmp_path / "model", "[3]")
        assert code == 0 and out.startswith("7\n")
        more = ("run", tmp_path / "model", '["maybe", "no"]', "--ignore-others")
        assert answer(capsys, *more)["length"] == 1
        assert Text.over((1, -1), TextSource.given("[1, 2]"), ignore_others=True).symbols == (1,)


class TestCompile:
    def test_what_is_compiled_is_saved_and_runs(self, capsys, models, tmp_path):
        for kind in ("packaged", "file"):
            path = tmp_path / f"{kind}.safetensors"
            got = answer(capsys, "compile", models[kind], "-o", path, "--set", "max_length=20")
            model = tf.load(path)
            heads = sum(len(layer.heads) for layer in model.layers)
            assert got == {
                "program": models[kind],
                "file": str(path),
                "layers": len(model.layers),
                "width": model.width,
                "heads": heads,
                "nonzero": model.nonzero,
                "max_length": 20,
                "weighting": "softmax",
                "arithmetic": "float32",
                "grade": 1,
            }
            assert model.built_for == "float32"
            assert answer(capsys, "run", path, "(())")["answer"] is True
        code, out, _ = run(capsys, "compile", models["packaged"], "-o", path)
        assert code == 0 and out.count("\n") == 1
        assert out.startswith(f"programs/dyck-1 → {path}: ")
        assert out.endswith("; N = 256, softmax, float32, certified (grade 1)\n")
        assert tf.load(path).max_length == 256

    def test_the_options_reach_the_compiler(self, capsys, tmp_path, source):
        path = tmp_path / "model"

        def compiled(program, **options):
            pairs = [word for pair in options.items() for word in ("--set", "=".join(pair))]
            return answer(capsys, "compile", program, "-o", path, *pairs)

        def heads():
            return [len(layer.heads) for layer in tf.load(path).layers]

        assert compiled("programs/dyck-1", weighting="average-hard")["weighting"] == "average-hard"
        layers = tf.load(path).layers
        assert {head.weighting for layer in layers for head in layer.heads} == {"average-hard"}
        assert compiled(f"{source}:both_ways", max_length="500")["heads"] == 2 and heads() == [2]
        assert compiled(f"{source}:both_ways", max_length="500", heads="one")[
            "layers"
        ] == 2 and heads() == [1, 1]
        for none in ("None", "null"):
            made = compiled("programs/reverse", max_length=none, weighting="average-hard")
            assert made["max_length"] is None and tf.load(path).max_length is None
        assert compiled("programs/reverse", positions='["i", "i^2"]')["layers"] == 2
        assert compiled("programs/majority", masks="future")["layers"] == 1
        assert {head.mask for head in tf.load(path).layers[0].heads} == {"future"}
        narrow = compiled("programs/equal-abc")["width"]
        assert compiled("programs/equal-abc", reuse="false")["width"] > narrow
        named = ("--masks", "none", "--no-reuse")
        assert answer(capsys, "compile", "programs/equal-abc", "-o", path, *named)["width"] > narrow
        assert {h.mask for layer in tf.load(path).layers for h in layer.heads} == {"none"}

    def test_a_file_that_is_there_stays_whole_when_it_fails(self, capsys, tmp_path, monkeypatch):
        def full(_descriptor):
            raise OSError(28, "No space left on device")

        path = tmp_path / "model"
        path.write_text("before")
        monkeypatch.setattr(os, "fsync", full)
        code, out, err = run(capsys, "compile", "programs/dyck-1", "-o", path)
        assert code == 2 and out == "" and "No space left" in err and err.count("\n") == 1
        assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]

    def test_it_says_whether_it_is_certified(self, capsys, tmp_path):
        path = tmp_path / "model"
        assert answer(capsys, "compile", "programs/parity", "-o", path)["grade"] == 1
        _, out, err = run(capsys, "compile", "programs/parity", "-o", path, "--max-length", 40)
        assert out.endswith("float32, certified (grade 1)\n") and not err
        exactly = answer(capsys, "compile", "programs/parity", "-o", path, "--arithmetic", "exact")
        assert exactly["grade"] is None
        # At N = 1 every head has one key, and the differences of scores may be off without harm.
        shares = ("--set", "masks=future", "--set", "positions=bos", "--max-length", 1)
        code, out, err = run(capsys, "compile", "programs/dyck-k-d", "-o", path, *shares)
        assert (code, "certified" in out, err.count("\n")) == (0, False, 1)
        assert f"transformist certify {path} looks for a smaller N" in err


class TestCheck:
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_against_a_function_and_a_program(self, capsys, models, source, kind):
        for against in (f"{source}:balanced", f"{source}:nested", "programs/dyck-1"):
            got = answer(capsys, "check", models[kind], "--against", against, "--max-length", 6)
            (row,) = got["recipes"]
            assert got["held"] and row["name"] == models[kind] and row["cases"] == 127
        arguments = ("check", models[kind], "--against", f"{source}:even", "--json")
        code, out, _ = run(capsys, *arguments)
        found = json.loads(out)["recipes"][0]["counterexample"]
        assert code == 1 and found["input"] == ")(" and found["expected"] is True

    def test_a_program_against_what_is_compiled(self, capsys, models):
        for kind in ("packaged", "file"):
            (row,) = answer(capsys, "check", models[kind], "--max-length", 5)["recipes"]
            assert row["held"] and row["name"] == models[kind] and row["cases"] == 2 * 63
            assert row["arithmetics"] == ["float32", "exact"]

    def test_no_longer_strings_than_the_model_is_built_for(self, capsys, source, tmp_path):
        path = tmp_path / "short"
        tf.save(tf.recipe("dyck-1").build(max_length=4), path)
        arguments = ("check", path, "--against", f"{source}:balanced")
        (row,) = answer(capsys, *arguments)["recipes"]
        assert row["covered"] == "every string to length 4" and row["cases"] == 31
        code, out, err = run(capsys, *arguments, "--max-length", "5")
        assert code == 2 and out == "" and "at most N = 4; received length 5" in err

    def test_the_programs_follow_the_recipes(self, capsys, monkeypatch):
        from transformist.cli import check

        one = tf.verify.check_recipe(tf.recipe("min"))
        monkeypatch.setattr(check, "check_recipes", lambda names, length, jobs: iter([one]))
        monkeypatch.setattr(tf.verify.suite, "TRIED", (("softmax", "float32", 2**4),))
        rows = answer(capsys, "check")["recipes"]
        assert [row["name"] for row in rows] == ["min", *(f"programs/{name}" for name in PROGRAMS)]
        assert all(row["held"] and row["cases"] >= 5 for row in rows)

    def test_it_says_what_a_program_is_compared_with(self, capsys, models):
        code, out, _ = run(capsys, "check", models["file"], "--max-length", 3)
        assert code == 0 and out.count("\n") == 2
        assert "the weights compute what the program says" in out
        assert out.endswith(f"transformist check {models['file']} --against FILE.py:NAME\n")
        assert "the program says" not in run(capsys, "check", "and", "--max-length", 3)[1]

    def test_what_is_compiled_wrongly_is_found(self, capsys, monkeypatch):
        from transformist.verify import suite

        right = tf.recipe("dyck-1").build(max_length=16)
        vectors = right.embedding.vectors[[1, 0, 2]]
        embedding = dataclasses.replace(right.embedding, vectors=vectors)
        model = dataclasses.replace(right, embedding=embedding)
        for weighting, arithmetic in (("softmax", "float32"), ("average-hard", "exact")):
            monkeypatch.setattr(
                suite,
                "compile_program",
                lambda _, weighting, wrong=weighting, **__: model if weighting == wrong else right,
            )
            code, out, _ = run(capsys, "check", "programs/dyck-1", "--json")
            found = json.loads(out)["recipes"][0]["counterexample"]
            assert code == 1 and found["input"] == "()" and found["arithmetic"] == arithmetic
            assert found["settings"] == f"weighting={weighting}"


class TestShow:
    def test_a_program_and_what_is_saved_of_it(self, capsys, models, tmp_path):
        path = tmp_path / "compiled"
        given = ("--set", "max_length=20", "--set", "weighting=average-hard")
        run(capsys, "compile", models["file"], "-o", path, *given)
        facts = answer(capsys, "show", models["file"], *given)
        saved = answer(capsys, "show", path)
        assert saved.pop("name") == str(path) and facts.pop("name") == models["file"]
        assert facts == saved
        model = tf.load(path)
        assert facts["max_length"] == 20 and facts["alphabet"] == ["(", ")"]
        assert (facts["weighting"], facts["arithmetic"]) == ("average-hard", "float32")
        assert facts["nonzero"] == model.nonzero and facts["width"] == len(facts["slots"])
        held = {each["name"]: each for slot in facts["slots"] for each in slot["holds"]}
        assert "mine.py, line 7: x.map(" in held["balance"]["source"]
        trace = model.run("())", "exact")
        after = range(held["balance"]["first"], held["balance"]["last"] + 1)
        assert all([str(v) for v in trace.values("balance", k)][1:] == ["1/2", "0", "-1/4"]
                   for k in after)  # fmt: skip

    def test_in_words(self, capsys, models, short):
        code, out, _ = run(capsys, "show", models["file"])
        assert code == 0 and "N = 256 symbols" in out and "float32" in out and "line 7" in out
        code, out, _ = run(capsys, "show", models["saved"])
        assert code == 0 and "N = 16" in out and "no format is recorded" in out and "balance" in out
        code, out, _ = run(capsys, "show", models["recipe"])
        assert code == 0 and "claim" in out

    def test_a_blank_symbol_is_seen(self, capsys, source):
        source.write_text(SOURCE.replace('alphabet="ab"', 'alphabet="a b"'))
        code, out, _ = run(capsys, "show", f"{source}:share")
        assert code == 0 and "a ' ' b" in out


class TestPrecision:
    def test_the_largest_length_in_each_format(self, capsys, source):
        for weighting in ("softmax", "average-hard"):
            got = answer(capsys, "precision", f"{source}:nested", "--set", f"weighting={weighting}")
            assert got["program"] == f"{source}:nested" and got["weighting"] == weighting
            found = {row["arithmetic"]: row["largest_length"] for row in got["results"]}
            floats = "float64 float32 float16 bfloat16 float8_e5m2 float8_e4m3"
            assert list(found) == floats.split()
            for arithmetic, length in found.items():
                asked = {"weighting": weighting, "arithmetic": arithmetic}
                program = load_program(f"{source}:nested")
                if length:
                    tf.compile(program, max_length=length, **asked)
                if length < got["searched"]:
                    with pytest.raises(tf.TransformistError, match="fits"):
                        tf.compile(program, max_length=length + 1, **asked)

    def test_bounded_and_in_one_format(self, capsys):
        options = ("--arithmetic", "float32", "--max-length", "100")
        got = answer(capsys, "precision", "programs/dyck-1", *options)
        assert got["results"] == [{"arithmetic": "float32", "largest_length": 100}]
        code, out, _ = run(capsys, "precision", "programs/dyck-1", *options)
        assert code == 0 and "100 or more" in out
        assert "certified in it: transformist certify programs/dyck-1\n" in out


def test_the_help_names_what_the_compiler_takes():
    assert f"weighting ({', '.join(WEIGHTINGS)})" in COMPILER_OPTIONS
    assert f"heads ({' or '.join(HEADS)} a layer)" in COMPILER_OPTIONS
    *others, last = TARGETS
    assert f"masks ({', '.join(others)} or {last})" in COMPILER_OPTIONS
    assert f"position_codes ({' or '.join(POSITION_CODES)})" in COMPILER_OPTIONS


def test_the_options_of_the_compiler_are_in_the_help(capsys):
    for command in ("run", "compile"):
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        unwrapped = re.sub(r"-\n +", "-", out)
        for word in ("max_length", "average-hard", "rightmost-hard", "bfloat16", "positions"):
            assert word in unwrapped


def test_what_failed_says_what_was_tried(capsys, models, source):
    arguments = ("check", models["recipe"], "--against", f"{source}:even")
    code, out, _ = run(capsys, *arguments, "--max-length", "8")
    assert code == 1 and "strings to length 8, until one of length 2 failed" in out


def bad_requests(source, saved):
    broken = source.with_name("broken.py")
    broken.write_text("import sys\nsys.exit(3)\n")
    refused = source.with_name("refused.py")
    refused.write_text(
        "import transformist as tf\n\n@tf.program(alphabet='ab')\ndef f(x):\n    return 3\n"
    )
    junk = source.with_name("junk.safetensors")
    junk.write_bytes(b"junk")
    out = source.with_name("out")
    return [
        (["run", "programs/dyck1", "()"], "did you mean programs/dyck-1"),
        (["run", source, "()"], "FILE.py:NAME"),
        (["run", f"{source}:balanced", "()"], "balanced in", "without @tf.program", "file: nested"),
        (["run", f"{source}:nestde", "()"], "did you mean nested"),
        (["run", f"{source}:nested", "(x"], "'x' at position 2"),
        (["run", "absent.py:f", "()"], "absent.py", "No such file"),
        (["run", f"{broken}:f", "()"], "broken.py, which raises SystemExit: 3"),
        (["run", f"{refused}:f", "()"], "refused.py, line ", "a program must return one output"),
        (["run", junk, "()"], "junk.safetensors", "a whole safetensors file"),
        (["run", source.parent, "()"], "is a file that is there"),
        (["run", saved, "()", "--set", "max_length=3"], "received --set max_length", "anew"),
        (["run", saved, "(" * 17], "at most N = 16", "length 17"),
        (["run", saved, "(a"], "'a' at position 2"),
        (["run", "programs/dyck-1", "((", "--set", "max_length=1"], "at most N = 1"),
        (["run", "programs/dyck-1", "()", "--set", "kinds=2"], "no option of the compiler"),
        (["run", "programs/dyck-1", "()", "--set", "weighting=hard"], "'hard'"),
        (["run", "programs/dyck-1", "()", "--arithmetic", "flaot32"], "did you mean float32"),
        (["certify", "programs/dyck-1", "--arithmetic", "int8"], "choose from exact, interval, fl"),
        (["run", "equal-zero", "[1]", "--set", "foo=1"], "the only one is epsilon"),
        (["check", saved], "no --against", "give --against"),
        (["check", saved, "--against", "programs/nothing"], "no packaged program has this name"),
        (
            ["check", saved, "--against", f"{source}:even", "--max-length", "999999999"],
            "at most 24",
        ),
        (["check", "programs/dyck-1", "--max-length", "999999999"], "at most 24"),
        (["check", "programs/histogram", "--max-length", "999999999"], "at most 12"),
        (["check", "programs/dyck-1", "--set", "max_length=4"], "without --against"),
        (["check", "programs/nothing"], "MODEL must be"),
        (["compile", source, "-o", out], f"write {source}:nested or {source}:share or {source}:b"),
        (["check", saved, "--against", f"{source}:silent"], "silent: a reference", "None on ''"),
        (["run", "no/such.safetensors", "()"], "there is no file no/such.safetensors"),
        (["show", "no/such.safetensors"], "MODEL must be", "there is no file no/such.safetensors"),
        (["show", "programs/dyck1"], "MODEL must be", "did you mean programs/dyck-1"),
        (["show", saved, "--set", "max_length=3"], "received --set max_length"),
        (["precision", "programs/dyck1"], "MODEL must be", "did you mean programs/dyck-1"),
        (["precision", saved], "a saved model; name the program"),
        (["precision", "programs/dyck-1", "--work", "9"], "--work with a program"),
        (["precision", "programs/dyck-1", "--set", "max_length=3"], "write --max-length"),
        (["precision", "programs/dyck-1", "--set", "arithmetic=x"], "write --arithmetic"),
        (["precision", "programs/dyck-1", "--set", "weighting=hard"], "'hard'"),
        (["compile", f"{source}:", "-o", out], f"write {source}:nested or {source}:share or"),
        (["compile", out / "none.py:f", "-o", out], "the file must exist", "No such file"),
        (
            ["compile", "programs/dyck-1", "-o", "q.txt"],
            "must not end in .txt",
            "name it q.safetensors",
        ),
        (["compile", "dyck-1", "-o", out], "a program must be programs/NAME, or a file"),
        (["compile", saved, "-o", out], "a program must be programs/NAME, or a file"),
        (["compile", "programs/dyck1", "-o", out], "did you mean dyck-1"),
        (["compile", "programs/dyck-1"], "'-o'"),
        (["compile", "programs/dyck-1", "-o", source.parent], "not a file"),
        (["compile", "programs/dyck-1", "-o", out / "in" / "none"], "No such file or directory"),
        (["compile", "programs/dyck-1", "-o", out, "--set", "wieghting=1"], "mean weighting"),
        (["compile", "programs/dyck-1", "-o", out, "--set", "weighting"], "name=value"),
        (["compile", "programs/dyck-1", "-o", out, "--set", "max_length=ten"], "'ten'"),
        (["compile", "programs/dyck-1", "-o", out, "--set", "max_length=0"], "from 1 to 2^62"),
        (
            ["compile", "programs/dyck-1", "-o", out, "--set", "positions=i"],
            "positions must be a list",
        ),
        (["compile", "programs/reverse", "-o", out, "--set", 'positions=["j"]'], "'j'"),
        (
            ["compile", "programs/reverse", "-o", out, "--set", 'positions=["i/n"]'],
            "line 27",
            "allow",
        ),
    ]


@pytest.mark.parametrize("command", ["compile", "certify"])
@pytest.mark.parametrize("name", ["none/model.safetensors", "model.txt"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    command, name, capsys, tmp_path, monkeypatch
):
    for method in ("compiled", "transformer"):
        monkeypatch.setattr(NamedProgram, method, lambda *_: pytest.fail("it was compiled"))
    code, _, err = run(capsys, command, "programs/dyck-1", "-o", tmp_path / name)
    assert code == 2 and "error: -o: " in err and "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_a_program_that_is_refused_leaves_the_others_of_its_file(capsys, tmp_path):
    """Imports from `__future__` hold for the whole file; none of it runs if its syntax is wrong."""
    file = tmp_path / "both.py"
    head = """from __future__ import annotations
import transformist as tf
print("begun")
"""
    program = """@tf.program(alphabet="ab")
def {}(x: NoSuchName):
    return {}.tag()
"""
    refused, good = program.format("refused", "x.first()"), program.format("good", "x")
    file.write_text(head + refused + good)
    assert answer(capsys, "run", f"{file}:good", "ab")["answer"] == "ab"
    code, _, err = run(capsys, "run", f"{file}:refused", "ab")
    assert code == 2 and "both.py, line 6: x.first(): a category must have a default" in err
    code, _, err = run(capsys, "run", f"{file}:", "ab")
    assert code == 2 and f"write {file}:refused or {file}:good" in err
    code, _, err = run(capsys, "check", f"{file}:good", "--against", f"{file}:refused")
    assert code == 2 and "a category must have a default" in err
    file.write_text(head + good + "return 1")
    code, out, err = run(capsys, "run", f"{file}:good", "ab")
    assert (code, out) == (2, "") and "SyntaxError" in err and "begun" not in err
    file.write_text(head + "tf.compile(1)\n" + good)  # which is no program of the file
    assert run(capsys, "run", f"{file}:good", "ab")[0] == 2


def test_every_bad_request_is_one_line_and_exit_code_2(capsys, source, models):
    for arguments, *words in bad_requests(source, models["saved"]):
        for more in ([], ["--json"]):
            code, out, err = run(capsys, *arguments, *more)
            assert code == 2, (arguments, out)
            assert out == "", arguments
            assert err.startswith("error: ") and err.count("\n") == 1, (arguments, err)
            for word in words:
                assert word in err, (arguments, err)
    assert not source.with_name("out").exists()


def test_a_symbol_of_another_kind_is_told_apart(capsys):
    code, _, err = run(capsys, "run", "programs/sort", '["3", "1"]')
    assert code == 2 and "received '3' at position 1; give the number 3 (--ig" in err
    for model in (PROGRAMS["sort"], tf.compile(PROGRAMS["sort"], max_length=4)):
        with pytest.raises(tf.TransformistError, match="received '1' at position 2; give the numb"):
            model([3, "1"])
        with pytest.raises(tf.TransformistError, match="received '5' at position 1; remove it, or"):
            model(["5"])
    with pytest.raises(tf.TransformistError, match="received 1 at position 1; give the string '1'"):
        tf.recipe("parity").build()([1])


def test_a_blank_symbol_is_seen_in_refusals(capsys, source, tmp_path):
    source.write_text(SOURCE.replace('alphabet="ab"', 'alphabet="a b"'))
    program = load_program(f"{source}:share")
    assert "over a ' ' b, " in repr(program)
    for model in (program, tf.compile(program, max_length=4)):
        with pytest.raises(
            tf.TransformistError, match="every symbol must be one of a ' ' b; received"
        ):
            model("c")


@pytest.mark.slow
def test_without_max_length_some_thousand_strings_are_compared(capsys, source, tmp_path):
    source.write_text(SOURCE.replace('alphabet="ab"', 'alphabet="a123456789"'))
    path = tmp_path / "model"
    run(capsys, "compile", f"{source}:share", "-o", path)
    for model in (f"{source}:share", path):
        (row,) = answer(capsys, "check", model, "--against", f"{source}:share")["recipes"]
        covered = row["cases"], row["covered"]
        assert covered in (
            (11_111, "every string to length 4"),
            (11_110, "every string of length 1 to 4"),
        )


def test_plan_says_how_each_head_is_evaluated(capsys):
    found = answer(capsys, "plan", "programs/reverse", "--set", "weighting=average-hard")
    assert (found["length"], found["arithmetic"]) == (1024, "float64")
    assert [each["method"] for each in found["heads"]] == ["by query", "hull"]
    assert answer(capsys, "plan", "dyck-1", "(()")["length"] == 3
    assert answer(capsys, "plan", "dyck-1", "--length", "2000")["length"] == 2000
    assert answer(capsys, "plan", "programs/dyck-1", "--set", "max_length=9")["length"] == 9
    code, out, _ = run(capsys, "plan", "parity", "10")
    assert code == 0
    assert out.startswith("on the string given, n = 2:\nlayer 0 head 0 (average-hard, mask future)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["min"],
            "the structured engine must come with a model on strings; received plan with min",
        ),
        (["dyck-1", "a"], "received 'a' at position 1"),
        (["dyck-1", "()", "--length", "4"], "received length 4 beside an input"),
        (["dyck-1", "--length", "0"], "--length must be a whole number from 1 to"),
        (["dyck-1", "--arithmetic", "float16"], "compute in float64 or float32"),
        (["programs/dyck-1", "()", "--set", "max_length=1"], "at most N = 1"),
    ],
)
def test_what_has_no_plan(capsys, arguments, message):
    code, out, err = run(capsys, "plan", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_control_characters_stay_in_their_line(capsys, tmp_path):
    path = tmp_path / "model"

    @tf.program(alphabet=["\n", "\x1b", "é"])
    def before(x):
        return x.predecessor(default="é").tag()

    tf.save(tf.compile(before, max_length=8), path)
    names = ("x = \\n", "x = \\x1b")
    for command in (
        ("show", path),
        ("certify", path, "--lines"),
        ("run", path, "é\n\x1b", "--trace"),
    ):
        code, out, _ = run(capsys, *command)
        assert code == 0 and "\x1b" not in out
        assert all(name in out for name in names), out


class TestCertifyingAProgram:
    def test_a_file_bears_the_format_that_it_is_certified_for(self, capsys, tmp_path):
        path = tmp_path / "model"
        for arithmetic, asked in (("float32", "float32"), ("bfloat16", "exact")):
            command = ("certify", "programs/dyck-1", "--arithmetic", arithmetic, "-o", path)
            assert run(capsys, *command)[0] == (arithmetic != asked)
            assert tf.load(path).built_for == asked

    @pytest.mark.parametrize("arithmetic", ["float16", "bfloat16", "float32"])
    def test_a_model_is_certified_for_the_format_that_it_is_compiled_for(
        self, capsys, tmp_path, arithmetic
    ):
        path, options = tmp_path / "model", ("--max-length", "7", "--arithmetic", arithmetic)
        assert run(capsys, "compile", "programs/majority", "-o", path, *options)[0] == 0
        assert answer(capsys, "certify", path)["arithmetic"] == arithmetic
        settings = ("--set", f"arithmetic={arithmetic}", "--max-length", "7")
        assert answer(capsys, "certify", "programs/majority", *settings)["arithmetic"] == arithmetic
        assert answer(capsys, "certify", path, "--arithmetic", "float64")["arithmetic"] == "float64"

    def test_where_it_does_not_hold_an_n_is_named_for_which_it_does(self, capsys):
        command = ("certify", "programs/dyck-1", "--arithmetic", "bfloat16")
        code, out, _ = run(capsys, *command)
        assert code == 1
        assert "compiled for N = 7, programs/dyck-1 is shown to hold" in out
        got = json.loads(run(capsys, *command, "--json")[1])
        assert got["compiled_for"] == 7 and got["holds"] is False
        assert run(capsys, *command, "--max-length", "7")[0] == 0
        assert answer(capsys, *command, "--max-length", "7")["compiled_for"] is None
        code, out, _ = run(capsys, "certify", "programs/parity", "--arithmetic", "float8_e5m2")
        assert code == 1 and "compiled for" not in out

    def test_where_the_n_of_the_compiler_is_not_certified_a_smaller_one_is_named(self, capsys):
        command = ("certify", "programs/histogram", "--max-length")  # up to 1,289 is compiled
        assert "compiled for N = 872, programs/histogram is" in run(capsys, *command, "1500")[1]
        assert run(capsys, *command, "872")[0] == 0 and run(capsys, *command, "873")[0] == 1

    def test_an_n_below_that_of_the_weights_themselves_is_not_named(self, capsys):
        # The compiler's own bounds admit parity up to N = 3, the proof these weights up to 9.
        command = ("certify", "programs/parity", "--arithmetic", "bfloat16", "--max-length", "64")
        code, out, _ = run(capsys, *command)
        assert code == 1 and "shown to hold for N up to 9;" in out and "compiled for" not in out


def test_a_compilation_says_that_it_is_at_work(capsys, tmp_path, monkeypatch):
    terminal = printing.Console(file=io.StringIO(), force_terminal=True)
    monkeypatch.setattr(printing, "err", terminal)
    assert run(capsys, "compile", "programs/majority", "-o", tmp_path / "model")[0] == 0
    assert "compiling programs/majority" in terminal.file.getvalue()
