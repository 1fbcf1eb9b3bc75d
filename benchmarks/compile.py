"""Processor time of `tf.compile` and `tf.certify`, beside goals, and its growth with the weights.

python benchmarks/compile.py [worked] [table] [growth] [--json] [--before CHECKOUT]

- worked: the worked programs, at several lengths. A first compilation in the process, then the
  median of several; wall-clock time, and that of the processor beside it.
- table: programs of many symbols, tables or positions. Each runs in a process of its own, which
  is ended after `LIMIT` seconds of the processor.
- growth: families of programs of growing size, and the exponent p of the fit time = c sizeᵖ.

With `--before`, the table also runs the version at CHECKOUT, case by case in turn, and shows what
share of its time is left, beside the share that is wanted: the goal over the time before, both of
one machine. `git worktree add /tmp/before fa08520` makes the checkout of the times before.

All three when none is named. What is recorded of other compilers (recorded.toml) was measured
elsewhere.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import timed_case

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


TABLE = (
    # case, seconds to compile and to certify on fa08520, where they ended, and the goal for each
    ("shift 50", 0.17, 0.25, 0.05),
    ("shift 100", 0.45, 0.72, 0.1),
    ("shift 200", 1.9, 2.9, 0.2),
    ("shift 400", 8.8, 11.8, 0.4),
    ("rightmost 100", 10.1, None, 0.2),
    ("rightmost 300", None, None, 0.6),
    ("permutations A4 100", 1.6, 2.9, 0.3),
    ("permutations S4 100", 10.2, 131, 1.0),
    ("binary_mod_3 200", 0.35, 0.61, 0.1),
    ("worked histogram 16000", 0.1, 57, 1.0),
    ("worked histogram 50000", 0.1, None, 3.0),
)

FAMILIES = {
    # what the size counts, the family, sizes: 10 to 1,000 symbols, or about 10² to 2·10⁴ weights
    "shift by 2": ("symbols", "shift", (10, 30, 100, 300, 1000)),
    "select and rightmost": ("symbols", "rightmost", (10, 30, 100, 300, 1000)),
    "share of a symbol": ("symbols", "share", (10, 30, 100, 300, 1000)),
    "cyclic machines": ("weights", "cyclic", (2, 4, 8, 12, 18, 26)),
    "parity of the last": ("weights", "flips", (4, 12, 40, 120, 400)),
    "i² mod 7": ("weights", "places", (30, 100, 300, 1000, 4000)),
}
LARGEST_EXPONENT = 1.2


def measured(case, checkout=None):
    """Seconds of the processor to trace, compile and certify a case, in a process of its own.

    A part that did not end within the limit is None.
    """
    other = {} if checkout is None else {"PYTHONPATH": str(Path(checkout).resolve() / "src")}
    child = subprocess.run(
        [sys.executable, timed_case.__file__, *case.split()],
        env=os.environ | other,
        stdout=subprocess.PIPE,
        text=True,
    )
    found = {"case": case, "trace": None, "compile": None, "certify": None, "holds": None}
    for line in child.stdout.splitlines():
        found |= json.loads(line)
    return found


def table(checkout):
    """The programs of the table, with times before and goals."""
    for case, *before, goal in TABLE:
        found = measured(case) | {"goal": goal}
        found |= dict(zip(("compile_before", "certify_before"), before, strict=True))
        if checkout is not None:
            found["earlier"] = measured(case, checkout)
        yield found


def growth():
    """The families of programs, with exponents."""
    for name, (unit, family, sizes) in FAMILIES.items():
        points = [measured(f"{family} {size}") for size in sizes]
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


def report(parts, checkout):
    """The measurements; those of the table and of the growth are made as they are read."""
    found = {"machine": f"{platform.machine()}, Python {platform.python_version()}"}
    if "worked" in parts:
        made = list(results())
        longest = [each["processor_ms"] for each in made if each["n"] == max(LENGTHS)]
        found |= {"goal_ms": GOAL, "met": max(longest) <= GOAL, "results": made}
    if "table" in parts:
        found["table"] = table(checkout)
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
    print(f"\nseconds of the processor (goal); each case given up after {timed_case.LIMIT}:")
    for each in cases:
        times = (of_part(each, part) for part in ("compile", "certify"))
        print(f"{in_words_of_case(each)}  {'  '.join(times)}  {holds(each)}")


def of_part(each, part):
    """The time of a part, and its share of the time before where both are known."""
    now, goal, before = each[part], each["goal"], each[f"{part}_before"]
    text = f"{part} {of_time(now)} ({goal})"
    earlier = each.get("earlier", {}).get(part)
    if now is None or earlier is None or before is None:
        return text
    return f"{text}, of {earlier:.2f}: {now / earlier:.3f} ({goal / before:.3f})"


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
    asking = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asking.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    asking.add_argument("--json", action="store_true", help="print JSON")
    asking.add_argument("--before", metavar="CHECKOUT", help="a directory with an earlier version")
    asked = asking.parse_args()
    if not {*asked.parts} <= {*PARTS}:
        asking.error(f"the parts are {', '.join(PARTS)}; received {' '.join(asked.parts)}")
    if asked.before is not None and not Path(asked.before, "src", "transformist").is_dir():
        asking.error(
            f"--before must name a checkout with src/transformist; received {asked.before}"
        )
    found = report(asked.parts or PARTS, asked.before)
    if asked.json:
        print(json.dumps(found, indent=1, default=list))
    else:
        sys.stdout.reconfigure(line_buffering=True)
        show(found)


if __name__ == "__main__":
    main()
