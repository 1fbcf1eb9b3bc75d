"""Pieces of a check in other processes, on this machine or on a cluster, by way of joblib.

The model and the reference are pickled once; a function of a file or a notebook is pickled with
its code. A process keeps the last that it unpickled, under the hash of the pickle. Dask brings
them to each worker once; loky and Ray send them with each piece, which is some kilobytes for most
models.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import itertools
import logging
import os
import signal
import socket
import sys
from collections import ChainMap
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from transformist import __version__
from transformist.arithmetic import Arithmetic, is_whole, number_system
from transformist.deferred import Library
from transformist.errors import InvalidValue, TransformistError, raised_in_words
from transformist.verify.runs.execution import Compared, Outcomes, Subject
from transformist.verify.runs.pieces import Piece

joblib = Library("joblib")
cloudpickle = Library("cloudpickle")

VERSION = f"transformist {__version__}, Python {sys.version_info[0]}.{sys.version_info[1]}"
"""Versions that two processes must share: functions are sent as bytecode of one Python."""

WAVE = 8
"""Tasks for each process in a wave, so that few processes wait at its end."""

CONNECT = 10.0
"""Seconds in which a scheduler must answer."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Packed:
    """A subject of comparison, or a function of one argument, as it is sent to other processes.

    Attributes:
        pickled: the model, the reference and the arithmetic; or the function.
        digest: hash of the bytes.
        version: `VERSION` of the process that pickled.
        process: id of that process.

    """

    pickled: bytes
    digest: str
    version: str
    process: int

    @classmethod
    def of(cls, work: Subject | Callable[[Any], Any]) -> Packed:
        """Pickle a subject or a function.

        Raises:
            InvalidValue: for one that holds something that cannot be sent.

        """
        parts: Any = work, None
        if isinstance(work, Subject):
            # Number systems of this library are compared by identity, so they are sent by name.
            system = work.arithmetic
            parts = (work.model, work.reference), system.name if is_named(system) else system
        try:
            pickled = _pickled(parts)
        except Exception as error:  # whatever the user's own objects raise
            raise InvalidValue(
                "a model and a reference must be picklable to be sent to other processes",
                received=raised_in_words(error),
                where="check",
                remedy="make open files and locks within the reference, or use a single process",
            ) from None
        digest = hashlib.sha256(pickled).hexdigest()
        return cls(pickled, digest, VERSION, os.getpid())

    def unpacked(self) -> Any:
        """The subject or the function; a process keeps only the last that it unpickled.

        Raises:
            InvalidValue: in a process of another version.

        """
        if self.version != VERSION:
            raise InvalidValue(
                f"every worker must have the version of the check, {self.version}",
                received=VERSION,
                where="check",
                remedy="install that version on the worker",
            )
        if self.digest not in _UNPACKED:
            work, system = cloudpickle.loads(self.pickled)
            if system is not None:
                model, reference = work
                work = Subject(model, reference, number_system(system))
            _UNPACKED.clear()
            _UNPACKED[self.digest] = work
        return _UNPACKED[self.digest]


def _pickled(value: Any) -> bytes:
    """Pickle a value; functions of a file or a notebook with their code, also cached ones."""
    table = ChainMap({_Cached: _reduced_cached}, cloudpickle.Pickler.dispatch_table)
    pickler = type("Pickler", (cloudpickle.Pickler,), {"dispatch_table": table})
    written = io.BytesIO()
    pickler(written).dump(value)
    return written.getvalue()


_Cached = type(functools.cache(len))
"""The class of functions decorated with `functools.cache`, which cloudpickle pickles by name."""


def _reduced_cached(function: Any) -> Any:
    """The name of a cached function of an installed module; of any other, the function itself.

    The answers that the cache holds stay here.
    """
    module, name = function.__module__, function.__qualname__
    if module != "__main__" and getattr(sys.modules.get(module), name, None) is function:
        return name
    decorator = functools.lru_cache(**function.cache_parameters())
    return decorator, (function.__wrapped__,), vars(function)


def is_named(system: Arithmetic) -> bool:
    """True if its name gives this system again.

    `Interval(64)` has the name `interval`, which gives 128 bits.
    """
    try:
        return bool(number_system(system.name) == system)
    except TransformistError:
        return False


_UNPACKED: dict[str, Any] = {}
"""The subject or the function that this process used last, by its digest."""


def compare_packed(packed: Packed, piece: Piece) -> tuple[Piece, Compared]:
    """Compare on a piece, in a worker."""
    _leave_interruptions(packed)
    return piece, packed.unpacked().on(piece)


def apply_packed(packed: Packed, item: Any) -> Any:
    """Apply a function, in a worker."""
    _leave_interruptions(packed)
    return packed.unpacked()(item)


def _leave_interruptions(packed: Packed) -> None:
    """Ignore Ctrl-C, except in the process that made the `Packed`."""
    if packed.process != os.getpid():
        # Ctrl-C reaches every process of a terminal; only the one that was called answers it. A
        # thread of a worker of Dask cannot set a signal (ValueError), and has no terminal.
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@dataclass(frozen=True)
class Workers:
    """Processes that evaluate pieces.

    Attributes:
        jobs: number of processes; `None` for as many as there are processors or workers.
        backend: the name of a backend of joblib, or a backend itself; `None` for its usual one.
        address: of the scheduler, for Dask and Ray; `None` for a cluster that is already connected.

    """

    jobs: int | None = None
    backend: Any = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and not is_whole(self.jobs, 1):
            raise InvalidValue(
                "jobs must be a number of processes, at least 1",
                received=f"{self.jobs!r:.40}",
                where="check",
                remedy="give a number such as 2, or leave it out",
            )
        if self.address is not None and self.backend not in CONNECTED:
            raise InvalidValue(
                f"an address must come with a backend of a cluster: {' or '.join(CONNECTED)}",
                received=f"address {self.address!r:.60} with backend {self.backend!r:.40}",
                where="check",
                remedy="leave it out, or give --backend dask",
            )

    def spread(self, subject: Subject, pieces: Iterable[Piece]) -> Outcomes:
        """Compare on pieces in these processes; each is yielded when it has ended.

        Raises:
            InvalidValue: where a backend is not installed, a scheduler does not answer, or a
                process ends early.

        """
        packed = Packed.of(subject)
        tasks = (joblib.delayed(compare_packed)(packed, each) for each in pieces)
        return self._results(packed, tasks, "generator_unordered")

    def each(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Apply a function to each item in these processes; results come in the order of the items.

        Raises:
            InvalidValue: as `spread`.

        """
        packed = Packed.of(function)
        tasks = (joblib.delayed(apply_packed)(packed, each) for each in items)
        return self._results(packed, tasks, "generator")

    def _results(
        self, packed: Packed, tasks: Iterator[Any], order: str
    ) -> Generator[Any, None, None]:
        """Yield the results of tasks; `order` is `return_as` of joblib."""
        with ExitStack() as stack:
            settings = self._settings(packed, stack)
            try:
                stack.enter_context(joblib.parallel_config(**settings))
                yield from _ended(tasks, order)
            except (TransformistError, GeneratorExit):
                raise
            except Exception as error:  # of joblib, of the cluster, or of what reaches it
                raise InvalidValue(
                    "the processes of a check must run to its end",
                    received=f"{self}, which ended with {raised_in_words(error):.200}",
                    where="check",
                    remedy="name a backend that joblib has, with what it needs, or start it "
                    "again; with --journal FILE it goes on from where it ended",
                ) from None

    def __str__(self) -> str:
        at = f" at {self.address}" if self.address else ""
        return f"backend {self.backend or 'loky'}{at}"

    def _settings(self, packed: Packed, stack: ExitStack) -> dict[str, Any]:
        """Arguments of `joblib.parallel_config`."""
        settings = {"n_jobs": self.jobs or -1, "backend": self.backend or "loky"}
        if self.backend in CONNECTED:
            settings |= CONNECTED[self.backend](self.address, packed, stack)
        return settings


def _ended(tasks: Iterator[Any], order: str) -> Iterator[Any]:
    """Yield the results of tasks as they arrive; in waves if a backend returns whole lists."""
    try:
        pool = joblib.Parallel(return_as=order, batch_size=1)
    except ValueError:  # Ray
        pool = joblib.Parallel(batch_size=1)
        size = WAVE * joblib.effective_n_jobs()
        while wave := list(itertools.islice(tasks, size)):
            yield from pool(wave)
    else:
        yield from pool(tasks)


def _dask(address: str | None, packed: Packed, stack: ExitStack) -> dict[str, Any]:
    distributed = _imported("distributed", "dask")
    if address is None:
        return {"scatter": [packed]}
    # A scheduler that is lost is refused in one line; the client would log others.
    log = logging.getLogger("distributed.client")
    stack.callback(log.setLevel, log.level)
    log.setLevel(logging.CRITICAL)
    try:
        client = stack.enter_context(distributed.Client(address, timeout=CONNECT))
    except (OSError, ValueError, TypeError) as error:
        raise _no_scheduler("Dask", address, error) from None
    return {"client": client, "scatter": [packed]}


def _ray(address: str | None, _packed: Packed, stack: ExitStack) -> dict[str, Any]:
    ray = _imported("ray", "ray")
    if not ray.is_initialized():
        _require_ray(address)
        try:
            with _same_end_by_sigterm():
                ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (OSError, ValueError, RuntimeError) as error:
            raise _no_scheduler("Ray", str(address), error) from None
        stack.callback(ray.shutdown)
    _imported("ray.util.joblib", "ray").register_ray()
    return {}


def _require_ray(address: str | None) -> None:
    """Require that the head of Ray answers, if there is one to connect to.

    Raises:
        InvalidValue: if none does within `CONNECT` seconds.

    """
    # ray.init waits for minutes for a head that is not there, also for one that has ended and left
    # its address in the file where ray.init looks for it.
    where = address
    if address in (None, "auto"):
        where = os.environ.get("RAY_ADDRESS") or _last_head()
    host, _, port = (where or "").removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), CONNECT).close()
        except (OSError, OverflowError) as error:
            raise _no_scheduler("Ray", str(where), error) from None


def _last_head() -> str:
    """The address of the head that `ray start` started last on this machine; empty if unknown."""
    places = (os.environ.get(name) for name in ("RAY_TMPDIR", "TMPDIR"))
    folder = next(filter(None, places), "/tmp")
    try:
        return Path(folder, "ray", "ray_current_cluster").read_text("utf-8").strip()
    except OSError:
        return ""


@contextmanager
def _same_end_by_sigterm() -> Iterator[None]:
    """Undo the handler of SIGTERM that a block sets: Ray's would end the process like any exit."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        # Only the main thread sets handlers, Ray too (ValueError); `before` is None where a library
        # in C has set one (TypeError).
        with suppress(ValueError, TypeError):
            signal.signal(signal.SIGTERM, before)


CONNECTED = {"dask": _dask, "ray": _ray}
"""Backends that are connected to a cluster, with functions that return settings of joblib."""


BACKENDS = ("loky", *CONNECTED)
"""Backends that the command line knows."""


def _imported(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidValue(
            f"the backend {extra} needs the extra {extra} of transformist",
            received=f"an environment without the library {module.partition('.')[0]}",
            where="check",
            remedy=f"pip install 'transformist[{extra}]', or leave out the backend",
        ) from None


def _no_scheduler(kind: str, address: str, error: Exception) -> InvalidValue:
    return InvalidValue(
        f"a scheduler of {kind} must answer at its address within {CONNECT:g} s",
        received=f"{address}, where none does ({type(error).__name__})",
        where="check",
        remedy="start one, or give another address"
        + (" (`ray stop` forgets a head that has ended)" if kind == "Ray" else ""),
    )
