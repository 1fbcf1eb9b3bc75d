"""Time that the worked programs take to compile, and sizes of the models.

python benchmarks/compile.py [--json]

A first compilation in the process, then the median of several; wall-clock time, and that of the
processor beside it. What is recorded of other compilers (recorded.toml) was measured elsewhere.
"""

import json
import platform
import statistics
import sys
import time
import tomllib
from pathlib import Path

import transformist as tf
from transformist.compiler.compile_options import WEIGHTINGS
from transformist.compiler.uncompilable import Uncompilable
from transformist.programs import PROGRAMS
from transformist.report.size import size

LENGTHS = (12, 50, 100, 200)
ROUNDS = 9
GOAL = 50
"""Milliseconds of the processor that the slowest program may take."""

RECORDED = Path(__file__).with_name("recorded.toml")


def timed(name, weighting, N):
    """The model, with the milliseconds of the clock and of the processor."""
    wall, processor = time.perf_counter(), time.process_time()
    model = tf.compile(PROGRAMS[name], max_length=N, weighting=weighting)
    return model, 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - processor)


def result(name, weighting, N):
    model, first, _ = timed(name, weighting, N)
    times = [timed(name, weighting, N)[1:] for _ in range(ROUNDS)]
    wall, processor = (statistics.median(each) for each in zip(*times, strict=True))
    sizes = size(model)
    return {
        "case": name,
        "weighting": weighting,
        "n": N,
        "first_ms": round(first, 1),
        "ms": round(wall, 1),
        "processor_ms": round(processor, 1),
        "layers": sizes.layers,
        "heads": sizes.heads,
        "width": sizes.width,
        "nonzero": sizes.nonzero,
    }


def results():
    for name in PROGRAMS:
        for weighting in WEIGHTINGS:
            try:
                yield from [result(name, weighting, N) for N in LENGTHS]
            except Uncompilable:
                continue


def report():
    made = list(results())
    longest = [each["processor_ms"] for each in made if each["n"] == max(LENGTHS)]
    return {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "goal_ms": GOAL,
        "met": max(longest) <= GOAL,
        "results": made,
        "recorded_elsewhere": tomllib.loads(RECORDED.read_text(encoding="utf-8"))["recorded"],
    }


def show(found):
    print(f"{found['machine']}; times in ms: first, median of {ROUNDS}, of the processor")
    for each in found["results"]:
        print(
            f"{each['case']:22} {each['weighting']:15} N = {each['n']:3} "
            f"{each['first_ms']:7} {each['ms']:6} {each['processor_ms']:6}   "
            f"{each['layers']} layers, width {each['width']:2}, {each['nonzero']:3} non-zero"
        )
    print(
        f"at most {GOAL} ms of the processor at N = {max(LENGTHS)}: "
        f"{'yes' if found['met'] else 'no'}"
    )
    print("recorded elsewhere, not measured here (seconds of the processor):")
    for each in found["recorded_elsewhere"]:
        print(f"{each['program']:22} {in_words(each)}")


def in_words(recorded):
    length = f" at N = {recorded['length']}" if recorded["length"] else ""
    parameters = f", {recorded['parameters']} parameters" if recorded["parameters"] else ""
    note = f"; {recorded['note']}" if recorded["note"] else ""
    return f"{recorded['compiler']}{length}: {recorded['seconds']} s{parameters}{note}"


def main():
    if sys.argv[1:] not in ([], ["--json"]):
        sys.exit(__doc__)
    found = report()
    if sys.argv[1:]:
        print(json.dumps(found, indent=1))
    else:
        show(found)


if __name__ == "__main__":
    main()
