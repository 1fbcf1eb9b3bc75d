"""Seconds of the processor to trace, compile and certify one program; a line of JSON for each.

A part that takes less than `ENOUGH` seconds is repeated, and the least of its times counts: what
else a machine does only ever adds to a time.

python benchmarks/timed_case.py shift 50

Names and arguments are those of the functions in growing_programs.py. Imports are not counted;
`import_time.py` measures them. PYTHONPATH=CHECKOUT/src times the package of another checkout.
"""

import json
import resource
import sys

import growing_programs

import transformist as tf
from transformist.errors import TransformistError
from transformist.programs import PROGRAMS

LIMIT = 60
"""Seconds of the processor after which the program is given up."""


ENOUGH, TIMES = 2, 5
"""Seconds after which a part is not repeated, and the most times that it runs."""


def processor():
    """The seconds used so far; `time.process_time` may advance by 4 ms while a limit is set."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def seconds(work):
    times = []
    while len(times) < TIMES and sum(times) < ENOUGH:
        start = processor()
        found = work()
        times.append(processor() - start)
    return found, round(min(times), 4)


def tell(**found):
    print(json.dumps(found), flush=True)


def main():
    name, *given = sys.argv[1:]
    tf.certify(tf.compile(PROGRAMS["majority"], max_length=1))  # imports both
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    arguments = [int(each) if each.isdigit() else each for each in given]
    case, traced = seconds(lambda: getattr(growing_programs, name)(*arguments))
    tell(case=case.name, trace=traced, symbols=len(case.program.alphabet))
    model, compiled = seconds(case.model)
    tell(compile=compiled, weights=model.nonzero)
    try:
        certificate, certified = seconds(lambda: tf.certify(model, case.arithmetic))
    except TransformistError as refusal:
        tell(holds=f"refused: {refusal}")
    else:
        tell(certify=certified, holds=certificate.holds)


if __name__ == "__main__":
    main()
