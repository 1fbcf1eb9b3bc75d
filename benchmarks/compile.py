"""Processor time of `tf.compile` and `tf.certify`, beside goals, and its growth with the weights.

python benchmarks/compile.py [worked] [table] [growth] [--json]

- worked: the worked programs, at several lengths. A first compilation in the process, then the
  median of several; wall-clock time, and that of the processor beside it.
- table: programs of many symbols, tables or positions. Each runs in a process of its own, which
  is ended after `LIMIT` seconds of the processor.
- growth: families of programs of growing size, and the exponent p of the fit time = c sizeᵖ.

All three when none is named. What is recorded of other compilers (recorded.toml) was measured
elsewhere.
"""

import json
import math
import multiprocessing
import platform
import resource
import statistics
import sys
import time
import tomllib
from pathlib import Path

import growing_programs as grow

import transformist as tf
from transformist.compiler.compile_options import WEIGHTINGS
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import TransformistError
from transformist.programs import PROGRAMS
from transformist.report.size import size
from transformist.verify.certificate.identity import digest

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


LIMIT = 60
"""Seconds of the processor after which a case is given up."""

TABLE = (
    # case, seconds to compile and to certify before 23 November 2026, goal for each
    (lambda: grow.shift(50), "0.17", "0.25", 0.05),
    (lambda: grow.shift(100), "0.45", "0.72", 0.1),
    (lambda: grow.shift(200), "1.9", "2.9", 0.2),
    (lambda: grow.shift(400), "8.8", "11.8", 0.4),
    (lambda: grow.rightmost(100), "10.1", "-", 0.2),
    (lambda: grow.rightmost(300), "over 200", "-", 0.6),
    (lambda: grow.machine("A4", grow.A4, 100), "1.6", "2.9", 0.3),
    (lambda: grow.machine("S4", grow.S4, 100), "10.2", "131", 1.0),
    (lambda: grow.machine("binary mod 3", grow.BINARY_MOD_3, 200), "0.35", "0.61", 0.1),
    (lambda: grow.worked("histogram", 16_000), "0.1", "57", 1.0),
    (lambda: grow.worked("histogram", 50_000), "0.1", "over 300", 3.0),
)

FAMILIES = {
    # what the size counts, the family, sizes: 10 to 1,000 symbols, or about 10² to 2·10⁴ weights
    "shift by 2": ("symbols", grow.shift, (10, 30, 100, 300, 1000)),
    "select and rightmost": ("symbols", grow.rightmost, (10, 30, 100, 300, 1000)),
    "share of a symbol": ("symbols", grow.share, (10, 30, 100, 300, 1000)),
    "cyclic machines": ("weights", grow.cyclic, (2, 4, 8, 12, 18, 26)),
    "parity of the last": ("weights", grow.flips, (4, 12, 40, 120, 400)),
    "i² mod 7": ("weights", grow.places, (30, 100, 300, 1000, 4000)),
}
LARGEST_EXPONENT = 1.2


def measured(make):
    """Seconds of the processor to trace, compile and certify a case, in a process of its own.

    The import of the compiler and of the checker is not counted; `import_time.py` measures it.
    A part that did not end within the limit is None.
    """
    fork = multiprocessing.get_context("fork")
    receiving, sending = fork.Pipe(duplex=False)
    child = fork.Process(target=_measure, args=(make, sending))
    child.start()
    sending.close()
    found = {"case": "", "trace": None, "compile": None, "certify": None, "holds": None}
    try:
        while True:
            found |= receiving.recv()
    except EOFError:
        child.join()
    return found


def _measure(make, sending):
    tf.certify(tf.compile(PROGRAMS["majority"], max_length=1))  # imports both
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))

    def seconds(work):
        start = time.process_time()
        return work(), round(time.process_time() - start, 4)

    case, traced = seconds(make)
    sending.send({"case": case.name, "trace": traced, "symbols": len(case.program.alphabet)})
    model, compiled = seconds(case.model)
    fingerprint = digest(model)[:16]
    sending.send({"compile": compiled, "weights": model.nonzero, "fingerprint": fingerprint})
    try:
        certificate, certified = seconds(lambda: tf.certify(model, case.arithmetic))
    except TransformistError as refusal:
        sending.send({"holds": f"refused: {refusal}"})
    else:
        sending.send({"certify": certified, "holds": certificate.holds})
    sending.close()


def table():
    """The programs of the table, with times before and goals."""
    for make, compile_before, certify_before, goal in TABLE:
        yield measured(make) | {
            "compile_before": compile_before,
            "certify_before": certify_before,
            "goal": goal,
        }


def growth():
    """The families of programs, with exponents."""
    for name, (unit, family, sizes) in FAMILIES.items():
        points = [measured(lambda family=family, count=count: family(count)) for count in sizes]
        exponents = {part: exponent(points, unit, part) for part in ("compile", "certify")}
        yield {"family": name, "size": unit, "points": points, "exponents": exponents}


SHORTEST = 0.001
"""Seconds that a shorter time counts as: some clocks of the processor show it as 0."""


def exponent(points, unit, part):
    """p of the least-squares fit log time = p log size + log c; None where a time is missing."""
    if any(point[part] is None for point in points):
        return None
    x = [math.log(point[unit]) for point in points]
    y = [math.log(max(point[part], SHORTEST)) for point in points]
    return round(statistics.linear_regression(x, y).slope, 2)


def report(parts):
    """The measurements; those of the table and of the growth are made as they are read."""
    found = {"machine": f"{platform.machine()}, Python {platform.python_version()}"}
    if "worked" in parts:
        made = list(results())
        longest = [each["processor_ms"] for each in made if each["n"] == max(LENGTHS)]
        found |= {"goal_ms": GOAL, "met": max(longest) <= GOAL, "results": made}
    if "table" in parts:
        found["table"] = table()
    if "growth" in parts:
        found["growth"] = growth()
    recorded = tomllib.loads(RECORDED.read_text(encoding="utf-8"))["recorded"]
    return found | {"recorded_elsewhere": recorded}


def show(found):
    print(found["machine"])
    if "results" in found:
        show_worked(found)
    if "table" in found:
        show_table(found["table"])
    for family in found.get("growth", ()):
        show_family(family)
    print("\nrecorded elsewhere, not measured here (seconds of the processor):")
    for each in found["recorded_elsewhere"]:
        print(f"{each['program']:22} {in_words(each)}")


def show_worked(found):
    print(f"times in ms: first, median of {ROUNDS}, of the processor")
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


def show_table(cases):
    print(f"\nseconds of the processor (before, goal); each case given up after {LIMIT}:")
    for each in cases:
        times = (
            f"{part} {of_time(each[part])} ({each[f'{part}_before']}, {each['goal']})"
            for part in ("compile", "certify")
        )
        print(f"{in_words_of_case(each)}  {'  '.join(times)}  {holds(each)}")


def show_family(family):
    print(f"\n{family['family']}, by {family['size']}:")
    for each in family["points"]:
        times = (f"{part} {of_time(each[part])}" for part in ("compile", "certify"))
        print(f"{in_words_of_case(each)}  {'  '.join(times)}  {holds(each)}")
    fits = ", ".join(f"{part} {p}" for part, p in family["exponents"].items())
    print(f"exponents: {fits}; at most {LARGEST_EXPONENT} wanted")


def in_words_of_case(each):
    weights = each.get("weights", "?")
    return f"{each['case']:34} {weights:>6} weights  trace {of_time(each['trace'])}"


def of_time(seconds):
    return "     -" if seconds is None else f"{seconds:6.3f}"


def holds(each):
    found = each["holds"]
    return found if isinstance(found, str) else {True: "held", False: "not held"}.get(found, "")


def in_words(recorded):
    length = f" at N = {recorded['length']}" if recorded["length"] else ""
    parameters = f", {recorded['parameters']} parameters" if recorded["parameters"] else ""
    note = f"; {recorded['note']}" if recorded["note"] else ""
    return f"{recorded['compiler']}{length}: {recorded['seconds']} s{parameters}{note}"


PARTS = ("worked", "table", "growth")


def main():
    parts = [each for each in sys.argv[1:] if each != "--json"]
    if not {*parts} <= {*PARTS}:
        sys.exit(__doc__)
    found = report(parts or PARTS)
    if "--json" in sys.argv[1:]:
        print(json.dumps(found, indent=1, default=list))
    else:
        sys.stdout.reconfigure(line_buffering=True)
        show(found)


if __name__ == "__main__":
    main()
