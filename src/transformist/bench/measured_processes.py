"""Measurements, each in a process of its own, so that peak memory is that of one case."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from transformist.bench.every_string import EVERY
from transformist.bench.workloads import DECODED

LENGTHS = (16_384, 10**5, 10**6)
"""Lengths of whole inputs: the dense evaluations are measured at the first, the growth of time
between the last two."""

DECODED_LENGTHS = (10**4, 10**6)
"""Symbols that a decoder has read before single tokens are measured."""

NOT_MEASURED: Mapping[str, None] = dict.fromkeys(
    (
        "first_call_seconds", "seconds", "processor_seconds", "peak_mib", "exponent",
        "ratio_to_torch", "ratio_to_numpy", "take_all_per_second", "take_per_second",
        "take_microseconds", "strings", "sampled", "one_at_a_time_seconds",
        "ratio_to_one_at_a_time", "right", "load", "refused",
    )
)  # fmt: skip
"""A row before anything is measured."""


def measurements(
    cases: Iterable[str],
    quick: bool = False,
    begins: Callable[[str, int], None] = lambda *_: None,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each case and length once it is measured; only the first length if quick.

    `exponent`, at the last length, is the exponent of n in the growth of time since the length
    before: processor time, or the time of a single `take`. Checks of every string have none, as
    their time grows with the number of strings. `begins` is called with the case and the
    length before each measurement.
    """
    for case in cases:
        lengths = _lengths(case)
        rows: list[dict[str, Any]] = []
        for n in lengths[:1] if quick else lengths:
            begins(case, n)
            row = _in_a_process(case, n)
            if n == lengths[-1] and case not in EVERY:
                row["exponent"] = _exponent(rows[-1], row)
            rows.append(row)
            yield row


def _lengths(case: str) -> tuple[int, ...]:
    if case in EVERY:
        return EVERY[case].lengths
    return DECODED_LENGTHS if case in DECODED else LENGTHS


def _exponent(before: dict[str, Any], row: dict[str, Any]) -> float | None:
    measure = "take_microseconds" if row["take_microseconds"] else "processor_seconds"
    if not before[measure] or not row[measure]:
        return None
    return round(math.log(row[measure] / before[measure]) / math.log(row["n"] / before["n"]), 2)


def _in_a_process(case: str, n: int) -> dict[str, Any]:
    """The row that a new process prints, or the reason why there is none."""
    command = [sys.executable, "-m", "transformist.bench", case, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        found = json.loads(done.stdout)
    else:
        said = done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"]
        found = {"refused": said[-1]}
    return {"case": case, "n": n, **NOT_MEASURED, **found}


def machine() -> str:
    """The system, the processors, and the versions of the libraries measured.

    Example:
        >>> "processors, Python" in machine() and "numpy" in machine()
        True

    """
    versions = (f"{name} {_version(name)}" for name in ("numpy", "numba", "torch"))
    python = f"Python {platform.python_version()}"
    return ", ".join((platform.platform(), f"{os.cpu_count()} processors", python, *versions))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
