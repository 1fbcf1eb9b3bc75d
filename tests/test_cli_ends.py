"""How the command line ends: exit codes without a reader, after Ctrl-C, and beside users' code."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from command_line import answer, run
from transformist.cli import printing
from transformist.errors import OutOfTime
from transformist.user_files import load_function

REFERENCES = """
import sys
import numpy as np

def balanced(x):
    while "()" in x:
        x = x.replace("()", "")
    return x == ""

def right_in_numpy(x):
    print("asked", x)
    return np.bool_(balanced(x))

def exits(x):
    sys.exit(3)

def closes(x):
    raise GeneratorExit("now")

def own(x):
    class Own(BaseException):
        pass
    raise Own("mine")

def array(x):
    return np.array([1, 2])

def generator(x):
    yield True

def a_set(x):
    return {True}

def unlike_all(x):
    class Unlike:
        def __eq__(self, other):
            raise RuntimeError("not equal, not unequal")
    return Unlike()

def not_a_number(x):
    return float("nan")

def runs_away(x):
    while len(x) == 1:
        try:
            pass
        except Exception:
            pass
    return balanced(x)

def never(x):
    return False
"""


@pytest.fixture
def references(tmp_path):
    path = tmp_path / "references.py"
    path.write_text(REFERENCES)
    return path


def asked_in_a_worker(given):
    return load_function(given, 0.05)("(")


def against(references, name, *more, model="dyck-1"):
    return ["check", model, "--against", f"{references}:{name}", "--max-length", "2", *more]


class TestReferences:
    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("exits", "SystemExit: 3 on ''; mend the reference"),
            ("closes", "GeneratorExit: now on ''; mend"),
            ("own", "Own: mine on ''; mend"),
            ("generator", "a value of type generator on ''; return a Boolean"),
            ("a_set", "a value of type set on ''"),
            ("unlike_all", "a value of type Unlike on ''"),
        ],
    )
    @pytest.mark.parametrize("more", [(), ("--json",)])
    def test_one_that_does_not_answer_is_refused(self, capsys, references, name, words, more):
        code, out, err = run(capsys, *against(references, name, *more))
        assert (code, out) == (2, "") and words in err and err.count("\n") == 1

    @pytest.mark.parametrize("model", ["programs/reverse", "programs/double-histogram", "dyck-1"])
    def test_an_array_is_a_list(self, capsys, references, model):
        code, out, err = run(capsys, *against(references, "array", model=model))
        assert code == 1 and "expected [1, 2]" in out and err == ""

    def test_a_number_of_numpy_is_one_and_what_is_printed_goes_elsewhere(self, capsys, references):
        code, out, err = run(capsys, *against(references, "right_in_numpy", "--json"))
        assert code == 0 and out.startswith('{"held": true') and out.count("\n") == 1
        assert err.splitlines() == [f"asked {x}" for x in ("", "(", ")", "((", "()", ")(", "))")]

    def test_no_number_is_shown_as_it_is(self, capsys, references):
        code, out, _ = run(capsys, *against(references, "not_a_number", "--json"))
        assert code == 1 and '"expected": "nan"' in out

    def test_one_that_runs_away_is_ended(self, capsys, references):
        """On the input that it does not answer; before, its time begins anew with each."""
        code, out, err = run(capsys, *against(references, "runs_away", "--timeout", "1/8"))
        assert (code, out) == (2, "")
        assert err.startswith("error: references.py, line ") and "no answer on '('; mend it" in err
        assert "a reference must answer within 0.125 s" in err and err.count("\n") == 1

    def test_time_is_limited_in_a_worker_process(self, references):
        with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(OutOfTime):
            pool.apply(asked_in_a_worker, (f"{references}:runs_away",))

    def test_handlers_of_signals_are_put_back(self, references):
        before = signal.getsignal(signal.SIGALRM)
        with pytest.raises(OutOfTime):
            load_function(f"{references}:runs_away", 0.05)("(")
        assert signal.getsignal(signal.SIGALRM) is before
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)

    def test_in_another_thread_nothing_is_limited(self, references):
        found = []
        asked = load_function(f"{references}:balanced", 0.05)
        thread = threading.Thread(target=lambda: found.append(asked("()")))
        thread.start()
        thread.join()
        assert found == [True]

    @pytest.mark.parametrize("given", ["0", "-1", "soon", "inf", "nan", "1e9", "1e99999", ""])
    def test_what_is_no_time_is_refused(self, capsys, references, given):
        code, out, err = run(capsys, *against(references, "balanced", f"--timeout={given}"))
        assert (code, out) == (2, "") and "--timeout must be a number of seconds" in err

    def test_time_is_given_with_a_function(self, capsys):
        code, _, err = run(capsys, "check", "dyck-1", "--timeout", "9")
        assert code == 2 and "--timeout must come with --against" in err


class TestFiles:
    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("raise GeneratorExit('now')", "GeneratorExit: now; mend"),
            ("import sys\nsys.exit(0)", "SystemExit: 0; mend"),
            ("class Own(BaseException): pass\nraise Own", "Own: ; mend"),
        ],
    )
    def test_one_that_ends_itself_is_refused(self, capsys, tmp_path, source, words):
        path = tmp_path / "mine.py"
        path.write_text(source)
        for arguments in (["run", f"{path}:p", "ab"], against(path, "f")):
            code, out, err = run(capsys, *arguments)
            assert (code, out) == (2, "") and words in err and err.count("\n") == 1
            assert "a file of Python must run to its end" in err

    def test_one_that_runs_away_is_ended(self, capsys, tmp_path):
        path = tmp_path / "mine.py"
        path.write_text("x = 1\nwhile x:\n    x += 1\n")
        code, _, err = run(capsys, *against(path, "f", "--timeout", "1/8"))
        assert code == 2 and "the file of a reference must run to its end within 0.125 s" in err
        assert err.startswith("error: mine.py, line ")

    def test_what_a_program_file_prints_goes_elsewhere(self, capsys, tmp_path):
        path = tmp_path / "mine.py"
        path.write_text(
            "import transformist as tf\nprint('read')\n@tf.program(alphabet='ab')\n"
            "def p(x):\n    print('traced')\n    return (x == 'a').any().accept()\n"
        )
        assert answer(capsys, "run", f"{path}:p", "ab")["answer"] is True
        _, _, err = run(capsys, "run", f"{path}:p", "ab", "--json")
        assert err == "read\ntraced\n"

    def test_a_line_that_ends_with_a_colon_is_not_followed_by_two(self, capsys, tmp_path):
        path = tmp_path / "mine.py"
        path.write_text(
            "import transformist as tf\n@tf.program(alphabet='ab')\n"
            "def p(x):\n    for c in x:\n        pass\n    return x.tag()\n"
        )
        code, _, err = run(capsys, "run", f"{path}:p", "ab")
        assert code == 2 and "for c in x: " in err and "::" not in err


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize(("name", "code"), [("never", 1), ("balanced", 0)])
def test_the_exit_code_is_that_of_the_check_where_nobody_reads(references, name, code, more):
    """As in `| true`: the pipe has lost its reader before anything is written."""
    command = [sys.executable, "-m", "transformist", *against(references, name, *more)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, "")


INTERRUPTED_WHILE = """
import importlib.abc, os, signal, sys

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv[1:] = {arguments!r}
from transformist.cli import main
sys.exit(main())
"""

RUN = ["run", "dyck-1", "()", "--engine", "structured"]


def in_python(source):
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)


@pytest.mark.parametrize("name", ["typer", "transformist.cli.dispatch", "rich.console", "numba"])
def test_ctrl_c_while_a_module_is_imported(name):
    done = in_python(INTERRUPTED_WHILE.format(name=name, arguments=RUN))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


IN_A_CALLBACK = """
import os, signal, sys
import transformist.cli.run
from transformist.cli import entry

class Interrupted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

def evaluated(*_, **__):
    Interrupted()
    while True:
        pass

transformist.cli.run.evaluate = evaluated
sys.argv[1:] = {arguments!r}
sys.exit(entry.main())
"""


def test_ctrl_c_that_a_callback_would_swallow():
    done = in_python(IN_A_CALLBACK.format(arguments=RUN))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


CTRL_C_IN_SIGNAL = """
import os, signal, sys
from transformist.cli import entry

set_handler, calls = signal.signal, []

def interrupted(number, handler):
    calls.append(handler)
    if len(calls) == {which}:
        os.kill(os.getpid(), signal.SIGINT)
    return set_handler(number, handler)

signal.signal = interrupted
sys.argv[1:] = ["list"]
sys.exit(entry.main())
"""


@pytest.mark.parametrize("which", [1, 2], ids=["at the start", "at the end"])
def test_ctrl_c_while_its_handler_is_set(which):
    done = in_python(CTRL_C_IN_SIGNAL.format(which=which))
    assert done.returncode == 130 and "Traceback" not in done.stderr
    assert (which == 1) == (done.stderr == "error: interrupted\n")


def test_ctrl_c_stays_ignored_where_it_was():
    source = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    source += INTERRUPTED_WHILE.format(name="numba", arguments=RUN)
    assert in_python(source).returncode == 0


def test_the_command_line_begins_with_little():
    """Ctrl-C while that is imported prints a traceback."""
    source = "import sys; import transformist.cli.entry; print(*sys.modules)"
    names = in_python(source).stdout.split()
    assert not {"typing", "re", "typer", "transformist.errors"} & {*names}


def test_a_call_in_process_leaves_the_handler_of_signals(capsys):
    before = signal.getsignal(signal.SIGINT)
    assert run(capsys, "list")[0] == 0 and signal.getsignal(signal.SIGINT) is before


def test_what_takes_long_says_so(capsys, monkeypatch):
    """Here at once, and until it has been said how far it is."""
    monkeypatch.setattr(printing, "EVERY", 0.001)
    said, heard = [], threading.Event()

    def note(text, **_):
        said.append(text)
        if "3 of 9" in text:
            heard.set()

    monkeypatch.setattr(printing.err, "print", note)
    with printing.working("counting"):
        logging.getLogger("transformist.some").debug("%d of %d", 3, 9)
        assert heard.wait(60)
    assert said[0].startswith("counting") and said[-1].startswith("counting: 3 of 9, ")
    assert not logging.getLogger("transformist").handlers


def test_help_that_nobody_reads_ends_well_with_standard_error_closed():
    called = subprocess.Popen(
        [sys.executable, "-m", "transformist", "--help"],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.close(2),
    )
    called.stdout.close()
    assert called.wait(60) == 0


@pytest.mark.parametrize(("code", "answered"), [(15, 143), (3, 131), ("words", 2), (200, 2)])
def test_a_library_that_ends_the_process_is_no_success(capsys, monkeypatch, code, answered):
    """Ray answers SIGTERM with `sys.exit(15)`: with 0 a check would seem to have held."""

    def end(*_, **__):
        raise SystemExit(code)

    monkeypatch.setattr("transformist.cli.list.print_json", end)
    found, out, err = run(capsys, "list", "--json")
    assert (found, out) == (answered, "")
    assert err == "error: the command was terminated before its end\n"
