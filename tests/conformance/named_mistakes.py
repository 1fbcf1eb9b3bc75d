"""The mistakes that evidence names for planted bugs, and those that are true.

`python tests/conformance/named_mistakes.py` runs every bug, in two minutes of processor time.
"""

import tempfile
from pathlib import Path

from bug_table import LENGTH
from opened_engines import opening
from planted_bugs import BUGS

from transformist.conformance import run, write

# Divided scores, and an ignored eps, have several bugs whose tokens are the same.
TRUE = {
    "llama-rotary-pairs-interleaved": "rotations pair neighbouring coordinates",
    "llama-theta-is-the-default": "rope_theta is 10000, not the value in the file",
    "llama-rotary-left-out": "there are no rotations",
    "gpt2-scale-left-out": "scores have no scale",
    "llama-scale-left-out": "scores have no scale",
    "gpt2-scale-without-root": "scores are divided by the size of a head",
    "llama-scale-without-root": "scores are divided by the size of a head",
    "gpt2-scale-applied-twice": "scores are divided by the size of a head",
    "llama-scale-applied-twice": "scores are divided by the size of a head",
    "llama-groups-tiled": "query heads take keys and values in turns",
    "gpt2-eps-is-zero": "eps is 1e-05, not the value in the file",
    "gpt2-eps-is-the-default-1e-6": "eps is 1e-05, not the value in the file",
    "llama-eps-is-the-default-1e-5": "eps is 1e-06, not the value in the file",
    "gpt2-gain-plus-one": "1 is added to the gain",
    "llama-gain-plus-one": "1 is added to the gain",
    "gpt2-mean-not-subtracted": "the norm does not subtract the mean",
    "llama-mean-subtracted": "the norm subtracts the mean",
    "gpt2-final-norm-left-out": "the final norm is missing",
    "llama-final-norm-left-out": "the final norm is missing",
    "gpt2-activation-is-gelu-with-erf": "the activation is gelu",
    "gpt2-activation-is-relu": "the activation is relu",
    "llama-activation-is-gelu-with-tanh": "the activation is gelu_new",
    "gpt2-activation-is-silu": "the activation is silu",
    "gpt2-activation-is-quick-gelu": "the activation is quick_gelu",
    "llama-gate-and-up-exchanged": "the activation is applied to up_proj",
    "gpt2-last-layer-left-out": "layer 2 is skipped",
    "llama-last-layer-left-out": "layer 2 is skipped",
}
"""The bugs that are named rightly, and their mistakes."""


def suites(directory, length):
    """A suite of each family in a directory."""
    made = {family: Path(directory) / family for family in ("gpt2", "llama")}
    for family, place in made.items():
        write(place, family, length)
    return made


def first_named(bug, suite, mode=None):
    """The mistakes that the first evidence names, and whether the bug is found."""
    found = run(opening(bug.engine), suite, mode=mode)
    evidence = found.evidence()
    return (evidence[0].mistakes if evidence else ()), not found.is_right


if __name__ == "__main__":
    named, found, right = [], 0, 0
    with tempfile.TemporaryDirectory() as directory:
        made = suites(directory, LENGTH)
        for bug in BUGS:
            mistakes, is_found = first_named(bug, made[bug.family])
            found += is_found
            if mistakes:
                named.append(bug.id)
                is_right = TRUE.get(bug.id) in mistakes and len(mistakes) <= 2
                right += is_right
                print("right" if is_right else "wrong", bug.id, " or ".join(mistakes), sep="\t")
    print(f"{found} of {len(BUGS)} bugs found, {len(named)} named, {right} of these rightly")
