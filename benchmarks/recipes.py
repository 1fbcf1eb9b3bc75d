"""Processor time in which every recipe is built, beside the goal of 0.2 s.

python benchmarks/recipes.py [LENGTH] [--json]

LENGTH is N for the recipes that are built for a longest input; 1024 when left out. The time is that
of the first build of a recipe in the process, before anything is cached; `again` is the least time
of later ones. Modules are imported before. Prints the machine and the load beside the times.
"""

import json
import os
import platform
import sys
import time

import transformist as tf

GOAL = 0.2
"""Seconds of the processor in which a recipe is to be built."""

ROUNDS = 3


def times(recipe, length):
    """Processor time of the first build, and the least of later ones."""
    settings = {"max_length": length} if "max_length" in recipe.parameters else {}
    found = []
    for _ in range(1 + ROUNDS):
        start = time.process_time()
        recipe.build(**settings)
        found.append(time.process_time() - start)
    first, *later = found
    return {"recipe": recipe.name, "seconds": first, "again": min(later)}


def main(words):
    lengths = [int(word) for word in words if word.isdigit()]
    length = lengths[0] if lengths else 1024
    tf.recipe("min").build()
    rows = [times(each, length) for each in tf.recipes()]
    rows.sort(key=lambda row: -row["seconds"])
    facts = {
        "machine": platform.processor() or platform.machine(),
        "load": os.getloadavg()[0],
        "length": length,
        "goal": GOAL,
        "above": [row["recipe"] for row in rows if row["seconds"] > GOAL],
        "results": rows,
    }
    if "--json" in words:
        print(json.dumps(facts))
        return
    print(f"{len(rows)} recipes, N = {length}, load {facts['load']:.1f}; slowest first")
    for row in rows[:10]:
        first, again = (1000 * row[name] for name in ("seconds", "again"))
        print(f"{row['recipe']:32}{first:8.1f} ms, again {again:.1f} ms")
    print(f"above {GOAL} s: {', '.join(facts['above']) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
