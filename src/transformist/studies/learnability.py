"""Study learnability: are the constructions found, or kept, by gradient descent?"""

from __future__ import annotations

from collections.abc import Sequence

from transformist.studies import training, training_summary
from transformist.studies.experiment import Chart, Claimed, Row, Study, select

SEEDS = 5
ADAM, SGD, SLOW_ADAM = "Adam 0.03", "SGD 0.5", "Adam 0.01"
"""Each with its learning rate; SGD has a momentum of 0.9."""

# Task, N, features of positions, noise (None: random weights), optimizer, and schedule.
GRID: Sequence[tuple[str, int, str | None, float | None, str, bool]] = (
    ("lookup", 16, "i/N", None, ADAM, False),
    ("lookup", 16, "i/N", None, ADAM, True),
    ("lookup", 16, "i/N", None, SGD, False),
    ("lookup", 64, "i/N", None, ADAM, False),
    ("lookup", 64, "i/N", None, ADAM, True),
    ("lookup", 16, "one-hot", None, ADAM, False),
    ("lookup", 16, "one-hot", None, ADAM, True),
    ("lookup", 16, "i/N", 1e-4, ADAM, False),
    ("lookup", 16, "i/N", 1e-2, ADAM, False),
    ("lookup", 64, "i/N", 1e-4, ADAM, False),
    ("dyck-1", 16, None, None, SLOW_ADAM, False),
    ("dyck-1", 16, None, 1e-2, SLOW_ADAM, False),
)
STEPS = {"lookup": 20000, "dyck-1": 6000}
QUICK = ((0, 8000), (5, 2000), (7, 2000), (11, 400))
"""Lines of the grid, and their steps, of a quick run."""


def _cases(is_quick: bool) -> Sequence[Row]:
    runs = [(line, STEPS[line[0]], seed) for seed in range(SEEDS) for line in GRID]
    if is_quick:
        runs = [(GRID[number], steps, 0) for number, steps in QUICK]
    return [
        {
            **dict(
                zip(("task", "N", "features", "noise", "optimizer", "schedule"), line, strict=True)
            ),
            "steps": steps,
            "seed": seed,
        }
        for line, steps, seed in runs
    ]


def _is_counted(row: Row) -> bool:
    end = training.is_solved(row["task"], row["error"])
    return any(
        (is_noisy, at_last, outcome) == (row["noise"] is not None, end, row["outcome"])
        for (is_noisy, _, at_last), outcome in training.OUTCOMES.items()
    )


def _answer(rows: Sequence[Row]) -> str:
    solved = training_summary.solved
    plain = {"task": "lookup", "noise": None, "features": "i/N", "schedule": False}
    timed = {**plain, "schedule": True}
    one_hot = {**plain, "features": "one-hot"}
    right = [
        row for row in rows if row["task"] == "lookup" and row["outcome"] in training_summary.SOLVED
    ]
    going_on = [row for row in right if row["error at 2N"] is not None]
    beyond = [row for row in going_on if training.is_solved("lookup", row["error at 2N"])]
    blended = [row for row in right if row["gap of scores over training"][-1] <= 0]
    return (
        "Sometimes. The table has all seeds of each configuration: how many are right, and the "
        "best, median and worst of each number (the least loss and error, the largest gap; for "
        "Dyck-1, whose construction has equal scores, the least spread of scores).\n\n"
        "From random weights without a schedule, the lookup by i and i² is found in "
        f"{solved(rows, **plain, N=16, optimizer=ADAM)} runs with Adam at N = 16, "
        f"{solved(rows, **plain, optimizer=SGD)} with SGD, and "
        f"{solved(rows, **plain, N=64)} at N = 64; that by one-hot vectors in "
        f"{solved(rows, **one_hot)}. With the schedule these are "
        f"{solved(rows, **timed, N=16)} with Adam at N = 16, {solved(rows, **timed, N=64)} at "
        f"N = 64, and {solved(rows, **{**one_hot, 'schedule': True})} by one-hot vectors. "
        f"From the construction with noise, the lookup is right at the end in "
        f"{solved(rows, task='lookup', noise=1e-4, N=16)} runs (noise 10⁻⁴, N = 16), "
        f"{solved(rows, task='lookup', noise=1e-2)} (noise 10⁻²) and "
        f"{solved(rows, task='lookup', noise=1e-4, N=64)} (noise 10⁻⁴, N = 64). Dyck-1 has no "
        f"wrong test string at the end in {solved(rows, task='dyck-1', noise=None)} runs from "
        f"random weights and in {solved(rows, task='dyck-1', noise=1e-2)} from the construction "
        "with noise; the scores of its heads spread, which are all equal in the construction.\n\n"
        "Right to N is not yet the construction. "
        f"Of the {len(right)} lookups right to N, {len(going_on)} have positions that go on "
        f"beyond N, and {len(beyond)} of these are right to 2N. In {len(blended)} of the "
        f"{len(right)}, some other key has a larger score than the wanted one at the end."
    )


def _curves(rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    return {
        f"N = {row['N']}, {row['features']}, {row['optimizer']}": list(
            zip((0, 0.25, 0.5, 0.75, 1), row["gap of scores over training"], strict=True)
        )
        for row in rows
        if (row["task"], row["noise"], row["schedule"], row["seed"]) == ("lookup", None, False, 0)
    }


LEARNABILITY = Study(
    name="learnability",
    question="Does gradient descent find the constructions, or keep them, in transformers with "
    "softmax, without a schedule of sharpness?",
    method="One head on (q/N, 1, i/N, i²/N², v) or on one-hot vectors is trained to look up the "
    "value at position q, and the recipe dyck-1 to accept Dyck-1, each at the size of the "
    "construction, from random weights or from those of the construction plus noise, which is a "
    "share of the largest entry of each matrix. Every step takes a new batch of 32 lookups of N "
    "queries, or 64 of 2,048 strings; a schedule multiplies the scores by 1/τ, from 1 to "
    "ln(8N)/γ. The error is the largest |c − v| over 64 test inputs, solved being at most 1/4, and "
    "for Dyck-1 the share of wrong answers among 500 test strings, solved being 0. The gap of "
    "scores, at the start and after each quarter of the steps, is the least score of the wanted "
    "key above every other; for Dyck-1 it is the largest difference between scores of a row, 0 in "
    "the construction.",
    cases=_cases,
    rows=training.trained,
    claims=(
        Claimed(
            "The weights of the construction solve every task, and to 2N where positions go on.",
            lambda rows: all(
                error is None or training.is_solved(row["task"], error)
                for row in rows
                for error in row["errors of the construction"]
            ),
        ),
        Claimed(
            "Every run has the outcome that its errors give.",
            lambda rows: all(map(_is_counted, rows)),
        ),
        Claimed(
            "No lookup at N = 64 is found from random weights without a schedule.",
            lambda rows: all(
                row["outcome"] == "not found"
                for row in select(rows, N=64, noise=None, schedule=False)
            ),
        ),
    ),
    answer=_answer,
    summary=training_summary.by_configuration,
    chart=lambda rows: Chart(
        x="share of the training", y="gap of scores, no schedule, seed 0", curves=_curves(rows)
    ),
    seed=0,
    needs="torch",
)
