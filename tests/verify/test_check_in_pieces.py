"""Checks in pieces: whatever order they end in, and wherever a run was ended, one outcome."""

import functools
import itertools
import os
import sqlite3
import subprocess
import sys

import pytest

import transformist as tf
from command_line import answer, run
from transformist.arithmetic import number_system
from transformist.errors import InvalidValue, UnreadableInput
from transformist.programs import PROGRAMS
from transformist.verify import Drawn, checking
from transformist.verify.runs import execution, pieces
from transformist.verify.runs.fingerprint import fingerprint


@pytest.fixture
def small(monkeypatch):
    """Pieces of eight strings of the longest length."""
    monkeypatch.setattr(pieces, "STRINGS", 8)
    monkeypatch.setattr(pieces, "FEWEST_STRINGS", 8)


def is_dyck(x):
    depth = 0
    for symbol in x:
        depth += 1 if symbol == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def strings(symbols, shortest, longest):
    for n in range(shortest, longest + 1):
        yield from itertools.product(symbols, repeat=n)


@pytest.mark.parametrize("most", [2**12, 4])
@pytest.mark.parametrize(("symbols", "longest"), [(1, 5), (2, 0), (2, 7), (3, 4), (5, 3), (40, 2)])
@pytest.mark.parametrize("shortest", [0, 1])
def test_every_string_is_in_one_piece(small, monkeypatch, symbols, longest, shortest, most):
    monkeypatch.setattr(pieces, "MOST_PIECES", most)
    found = [
        (*each.prefix, *rest)
        for each in pieces.pieces(symbols, shortest, longest, None)
        for n in range(each.shortest, each.longest + 1)
        for rest in itertools.product(range(symbols), repeat=n - len(each.prefix))
    ]
    assert sorted(found) == sorted(strings(range(symbols), shortest, longest))
    parts = pieces.pieces(symbols, shortest, longest, Drawn(70, 0, 9, 0))
    assert sum(each.count(symbols) for each in parts) == len(found) + 70


def test_a_check_of_seconds_has_pieces_too():
    # A function may take a millisecond a string: an interruption loses a part of the check.
    for symbols, longest, fewest in ((2, 12, 8), (2, 14, 16), (2, 17, 16), (3, 9, 27), (4, 7, 16)):
        parts = list(pieces.pieces(symbols, 0, longest, None))
        assert len(parts) == fewest + 1


FLOAT64 = number_system("float64")
DYCK = tf.recipe("dyck-1").build(max_length=9)


@tf.program(alphabet=[(0, 1), (1, 0), (1, 1)])
def most_ones(x):
    return ((x == (1, 1)).count("future") > 1).accept(empty=False)


MODELS = {
    "dyck-1": (DYCK, 7),
    "masks that look ahead": (tf.compile(PROGRAMS["majority"], max_length=7), 6),
    "symbols that are tuples": (tf.compile(most_ones, max_length=7), 5),
}


@functools.cache
def answers(name):
    model, length = MODELS[name]
    joined = "".join if isinstance(model.alphabet[0], str) else tuple
    listed = map(joined, strings(model.alphabet, 0, length))
    return {x: model(x) for x in listed}


def reversed_order(subject, parts):
    return execution.in_turn(subject, reversed(list(parts)))


@pytest.mark.parametrize("spread", [execution.in_turn, reversed_order])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("wrong", [[], [0], [-1], [40, 50, 41], [100, 31]])
def test_the_first_wrong_string_is_found_in_any_order(small, name, wrong, spread):
    model, length = MODELS[name]
    right = answers(name)
    listed = list(right)
    bad = [listed[k] for k in wrong]
    subject = execution.Subject(model, lambda x: right[x] != (x in bad), FLOAT64)
    parts = list(pieces.pieces(len(model.alphabet), 0, length, None))
    found = execution.execute(subject, parts, spread=spread)
    assert len(parts) > 5
    if not bad:
        assert (found.cases, found.mismatch) == (len(listed), None)
        return
    first = min(map(listed.index, bad))
    assert found.cases == first + 1
    assert found.mismatch == execution.Mismatch(
        listed[first], not right[listed[first]], right[listed[first]]
    )


@pytest.mark.parametrize("spread", [execution.in_turn, reversed_order])
@pytest.mark.parametrize(
    ("wrong", "raises"), [("((())", "()))))"), ("()))))", "((())"), (")()))(", "()()()")]
)
def test_of_an_error_and_a_wrong_string_the_first_decides(small, spread, wrong, raises):
    def reference(x):
        if x == raises:
            raise ValueError("no answer")
        return is_dyck(x) != (x == wrong)

    subject = execution.Subject(DYCK, reference, FLOAT64)
    parts = list(pieces.pieces(2, 0, 7, None))
    listed = ["".join(x) for x in strings("()", 0, 7)]
    if listed.index(wrong) < listed.index(raises):
        assert execution.execute(subject, parts, spread=spread).mismatch.input == wrong
    else:
        with pytest.raises(InvalidValue, match="no answer"):
            execution.execute(subject, parts, spread=spread)


class TestDrawnStrings:
    def test_any_range_has_the_same_strings(self):
        domain = tf.domains.Strings(("a", "b"), lambda _: ())
        listed = list(domain.drawn_by_number(range(2, 9), range(100), 5))
        assert listed[37:60] == list(domain.drawn_by_number(range(2, 9), range(37, 60), 5))
        assert {*map(len, listed)} == {*range(2, 9)} and len({*listed}) > 60
        assert listed != list(domain.drawn_by_number(range(2, 9), range(100), 6))

    @pytest.mark.parametrize("spread", [execution.in_turn, reversed_order])
    def test_the_first_wrong_one_is_found(self, small, spread):
        drawn = Drawn(60, 5, 9, seed=1)
        domain = tf.domains.Strings(("(", ")"), lambda _: ())
        listed = list(domain.drawn_by_number(range(5, 10), range(60), 1))
        bad = {listed[41], listed[50], listed[23]}
        subject = execution.Subject(DYCK, lambda x: is_dyck(x) != (x in bad), FLOAT64)
        parts = list(pieces.pieces(2, 0, 3, drawn))
        found = execution.execute(subject, parts, spread=spread)
        first = min(k for k, x in enumerate(listed) if x in bad)
        assert (found.cases, found.mismatch.input) == (15 + first + 1, listed[first])

    def test_they_come_after_the_short_ones_and_are_counted(self):
        verdict = tf.check(DYCK, is_dyck, 4, drawn=30)
        assert verdict.held and verdict.cases == 31 + 30
        assert verdict.coverage[0].drawn == Drawn(30, 0, 9, 0)
        found = tf.check(DYCK, lambda x: is_dyck(x) != (len(x) == 8), 4, drawn=30)
        assert found.covered == (
            "strings to length 4, 30 strings of length 0 to 9 drawn with seed 0, until one of "
            "length 8 failed"
        )
        with pytest.raises(InvalidValue, match="seed of at least 0"):
            Drawn(3, 9, 5)
        with pytest.raises(InvalidValue, match="drawn must be a number"):
            tf.check(DYCK, is_dyck, 4, drawn=-1)


def counted(asked):
    def reference(x):
        asked.append(x)
        return is_dyck(x)

    return reference


class TestJournal:
    def test_a_second_run_asks_nothing(self, small, tmp_path):
        file = tmp_path / "journal"
        first = tf.check(DYCK, is_dyck, 8, journal=file, drawn=20)
        raw = file.read_bytes()
        asked = []
        found = []
        again = tf.check(DYCK, is_dyck, 8, journal=file, drawn=20, progress=found.append)
        assert first.held and again.held and first.cases == again.cases == 2**9 - 1 + 20
        (coverage,) = again.coverage
        assert coverage.pieces == coverage.from_journal == 1 + 2**5 + 3 and not asked
        assert [(each.strings, each.left) for each in found] == [
            (0, 0)
        ] and file.read_bytes() == raw

    @pytest.mark.parametrize("end", [KeyboardInterrupt, "an error"])
    def test_a_run_that_was_ended_goes_on(self, small, tmp_path, end):
        """The strings of finished pieces are not asked for again, and none is counted twice."""
        file, state = tmp_path / "journal", {"asked": [], "armed": True}

        def reference(x):
            state["asked"].append(x)
            if state["armed"] and x == "()()(())":
                raise end if isinstance(end, type) else ValueError(end)
            return is_dyck(x)

        # The state changes, and with it the fingerprint: the run is told by the others.
        run_of = checking._run
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checking, "_run", lambda *given: {**run_of(*given), "reference": "-"})
            with pytest.raises((KeyboardInterrupt, InvalidValue)):
                tf.check(DYCK, reference, 8, journal=file)
            before = {*state["asked"]}
            state.update(asked=[], armed=False)
            verdict = tf.check(DYCK, reference, 8, journal=file)
        listed = {"".join(x) for x in strings("()", 0, 8)}
        assert verdict.held and verdict.cases == len(listed)
        assert 0 < verdict.coverage[0].from_journal < verdict.coverage[0].pieces
        assert before | {*state["asked"]} == listed
        assert len(state["asked"]) == len({*state["asked"]}) < len(listed)
        if end is KeyboardInterrupt:  # only strings of the piece that was not finished
            assert len(before & {*state["asked"]}) <= 15

    def test_pieces_cut_off_by_an_error_are_not_taken_for_whole(self, small, tmp_path):
        """After an error, only shorter strings are tried: a wrong long one is found afterwards."""
        file, flag = tmp_path / "journal", tmp_path / "flag"
        flag.touch()

        def reference(x):
            if x == "(((((" and flag.exists():
                raise ValueError("now")
            return is_dyck(x) != (x == "))))))))")

        with pytest.raises(InvalidValue, match="now"):
            tf.check(DYCK, reference, 8, journal=file)
        flag.unlink()
        assert tf.check(DYCK, reference, 8, journal=file).counterexample.input == "))))))))"

    def test_a_wrong_string_is_found_again(self, small, tmp_path):
        def reference(x):
            return is_dyck(x) or x == "))))(("

        first = tf.check(DYCK, reference, 8, journal=tmp_path / "journal")
        again = tf.check(DYCK, reference, 8, journal=tmp_path / "journal")
        assert again.counterexample == first.counterexample and again.cases == first.cases
        assert again.counterexample.input == "))))((" and again.coverage[0].from_journal > 0

    def test_a_wrong_string_that_is_no_longer_wrong_is_refused(self, small, tmp_path):
        flag = tmp_path / "flag"
        flag.touch()

        def reference(x):
            return is_dyck(x) or (x == "))))((" and flag.exists())

        assert not tf.check(DYCK, reference, 8, journal=tmp_path / "journal")
        flag.unlink()
        with pytest.raises(InvalidValue, match="the same answer each time"):
            tf.check(DYCK, reference, 8, journal=tmp_path / "journal")

    @pytest.mark.parametrize(
        ("other", "named"),
        [
            ({"model": tf.recipe("dyck-1").build(max_length=10)}, "model"),
            ({"reference": lambda x: not is_dyck(x)}, "reference"),
            ({"arithmetic": "float32"}, "arithmetic"),
            ({"arithmetic": "interval:90"}, "arithmetic"),
            ({"max_length": 6}, "strings"),
            ({"drawn": 3}, "strings"),
            ({"drawn": Drawn(2, 0, 9, seed=4)}, "strings"),
        ],
    )
    def test_another_check_is_refused(self, tmp_path, other, named):
        file = tmp_path / "journal"
        usual = {"model": DYCK, "reference": is_dyck, "max_length": 5, "drawn": Drawn(2, 0, 9)}
        tf.check(**usual, journal=file)
        raw = file.read_bytes()
        with pytest.raises(InvalidValue, match=f"with the same {named}; received .*{file}"):
            tf.check(**{**usual, **other}, journal=file)
        assert file.read_bytes() == raw and tf.check(**usual, journal=file).coverage[0].from_journal

    def test_systems_of_one_name_are_told_apart(self, tmp_path):
        file = tmp_path / "journal"
        for _ in range(2):
            assert tf.check(DYCK, is_dyck, 2, "interval:90", journal=file)
        for other in ("interval:80", "interval"):
            with pytest.raises(InvalidValue, match="with the same arithmetic; .* of interval "):
                tf.check(DYCK, is_dyck, 2, other, journal=file)

    def test_a_name_that_means_no_file_to_sqlite(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert tf.check(DYCK, is_dyck, 3, journal=":memory:")
        assert tf.check(DYCK, is_dyck, 3, journal=":memory:").coverage[0].from_journal == 1
        with pytest.raises(UnreadableInput, match="null byte"):
            tf.check(DYCK, is_dyck, 3, journal="a\0b")

    def test_a_place_that_is_no_number_is_refused(self, tmp_path):
        file = tmp_path / "journal"
        tf.check(DYCK, is_dyck, 3, journal=file)
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE piece SET wrong_length = 2, wrong_place = 'a b'")
        connection.close()
        with pytest.raises(UnreadableInput, match="no journal"):
            tf.check(DYCK, is_dyck, 3, journal=file)

    def test_another_version_is_refused(self, tmp_path, monkeypatch):
        tf.check(DYCK, is_dyck, 5, journal=tmp_path / "journal")
        monkeypatch.setattr(checking, "VERSION", "transformist 0.0.9")
        with pytest.raises(InvalidValue, match=r"transformist 0.1.0, .* transformist 0.0.9"):
            tf.check(DYCK, is_dyck, 5, journal=tmp_path / "journal")

    def test_a_file_that_is_no_journal_is_left_as_it_is(self, tmp_path):
        text, other = tmp_path / "text", tmp_path / "other"
        text.write_text("what was written here\n" * 200)
        with sqlite3.connect(other) as connection:
            connection.execute("CREATE TABLE piece (name)")
        connection.close()
        for file in (text, other):
            raw = file.read_bytes()
            with pytest.raises(UnreadableInput, match="a journal must be"):
                tf.check(DYCK, is_dyck, 5, journal=file)
            assert file.read_bytes() == raw

    def test_a_place_that_cannot_be_written_is_refused(self, tmp_path):
        for file in (tmp_path, tmp_path / "none" / "journal"):
            with pytest.raises(UnreadableInput, match="cannot be written"):
                tf.check(DYCK, is_dyck, 5, journal=file)

    def test_a_truncated_one_is_refused(self, small, tmp_path):
        file = tmp_path / "journal"
        tf.check(DYCK, is_dyck, 8, journal=file)
        raw = file.read_bytes()
        for size in {*range(512, len(raw), 512), 1, 15, 99, 101, len(raw) - 1}:
            file.write_bytes(raw[:size])
            with pytest.raises(UnreadableInput, match="a journal must be"):
                tf.check(DYCK, is_dyck, 8, journal=file)
            assert file.read_bytes() == raw[:size], size

    def test_one_in_use_is_refused(self, tmp_path):
        file = tmp_path / "journal"

        def reference(x):
            if x == "()":
                with pytest.raises(UnreadableInput, match="another process is using"):
                    tf.check(DYCK, is_dyck, 3, journal=file)
            return is_dyck(x)

        assert tf.check(DYCK, reference, 3, journal=file)

    @pytest.mark.slow
    @pytest.mark.parametrize(("given", "code"), [("SIGKILL", -9), ("SIGINT", 130)])
    def test_a_process_that_was_killed_goes_on(self, capsys, tmp_path, given, code):
        """Killed in the middle of the strings; what it had finished is there."""
        flag, source, file = tmp_path / "flag", tmp_path / "mine.py", tmp_path / "journal"
        source.write_text(
            "import os, signal\n"
            "def balanced(x):\n"
            f"    if len(x) == 15 and x > '))()' and os.path.exists({str(flag)!r}):\n"
            f"        os.kill(os.getpid(), signal.{given})\n"
            "    while '()' in x:\n"
            "        x = x.replace('()', '')\n"
            "    return x == ''\n"
        )
        flag.touch()
        command = ["check", "dyck-1", "--against", f"{source}:balanced", "--max-length", "15"]
        command += ["--journal", str(file), "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "transformist", *command], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr.endswith("error: interrupted\n" if code == 130 else "")
        assert "Traceback" not in done.stderr
        flag.unlink()
        code, out, _ = run(capsys, *command)
        assert code == 0 and '"cases": 65535' in out and '"pieces": 17, "from_journal": 14' in out


DEFAULTS = "import collections\ny = collections.defaultdict("
FIELD = (
    "import dataclasses\n"
    "@dataclasses.dataclass\n"
    "class C:\n"
    " y: str = dataclasses.field(compare=False)\n"
    " def __call__(self, x): return x in self.y\n"
)


class TestFingerprint:
    @pytest.mark.slow
    def test_equal_models_have_equal_ones_in_every_process(self, tmp_path):
        file = tmp_path / "dyck.safetensors"
        tf.save(DYCK, file)
        own = [fingerprint(DYCK), fingerprint(PROGRAMS["histogram"]), fingerprint({"b", "a", "c"})]
        assert fingerprint(tf.load(file)) == own[0]
        code = (
            "import transformist as tf; from transformist.programs import PROGRAMS\n"
            "from transformist.verify.runs.fingerprint import fingerprint as f\n"
            "print(f(tf.recipe('dyck-1').build(max_length=9)), f(PROGRAMS['histogram']),"
            " f({'c', 'a', 'b'}))"
        )
        for seed in "1", "2":
            environment = {**os.environ, "PYTHONHASHSEED": seed}
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert done.stdout.split() == own

    def test_every_program_and_weight_counts(self):
        assert len({fingerprint(each) for each in PROGRAMS.values()}) == len(PROGRAMS)
        models = [tf.recipe("dyck-1").build(max_length=n) for n in range(4, 9)]
        assert len({*map(fingerprint, models)}) == 5

    def test_what_a_function_does_counts(self):
        sources = {
            "plain": "def f(x): return len(x) > 1",
            "constant": "def f(x): return len(x) > 2",
            "name": "def f(x): return abs(x) > 1",
            "default": "def f(x, y=1): return len(x) > y",
            "other default": "def f(x, y=2): return len(x) > y",
            "global": "y = 1\ndef f(x): return len(x) > y",
            "other global": "y = 2\ndef f(x): return len(x) > y",
            "helper": "def g(x): return len(x)\ndef f(x): return g(x) > 1",
            "other helper": "def g(x): return len(x) + 1\ndef f(x): return g(x) > 1",
            "closure": "def h(y):\n def f(x): return len(x) > y\n return f\nf = h(1)",
            "other closure": "def h(y):\n def f(x): return len(x) > y\n return f\nf = h(2)",
            "inner": "def f(x): return any(map(lambda s: s == 'a', x))",
            "other inner": "def f(x): return any(map(lambda s: s == 'b', x))",
            "method": "class C:\n def __call__(self, x): return x == ''\nf = C()",
            "other method": "class C:\n def __call__(self, x): return x == 'a'\nf = C()",
            "state": "class C:\n def __call__(self, x): return x == self.y\nf = C(); f.y = 1",
            "other state": "class C:\n def __call__(self, x): return x == self.y\nf = C(); f.y = 2",
            "recursive": "def f(x): return not x or f(x[1:])",
            "other recursive": "def f(x): return not x or f(x[2:])",
            "partial": "import functools\nf = functools.partial(max, 1)",
            "other partial": "import functools\nf = functools.partial(max, 2)",
            "cached": "import functools\n@functools.cache\ndef f(x): return x == 'a'",
            "other cached": "import functools\n@functools.cache\ndef f(x): return x == 'b'",
            "class's table": "class C:\n y = ('a',)\ndef f(x): return x in C.y",
            "other class's table": "class C:\n y = ('b',)\ndef f(x): return x in C.y",
            "list in a class": "class C:\n y = ['b']\ndef f(x): return x in C.y",
            "attribute": "def f(x): return x in f.y\nf.y = 'a'",
            "other attribute": "def f(x): return x in f.y\nf.y = 'b'",
            "default of a dict": f"{DEFAULTS}lambda: 1)\ndef f(x): return y[x]",
            "other default of a dict": f"{DEFAULTS}lambda: 2)\ndef f(x): return y[x]",
            "field": f"{FIELD}\nf = C('a')",
            "other field": f"{FIELD}\nf = C('b')",
            "expression": "import re\ny = re.compile('a')\ndef f(x): return y.match(x)",
            "other expression": "import re\ny = re.compile('b')\ndef f(x): return y.match(x)",
            "long number": "y = 1 << 20000\ndef f(x): return y > 1",
            "other long number": "y = 1 << 20001\ndef f(x): return y > 1",
            "array": "import numpy as np\ny = np.zeros(3)\ndef f(x): return y[0]",
            "other array": "import numpy as np\ny = np.ones(3)\ndef f(x): return y[0]",
            "root": "from math import sqrt\ndef f(x): return sqrt(2)",
            "other root": "from cmath import sqrt\ndef f(x): return sqrt(2)",
        }
        for value in "(0.5,)", "(0.25,)":
            for name, source in {
                "attribute": "class C:\n a = {}\ndef f(x): return C.a",
                "enumeration": "import enum\nclass C(enum.Enum):\n a = {}\ndef f(x): return C.a",
                "cached": "import functools\n@functools.cache\ndef f(x): return {}",
                "cached property": "import functools\nclass C:\n @functools.cached_property\n"
                " def a(self): return {}\ndef f(x): return C().a",
            }.items():
                sources[f"{name} {value}"] = source.format(value)
        found = {}
        for name, source in sources.items():
            made = []
            for _ in range(2):
                values = {"__name__": "mine"}
                exec(source, values)
                made.append(fingerprint(values["f"]))
            assert made[0] == made[1], name
            found[name] = made[0]
        assert len({*found.values()}) == len(found)

    def test_a_module_is_the_modules_that_it_has(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "inner_of_a_test.py").write_text("def g(x): return True\n")
        (tmp_path / "outer_of_a_test.py").write_text("from inner_of_a_test import g\n")
        values = {"__name__": "mine"}
        exec("import outer_of_a_test as o\ndef f(x): return o.g(x)", values)
        before = fingerprint(values["f"])
        assert fingerprint(values["f"]) == before
        (tmp_path / "inner_of_a_test.py").write_text("def g(x): return False\n")
        assert fingerprint(values["f"]) != before
        for name in ("inner_of_a_test", "outer_of_a_test"):
            del sys.modules[name]

    def test_what_has_no_lasting_contents_is_refused(self, tmp_path):
        with (tmp_path / "file").open("w") as file, pytest.raises(InvalidValue, match="TextIO"):
            fingerprint(lambda x: file)


class TestCommandLine:
    def test_the_coverage_is_in_the_json(self, capsys):
        given = ("check", "dyck-1", "--against", "programs/dyck-1", "--max-length", 5)
        (row,) = answer(capsys, *given, "--drawn", 7, "--drawn-length", 30, "--seed", 2)["recipes"]
        assert row["cases"] == 63 + 7 and row["coverage"] == [
            {
                "arithmetic": "float64",
                "cases": 70,
                "inputs": row["covered"],
                "settings": {},
                "every": {"shortest": 0, "longest": 5},
                "drawn": {"count": 7, "shortest": 0, "longest": 30, "seed": 2},
                "pieces": 2,
                "from_journal": 0,
            }
        ]

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (["--journal", "j"], "--journal must come with --against"),
            (["--drawn", "3"], "--drawn must come with --against"),
            (["--against", "programs/dyck-1", "--drawn", "x"], "--drawn must be a whole number"),
            (["--against", "programs/dyck-1", "--seed", "3"], "must come with --drawn"),
            (["--against", "programs/dyck-1", "--drawn-length", "3"], "must come with --drawn"),
            (["--against", "programs/dyck-1", "--max-length", "30"], "1,073,741,824 strings"),
            (["--against", "programs/dyck-1", "--max-length", "99"], "about 10^30 strings"),
            (
                ["--against", "programs/dyck-1", "--max-length", "41", "--journal", "j"],
                "a length of at most 40; about ",
            ),
        ],
    )
    def test_requests_that_are_refused(self, capsys, given, words):
        code, out, err = run(capsys, "check", "dyck-1", *given)
        assert (code, out) == (2, "") and words in err and err.count("\n") == 1

    def test_what_the_journal_has_is_said(self, capsys, monkeypatch, tmp_path):
        file = tmp_path / "journal"
        line = ["check", "dyck-1", "--against", "programs/dyck-1", "--max-length", "8"]
        line += ["--journal", str(file)]

        def interrupted(*_, **__):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("transformist.cli.check.check", interrupted)
            code, out, err = run(capsys, *line)
        assert (code, out) == (130, "")
        assert f"finished pieces are kept in {file}; the same command goes on" in err
        assert "from the journal" not in run(capsys, *line)[1]
        pieces = answer(capsys, *line)["recipes"][0]["coverage"][0]["pieces"]
        assert f"; {pieces} of {pieces} pieces from the journal" in run(capsys, *line)[1]

    def test_more_time_goes_on_with_the_journal(self, capsys, tmp_path):
        source, file = tmp_path / "mine.py", tmp_path / "journal"
        source.write_text("def f(x): return x.replace('()', '') == ''\n")
        given = ["check", "dyck-1", "--against", f"{source}:f", "--max-length", "3"]
        given += ["--journal", str(file)]
        assert run(capsys, *given)[0] == 0
        for seconds in ("7", "30"):
            (row,) = answer(capsys, *given, "--timeout", seconds)["recipes"]
            assert row["coverage"][0]["from_journal"] == 1
        source.write_text("def f(x): return x == ''\n")
        code, _, err = run(capsys, *given)
        assert code == 2 and "with the same reference" in err

    def test_the_time_left_is_that_of_the_pieces_to_come(self):
        from transformist.cli.piece_progress import speed
        from transformist.verify import Progress

        assert speed(Progress(0, 10, 0, 100, 0.0)) == ""
        found = speed(Progress(5, 25, 400, 4000, 10.0, from_journal=3))
        assert found == ", 40 strings/s, 100 s left"
