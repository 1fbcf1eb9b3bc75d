"""Time of importing transformist, and of its first use, over the time of importing numpy.

Processor time, of fresh processes that take turns, with the bytecode kept:

python benchmarks/import_time.py
"""

import json
import os
import resource
import statistics
import subprocess
import sys

ROUNDS = 15
GOAL = 0.15

PROGRAM = """
import transformist as tf
@tf.program(alphabet="()")
def last(x):
    return (x == ")").accept(empty=True)
tf.compile(last, max_length=9)
"""
STATEMENTS = {
    "numpy": ("-c", "import numpy"),
    "imported": ("-c", "import numpy, transformist"),
    "recipe_run": ("-c", "import transformist as tf; tf.recipe('dyck-1').build()('()')"),
    "program_compiled": ("-c", PROGRAM),
    "every_name": ("-c", "from transformist import *"),
    "command_help": ("-m", "transformist", "--help"),
    "command_list": ("-m", "transformist", "list"),
    "command_run": ("-m", "transformist", "run", "dyck-1", "()"),
}


def seconds(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=kept)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    for each in STATEMENTS.values():
        seconds(*each)
    rounds = [{k: seconds(*each) for k, each in STATEMENTS.items()} for _ in range(ROUNDS)]
    over = {
        name: round(statistics.median(each[name] - each["numpy"] for each in rounds), 3)
        for name in STATEMENTS
        if name != "numpy"
    }
    found = {
        "rounds": ROUNDS,
        "numpy_seconds": round(statistics.median(each["numpy"] for each in rounds), 3),
        "seconds_over_numpy": over,
        "goal_seconds_over_numpy": GOAL,
        "met": over["imported"] <= GOAL,
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
