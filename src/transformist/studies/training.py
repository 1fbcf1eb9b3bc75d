"""Training of one case of the study learnability in PyTorch, with what is measured of it."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from transformist.studies import trained_dyck, trained_lookup
from transformist.studies.experiment import Row

MOST_WRONG = {"lookup": 0.25, "dyck-1": 0.0}
"""Largest error of a task that is solved: within 1/4, a bit can be rounded (section 5.7)."""

OUTCOMES: Mapping[
    tuple[bool, bool, bool], str
] = {  # (noise or not, solved at the start, solved at the end)
    (False, False, True): "found",
    (False, False, False): "not found",
    (True, True, True): "kept",
    (True, True, False): "left",
    (True, False, True): "found again",
    (True, False, False): "not found again",
}


def is_solved(task: str, error: float) -> bool:
    """True if every lookup can be rounded to a bit, or no answer is wrong."""
    return error <= MOST_WRONG[task]


def trained(case: Row) -> Sequence[Row]:
    """Train one case, and return its row."""
    torch: Any = importlib.import_module("torch")
    threads = torch.get_num_threads()
    # One thread adds in one order, so that a seed gives the same weights each time.
    torch.set_num_threads(1)
    try:
        return [_trained(case, torch)]
    finally:
        torch.set_num_threads(threads)


def _trained(case: Row, torch: Any) -> Row:
    N, steps, seed = case["N"], case["steps"], case["seed"]
    generator = torch.Generator().manual_seed(seed)
    is_lookup = case["task"] == "lookup"
    task = (
        trained_lookup.LookupTask(N, case["features"], generator)
        if is_lookup
        else trained_dyck.Dyck1(N, seed, generator)
    )
    with torch.no_grad():
        built = [task.measured(n, 1) for n in (N, 2 * N)]
        for each in task.weights:
            _begin(each, case["noise"], torch, generator)
    name, rate = case["optimizer"].split()
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(torch.optim, name)(task.weights, float(rate), **options)
    sharpness, found = 1.0, []
    for step in range(steps + 1):
        if step % (steps // 4) == 0:
            with torch.no_grad():
                found.append(task.measured(N, sharpness))
        if step < steps:
            # 1/τ grows from 1 to its last value, by the same factor at each step.
            if case["schedule"]:
                sharpness = task.last_sharpness ** ((step + 1) / steps)
            optimizer.zero_grad()
            task.loss(sharpness).backward()
            optimizer.step()
    with torch.no_grad():
        beyond = task.measured(2 * N, sharpness)
    at_first, at_last = (is_solved(case["task"], each["error"]) for each in (found[0], found[-1]))
    return {
        **case,
        "outcome": OUTCOMES[case["noise"] is not None, at_first, at_last],
        "loss": found[-1]["loss"],
        "loss of the construction": built[0]["loss"],
        "error": found[-1]["error"],
        "error at 2N": beyond["error"],
        "errors of the construction": [each["error"] for each in built],
        "gap of scores over training": [each["scores"] for each in found],
        "ln 8N": math.log(8 * N) if is_lookup else None,
    }


def _begin(weight: Any, noise: float | None, torch: Any, generator: Any) -> None:
    """Replace a weight by a random one, or add noise of a share of its largest entry."""
    drawn = torch.randn(weight.shape, generator=generator)
    if noise is not None:
        # Queries and keys that are all 0 have no gradient: there the noise is a share of 1.
        weight += noise * (weight.abs().max() or 1.0) * drawn
    elif weight.dim() > 1:
        weight.copy_(drawn / math.sqrt(weight.shape[1]))  # W x then has the variance of x
    else:
        weight.zero_()
