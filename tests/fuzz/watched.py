"""A call under watch: it ends within 20 s, in bounded memory, however it ends."""

import atexit
import faulthandler
import functools
import os
import signal
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST = 20.0
"""Seconds for one call. What is drawn takes a second at most, so a machine may be slow and busy."""

LAST_RESORT = 90.0
"""Seconds after which Python ends, if compiled code is still running: no signal interrupts that."""

LAST_CALL = Path(tempfile.gettempdir(), f"transformist-fuzz-{os.getpid()}.txt")
"""The call that Python ended in, and where: there only after such an end."""

MOST_MEMORY = 2 * 2**30
"""Bytes that the process may take at its peak in one call."""


class NoEnd(BaseException):
    """A call without an end; outside Exception, so that nothing handles it or makes it smaller."""


class TooMuchMemory(AssertionError):
    """A call that took more than MOST_MEMORY."""


@contextmanager
def watched(call):
    """Raise NoEnd where the body does not end in time, TooMuchMemory where it takes too much.

    Args:
        call: what is called, as the report is to have it.

    """
    with ended(call), bounded(call):
        yield


@contextmanager
def ended(call):
    """Raise NoEnd in the body after LONGEST seconds; also where the body handles what is raised."""
    fired, begun = threading.Event(), time.monotonic()
    main = threading.main_thread().ident

    def fire():
        fired.set()
        signal.pthread_kill(main, signal.SIGUSR1)

    def stop(*_):
        raise NoEnd(message)

    message = f"no end after {LONGEST:.0f} s: {call}"
    before = signal.signal(signal.SIGUSR1, stop)  # SIGALRM may be the library's own
    timer = threading.Timer(LONGEST, fire)
    timer.daemon = True
    told = _begun(call)
    faulthandler.dump_traceback_later(LAST_RESORT, exit=True, file=told)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGUSR1, before)
    if fired.is_set() or time.monotonic() - begun > LONGEST:
        raise NoEnd(message)


@functools.cache
def _told():
    """The file of the last call, which goes away where Python ends as it should."""
    atexit.register(LAST_CALL.unlink, missing_ok=True)
    return LAST_CALL.open("w", encoding="utf-8", errors="backslashreplace")


def _begun(call):
    """Write down a call before it is made."""
    file = _told()
    file.seek(0)
    file.truncate()
    file.write(f"{call}\n")
    file.flush()
    return file


@contextmanager
def bounded(call):
    """Raise TooMuchMemory where the peak of the process in the body is above MOST_MEMORY."""
    forget_peak()
    yield
    peak = peak_memory()
    if peak > MOST_MEMORY:
        raise TooMuchMemory(f"{peak / 2**20:.0f} MiB at the peak: {call}")


def forget_peak():
    """Begin a new peak, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory():
    """Bytes at the peak of this process; 0 where the system does not say."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
