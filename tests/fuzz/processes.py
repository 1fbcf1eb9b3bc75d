"""The command line in a process of its own: pipes that close early, full disks, and signals."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from drawn_lines import SAVED
from hypothesis import strategies as st
from watched import LONGEST, NoEnd

MOST_MEMORY = 4 * 2**30
"""Address space of the process: what is mapped, of which a part is used."""

LINES = [
    ("list",), ("list", "--json"), ("show", "dyck-1"), ("show", "programs/sort", "--json"),
    ("run", "dyck-1", "(())"), ("run", "dyck-1", "(())", "--json"), ("run", "dyck-1"),
    ("run", "dyck-1", "--file", "brackets.txt", "--trace"), ("run", "dyck-1", "x"),
    ("run", "min", "[1, 2]"), ("run", "dyck-1", "()" * 40, "--engine", "structured"),
    ("check", "dyck-1", "--against", "good.py:always", "--max-length", "3"),
    ("check", "dyck-1", "--against", "good.py:balanced", "--max-length", "3", "--json"),
    ("check", "dyck-1", "--against", "exits.py:k", "--max-length", "2"), ("check", "min"),
    ("compile", "programs/parity", "-o", "made.safetensors"),
    ("certify", "programs/dyck-1", "--max-length", "40", "--lines"),
    ("certify", SAVED[0], "--check"), ("plan", "dyck-1", "--length", "20", "--json"),
    ("precision", "parity", "--work", "1000"), ("demo",), ("--help",), ("none",),
    ("show", "none", "--json"),
]  # fmt: skip
BEGUN = re.compile(r'entry\.py", line \d+, in main')
"""In a traceback: the command line had begun, and hears Ctrl-C."""

STANDARD_OUTPUT = ["whole", "whole", "none read", "one byte read", "closed", "full"]
STANDARD_ERROR = ["whole", "whole", "whole", "closed", "full"]
STANDARD_INPUT = ["(())", "", "closed", "endless", "silent"]
EXIT_CODES = {
    ("check", "dyck-1", "--against", "good.py:always", "--max-length", "3"): 1,
    ("check", "dyck-1", "--against", "exits.py:k", "--max-length", "2"): 2,
    ("run", "dyck-1", "x"): 2,
    ("none",): 2,
    ("show", "none", "--json"): 2,
}
"""Lines whose exit code does not depend on who reads the answer."""


@dataclass(frozen=True)
class Process:
    """A call, what its three streams are, and after how many seconds Ctrl-C comes, if at all."""

    line: tuple[str, ...]
    given: str
    out: str = "whole"
    err: str = "whole"
    interrupted: float | None = None


def processes():
    """Calls with the world around them; of those that are interrupted the streams are whole."""
    seconds = st.one_of(st.floats(0.01, 0.25), st.floats(0, 1.5))
    return st.one_of(
        st.builds(
            Process,
            st.sampled_from(LINES), st.sampled_from(STANDARD_INPUT[:4]),
            st.sampled_from(STANDARD_OUTPUT), st.sampled_from(STANDARD_ERROR), st.none(),
        ),
        st.builds(
            Process, st.sampled_from(LINES), st.sampled_from(STANDARD_INPUT), st.just("whole"),
            st.just("whole"), seconds,
        ),
    )  # fmt: skip


def run(process, directory):
    """The exit code and the two outputs of a process, which must end in time."""
    endless = None
    given = {"closed": None, "silent": subprocess.PIPE}.get(process.given, subprocess.PIPE)
    if process.given == "endless":
        endless = subprocess.Popen(
            [sys.executable, "-c", "import sys\nwhile True: sys.stdout.write('(' * 65536)"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        given = endless.stdout
    full = os.open("/dev/full", os.O_WRONLY)
    pipes = {"closed": None, "full": full}
    begun = time.monotonic()
    called = subprocess.Popen(
        [sys.executable, "-m", "transformist", *process.line],
        stdin=given,
        stdout=pipes.get(process.out, subprocess.PIPE),
        stderr=pipes.get(process.err, subprocess.PIPE),
        cwd=directory,
        preexec_fn=lambda: prepare(process),
    )
    try:
        out = err = b""
        if process.out in ("none read", "one byte read"):
            if process.out == "one byte read":
                out = called.stdout.read(1)
            called.stdout.close()
            called.stdout = None
        if process.interrupted is not None:
            time.sleep(process.interrupted)
            called.send_signal(signal.SIGINT)
        words = process.given.encode() if process.given in STANDARD_INPUT[:2] else None
        if process.given == "silent" and process.interrupted is None:
            words = b""
        if process.given == "silent" and process.interrupted is not None:
            called.wait(LONGEST)  # standard input stays open
        more, err = called.communicate(words, timeout=LONGEST)
        out += more or b""
    except subprocess.TimeoutExpired:
        raise NoEnd(f"no end after {LONGEST:.0f} s: {process}") from None
    finally:
        called.kill()
        called.wait()
        os.close(full)
        if endless is not None:
            endless.kill()
            endless.wait()
            endless.stdout.close()
    assert time.monotonic() - begun < LONGEST + 2
    return called.returncode, out.decode(), (err or b"").decode()


def prepare(process):
    """In the process, before Python: close streams, bound memory, and hear Ctrl-C."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, what in enumerate((process.given, process.out, process.err)):
        if what == "closed":
            os.close(number)


def require_end(process, directory):
    """What holds of every process; its exit code, after Ctrl-C that of the signal."""
    code, out, err = run(process, directory)
    told = f"{process}\n  exit code {code}\n  stdout {out[:300]!r}\n  stderr {err[-900:]!r}"
    interrupted = process.interrupted is not None
    if interrupted and "Traceback" in err and not BEGUN.search(err):
        return -signal.SIGINT  # it came before the command line could hear it
    assert code in (0, 1, 2, *((130, -signal.SIGINT) if interrupted else ())), told
    assert "Traceback" not in out, told
    assert "Traceback" not in err and "Exception ignored" not in err, told
    if interrupted:
        return code
    if process.err == "whole":
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(errors) == (code == 2), told
    if process.out in ("whole", "none read", "one byte read") and process.given == "(())":
        assert code == EXIT_CODES.get(process.line, 0), told
    return code
