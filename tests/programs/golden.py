"""A fingerprint of every weight of the compiled programs: golden.json, beside this file.

python tests/programs/golden.py             writes golden.json, after a change that is meant
python tests/programs/golden.py --print     prints what it would write
python tests/programs/golden.py --reversed  the same, compiled in opposite order

A fingerprint is the SHA-256 of a text that holds the shape and exact entries of every array, and
all else that a part has but the arithmetic it is built for: names of slots, spans, labels, masks.
"""

import dataclasses
import hashlib
import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

import transformist as tf
from transformist.compiler.compile_options import WEIGHTINGS
from transformist.compiler.uncompilable import Uncompilable
from transformist.programs import PROGRAMS
from transformist.report.size import size

FILE = Path(__file__).with_suffix(".json")

KEYS = [(name, weighting, N) for name in PROGRAMS for weighting in WEIGHTINGS for N in (12, 200)]


def serial(value):
    """Any part of a model as plain lists and texts; numbers as p or p/q."""
    if dataclasses.is_dataclass(value):
        fields = [each.name for each in dataclasses.fields(value) if each.init]
        fields = [name for name in fields if name != "built_for"]
        return [type(value).__name__, *([name, serial(getattr(value, name))] for name in fields)]
    if isinstance(value, np.ndarray):
        return ["array", list(value.shape), [str(Fraction(x)) for x in value.ravel().tolist()]]
    if isinstance(value, tuple):
        return ["tuple", *map(serial, value)]
    if isinstance(value, str):  # a mask or weighting is its name
        return ["str", str(value)]
    if isinstance(value, bool | int | None):
        return [type(value).__name__, str(value)]
    raise TypeError(f"{type(value)} has no place in a golden file yet")


def text(model):
    return json.dumps(serial(model), ensure_ascii=True)


def weights(model):
    """The text without N."""
    return text(dataclasses.replace(model, max_length=1))


def entry(name, weighting, N):
    """Size and fingerprint of a program that is compiled, and which is refused."""
    try:
        model = tf.compile(PROGRAMS[name], max_length=N, weighting=weighting)
    except Uncompilable:
        return {"refused": True}
    found = dataclasses.asdict(size(model))
    return {**found, "sha256": hashlib.sha256(text(model).encode()).hexdigest()}


def contents(keys=KEYS):
    """Each case's size and fingerprint, compiled in the order of the keys."""
    made = {
        f"{name}, {weighting}, N = {N}": entry(name, weighting, N) for name, weighting, N in keys
    }
    return json.dumps(dict(sorted(made.items())), indent=1) + "\n"


def main():
    asked = sys.argv[1:]
    if asked == []:
        FILE.write_text(contents(), encoding="utf-8")
    elif asked == ["--print"]:
        print(contents(), end="")
    elif asked == ["--reversed"]:
        print(contents(KEYS[::-1]), end="")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
