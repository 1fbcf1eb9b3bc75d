"""One measurement, in the process that makes it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from transformist.arithmetic import number_system
from transformist.bench.by_numpy import dense
from transformist.bench.by_torch import TorchModel, is_there
from transformist.bench.every_string import EVERY, sampled
from transformist.bench.workloads import DECODED, WHOLE
from transformist.engines.structured import decoder, evaluate
from transformist.verify import check

DENSE = 16_384
"""The length at which the dense evaluations are measured too; beyond it they take minutes."""

FIRST = 2048
"""Symbols of the first call, which compiles the kernels or loads their code."""

TAKEN = 10_000
"""Tokens that are read one by one after the others."""

ROUNDS = 3
"""The least number of measurements of a call."""

# A call of a few milliseconds varies by half from one to the next; the best of 0.5 s of them varies
# by a few percent.
ENOUGH = 0.5
"""The least time, in seconds, for which a call is measured."""


def measured(case: str, n: int) -> dict[str, Any]:
    """A case at a length: times, peak memory, whether the answers are right, and the load before.

    Example:
        >>> measured("decode-dyck-1", 100)["right"]
        True

    """
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    found = _decoded if case in DECODED else _checked if case in EVERY else _evaluated
    return {"load": load, **found(case, n)}


def timed(call: Callable[[], Any], rounds: int = ROUNDS) -> tuple[Any, float, float]:
    """The result of a call, and its best times in seconds, of the clock and of the processor."""
    walls: list[float] = []
    processors: list[float] = []
    result = None
    while len(walls) < rounds or (rounds > 1 and sum(walls) < ENOUGH):
        wall, processor = time.perf_counter(), time.process_time()
        result = call()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return result, min(walls), min(processors)


def peak_mib() -> int | None:
    """The most memory that this process has held, in MiB; `None` if it is unknown."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    except OSError:
        pass
    return None


def _evaluated(case: str, n: int) -> dict[str, Any]:
    """Measure a whole input."""
    model, x, expected = WHOLE[case](n)
    _, first, _ = timed(lambda: evaluate(model, x[:FIRST]), 1)
    answer, wall, processor = timed(lambda: evaluate(model, x).answer)
    found = {
        "first_call_seconds": round(first, 3),
        "seconds": round(wall, 4),
        "processor_seconds": round(processor, 4),
        "peak_mib": peak_mib(),
        "right": bool(answer == expected),
    }
    return {**found, **_ratios(model, x, wall, found["right"])} if n == DENSE else found


def _ratios(model: Any, x: str, seconds: float, right: Any) -> dict[str, Any]:
    """Ratios of the times of dense evaluations to the time of the engine, vectors compared."""
    z = model.embedding([x], number_system("float64"))[0]
    vectors = evaluate(model, x).vectors
    final, by_numpy, _ = timed(lambda: dense(model, z), 1)
    right &= bool(np.allclose(final, vectors, atol=1e-6))
    ratios = {"ratio_to_numpy": round(by_numpy / seconds, 1)}
    if is_there():
        in_torch = TorchModel(model)
        in_torch(z[:FIRST])
        final, by_torch, _ = timed(lambda: in_torch(z))
        ratios["ratio_to_torch"] = round(by_torch / seconds, 1)
        if in_torch.is_exact:
            right &= bool(np.allclose(final, vectors, atol=1e-6))
    return {**ratios, "right": right}


def _decoded(case: str, n: int) -> dict[str, Any]:
    """Measure a decoder that reads n tokens together, then others one by one."""
    model, x, expected = DECODED[case](n + TAKEN)
    before = x[:FIRST]

    def first_calls() -> None:
        begun = decoder(model)
        begun.take_all(before)
        for symbol in before:
            begun.take(symbol)

    _, first, _ = timed(first_calls, 1)
    decoder(model).take_all(x[:n])  # long inputs use kernels that short ones do not
    reader = decoder(model)
    answers, together, processor = timed(lambda: reader.take_all(x[:n]), 1)
    single, _, apart = timed(lambda: [reader.take(symbol) for symbol in x[n:]], 1)
    return {
        "first_call_seconds": round(first, 3),
        "seconds": round(together, 4),
        "processor_seconds": round(processor, 4),
        "peak_mib": peak_mib(),
        "take_all_per_second": round(n / processor),
        "take_per_second": round(TAKEN / apart),
        "take_microseconds": round(1e6 * apart / TAKEN, 2),
        "right": [*answers, *single] == list(expected),
    }


def _checked(case: str, n: int) -> dict[str, Any]:
    """Measure a check of every string, and a sample of the strings checked one at a time.

    The time of all strings one at a time is extrapolated: that of the sample, times the number of
    strings for each one in the sample.
    """
    every = EVERY[case]
    model, reference, arithmetic = every.build(n), every.reference, every.arithmetic
    verdict, wall, processor = timed(lambda: check(model, reference, n, arithmetic), 1)
    # The peak is read before the sample is made, whose strings would count as well.
    peak = peak_mib()
    strings = sum(len(model.alphabet) ** length for length in range(n + 1))
    sample = list(sampled(model, n))

    def one_at_a_time() -> bool:
        return all(model(x, arithmetic) == reference(x) for x in sample)

    same, _, alone = timed(one_at_a_time, 1)
    apart = alone * strings / len(sample)
    return {
        "seconds": round(wall, 4),
        "processor_seconds": round(processor, 4),
        "peak_mib": peak,
        "strings": strings,
        "sampled": len(sample),
        "one_at_a_time_seconds": round(apart, 1),
        "ratio_to_one_at_a_time": round(apart / processor, 1),
        "right": bool(verdict.held and verdict.cases == strings and same),
    }
