"""How much longer it takes to import transformist than numpy, in alternating fresh processes.

python benchmarks/import_time.py
"""

import json
import statistics
import subprocess
import sys
import time

ROUNDS = 15
GOAL = 0.15


def seconds(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main() -> None:
    for statement in ("import numpy", "import transformist"):
        seconds(statement)
    pairs = [(seconds("import numpy"), seconds("import transformist")) for _ in range(ROUNDS)]
    numpy, ours = (statistics.median(each) for each in zip(*pairs, strict=True))
    over = statistics.median(b - a for a, b in pairs)
    print(
        json.dumps(
            {
                "rounds": ROUNDS,
                "numpy_seconds": round(numpy, 4),
                "transformist_seconds": round(ours, 4),
                "seconds_over_numpy": round(over, 4),
                "goal_seconds_over_numpy": GOAL,
                "met": over <= GOAL,
            }
        )
    )


if __name__ == "__main__":
    main()
