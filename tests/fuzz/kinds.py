"""The kinds of examples: what is drawn, and what must hold of it."""

import pickle
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path

from drawn_calls import ABSURD, lines, names, written_programs
from drawn_files import program_files
from drawn_lines import ODD_LINES, command_lines
from given_files import SAVED, written
from hypothesis import strategies as st
from processes import processes, require_end
from promises import called, inside, require_promises, unchanged
from tampered import tampered
from watched import watched

import transformist as tf
from drawn_programs import drawn, outcome, program_of, strings
from transformist.errors import TransformistError


def of_command_lines(directory):
    """Calls of the command line, in this process."""
    written(directory)

    def check(example):
        line, given = example
        with inside(directory):
            require_promises(called(line, given), says_more=any(".py" in each for each in line))

    odd = st.tuples(st.sampled_from(ODD_LINES), st.just(b""))
    return st.integers(0, 31).flatmap(lambda k: command_lines() if k else odd), check


def of_program_files(directory):
    """Commands that read a file of Python."""
    written(directory)

    def check(example):
        Path(directory, "drawn.py").write_bytes(example.source.encode("utf-8", "surrogatepass"))
        codes = (0, 1, 2, 130) if "KeyboardInterrupt" in example.source else (0, 1, 2)
        with inside(directory):
            require_promises(called(example.line, of=example), says_more=True, codes=codes)

    return program_files(), check


def of_saved_files(directory):
    """Commands, and functions of the library, on saved models that were changed."""
    written(directory)
    path = Path(directory, "tampered")
    path.write_bytes(Path(directory, SAVED[0]).read_bytes())
    with inside(directory):  # what is imported and compiled once is so before Python is listened to
        for line in LINES:
            called(line)

    def check(example):
        file, line, as_json = example
        path.write_bytes(file.data)
        with inside(directory), no_code_runs():
            require_promises(called(line + ("--json",) * as_json, of=file))
            with watched(f"tf.load({file})"):
                try:
                    tf.load(path)("ab")
                    tf.load_certificates(path)
                except TransformistError:
                    pass

    return st.tuples(tampered(directory, SAVED), st.sampled_from(LINES), st.booleans()), check


LINES = [
    ("show", "tampered"), ("run", "tampered", "()"), ("run", "tampered", "ab", "--trace"),
    ("certify", "tampered"), ("certify", "tampered", "--check"),
    ("plan", "tampered", "--length", "9"), ("run", "tampered", "()", "--engine", "structured"),
    ("precision", "tampered"),
    ("check", "tampered", "--against", "good.py:balanced", "--max-length", "2"),
    ("run", "tampered", "", "--arithmetic", "exact"),
]  # fmt: skip
"""What is done with a saved model."""

FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect",
    "shutil.rmtree",
)  # fmt: skip
"""What a file of weights has no reason to ask Python for."""

DANGEROUS = ("os", "posix", "nt", "subprocess", "sys", "shutil", "socket", "runpy")
"""Modules of which nothing is unpickled; numba unpickles what it compiled before."""

_seen = None


def _heed(event, arguments):
    if _seen is None:
        return
    if event in FORBIDDEN or (event == "pickle.find_class" and arguments[0] in DANGEROUS):
        _seen.append((event, arguments))


@contextmanager
def no_code_runs():
    """Refuse what Python's audit tells of code that a file of weights runs."""
    global _seen
    if not getattr(_heed, "added", False):
        sys.addaudithook(_heed)
        _heed.added = True
    _seen = []
    try:
        yield
        assert not _seen, f"a saved model asked Python for {_seen}"
    finally:
        _seen = None


def of_calls(directory):
    """Public functions, methods and the program language, with right and wrong arguments."""
    written(directory)
    known = names()
    tf.save(known["model"], Path(directory, "good.safetensors"), [known["certificate"]])

    def check(line):
        with inside(directory), unchanged(), watched(line):
            try:
                repr(eval(line, known))
            except TransformistError as refusal:
                assert "\n" not in f"{refusal}", f"more than one line: {line}"
            except ORDINARY as error:
                is_absurd = any(each in line for each in ABSURD) or EQUAL in f"{error}"
                if not is_absurd and not is_pythons_own(error):
                    raise

    return st.one_of(lines(known), lines(known), written_programs()), check


LIBRARY = Path(tf.__file__).parent

EQUAL = "'bool' object has no attribute"
"""Outputs of programs are compared as they are, also in a program: what comes of it is a bool."""

ORDINARY = (TypeError, AttributeError, ValueError, LookupError, pickle.PicklingError)
"""What Python raises of an object that is something else altogether."""


def is_pythons_own(error):
    """Whether Python refuses the line itself: no method has this name, or takes these arguments."""
    frames = traceback.extract_tb(error.__traceback__)
    return not any(LIBRARY in Path(frame.filename).parents for frame in frames)


def of_processes(directory):
    """Real processes, with pipes and signals."""
    written(directory)
    return processes(), lambda process: require_end(process, directory)


def of_programs(directory):
    """Programs of the language: compiled, run, certified, saved."""
    path = Path(directory, "drawn.safetensors")

    def check(case):
        with watched(f"{case}"):
            what, found = outcome(case)
            assert what != "wrong", f"{case}: {found}"
            if what == "right" and case.max_length:
                require_certificate(case, path)

    return st.randoms(use_true_random=False).map(drawn), check


def require_certificate(case, path):
    """What a certificate of the compiled program says holds, and a file gives both back."""
    program = program_of(case.body.text, case.alphabet)
    try:
        model = tf.compile(
            program, max_length=case.max_length, weighting=case.weighting, heads=case.heads,
            positions=case.positions,
        )  # fmt: skip
        found = tf.certify(model, "float32")
    except TransformistError:  # what another format holds, float32 may not
        return
    tf.save(model, path, [found] if found.holds else [])
    back = tf.load(path)
    given = strings(case.alphabet, case.max_length)
    if found.holds:
        tf.check_certificate(back, tf.load_certificates(path)[0])
        exact = [program(x) for x in given]
        same = map(same_answer, exact, back.answers(given, arithmetic="float32"))
        assert all(same), f"certified, and wrong: {case}"


def same_answer(exact, got):
    """Equal, or both lists of numbers, which a certificate says to be near."""
    return exact == got or isinstance(exact, list)


KINDS = {
    "processes": of_processes,
    "programs": of_programs,
    "calls": of_calls,
    "command-lines": of_command_lines,
    "program-files": of_program_files,
    "saved-files": of_saved_files,
}


def prepared(kind, directory):
    return KINDS[kind](directory)
