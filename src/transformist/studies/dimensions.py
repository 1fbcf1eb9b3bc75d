"""Study dimensions: the slots that composed algorithms take."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import transformist as tf
from transformist.studies import composed_parts as composed
from transformist.studies.experiment import Chart, Claimed, Row, Study, curves_of

LONGEST, QUICK_LONGEST = 6, 4
"""Every string up to this length is tried; models are built for it."""

COUNTS, QUICK_COUNTS = range(1, 9), (1, 3, 5)
PARALLEL, SERIAL, COMPILER = "parallel", "serial", "compiler"
SLOTS, NEEDED = "slots allocated", "width that the compiler needs"


def _cases(is_quick: bool) -> Sequence[Row]:
    return [
        {"composed by": way, "parts": parts, "n": QUICK_LONGEST if is_quick else LONGEST}
        for way in (PARALLEL, SERIAL, COMPILER)
        for parts in (QUICK_COUNTS if is_quick else COUNTS)
    ]


def _rows(case: Row) -> Sequence[Row]:
    way, parts, n = case["composed by"], case["parts"], case["n"]
    strings = ["".join(each) for k in range(n + 1) for each in itertools.product("()", repeat=k)]
    least, is_refused = None, None
    if way == SERIAL:
        model = composed.in_series(parts, n)
        given = [composed.as_vectors(string) for string in strings]
        found = [[row[0] for row in model(rows, "exact").tolist()][1:] for rows in given]
        is_right = found == [composed.right_in_series(parts, string)[1:] for string in strings]
        runs = [list(model.streams(rows)) for rows in given]
        read = [model.stream.slots.index(each) for each in model.outputs]
    else:
        program, model = composed.part_program(range(parts)), composed.in_parallel(parts, n)
        if way == COMPILER:
            least = tf.compile(program, max_length=n).width
            model = tf.compile(program, max_length=n, width=least)
            is_refused = _is_refused(program, n, least - 1)
        right = [
            {f"part{k}": composed.right_answers(k, string) for k in range(parts)}
            for string in strings
        ]
        is_right = [model(string) for string in strings] == right
        runs = [[z for _, z in model.run(string).streams] for string in strings]
        read = np.flatnonzero(model.read_out.W_out.any(axis=0)).tolist()
    streams = [np.concatenate(each).astype(float) for each in zip(*runs, strict=True)]
    live = composed.live_slots(model, streams, set(read))
    return [
        {
            **case,
            SLOTS: len(model.stream.slots),
            "live": max(live),
            "of rank": max(int(np.linalg.matrix_rank(z)) for z in streams),
            "live after each sublayer": live,
            NEEDED: least,
            "less is refused": is_refused,
            "all parts are right": is_right,
        }
    ]


def _is_refused(program: Any, n: int, width: int) -> bool:
    try:
        tf.compile(program, max_length=n, width=width)
    except tf.TransformistError as refusal:
        return f"width={width + 1} or more" in str(refusal)
    return False


def _widths(rows: Sequence[Row], way: str) -> dict[int, int]:
    return {row["parts"]: row[SLOTS] for row in rows if row["composed by"] == way}


def _is_narrower(rows: Sequence[Row]) -> bool:
    compiled = _widths(rows, COMPILER)
    return all(compiled[k] <= width for k, width in _widths(rows, PARALLEL).items())


def _answer(rows: Sequence[Row]) -> str:
    parts = max(row["parts"] for row in rows)
    (last,) = (r for r in rows if (r["composed by"], r["parts"]) == (COMPILER, parts))
    live = last["live after each sublayer"]
    return (
        f"A composition of {parts} parts takes {_widths(rows, PARALLEL)[parts]} slots in parallel, "
        f"{_widths(rows, SERIAL)[parts]} in series and {last[SLOTS]} if it is "
        f"compiled: parallel composition adds up the widths, serial composition adds the slots "
        "that are not inputs, and the compiler shares numbers between parts and uses slots again. "
        f"The bottleneck of the compiled model is after sublayer {live.index(max(live))} of "
        f"{len(live) - 1}, where {max(live)} slots are live. In series at most "
        f"{max(r['live'] for r in rows if r['composed by'] == SERIAL)} slots are live at a time, "
        "however many are allocated, since Lemma 8.2 uses none again. The compiler refuses one "
        "slot less than it takes. This shows what its allocation needs, not that no weights of "
        "fewer dimensions do the same."
    )


DIMENSIONS = Study(
    name="dimensions",
    question="How many dimensions do several algorithms take on one residual stream, where is the "
    "bottleneck, and what is the least width that the compiler fits them in?",
    method="The parts are Dyck-1, the minimum and the sum of a step and an earlier one, and a "
    "lookup; parts 5 to 8 are the same on other steps. Compiled alone, they are composed in "
    "parallel; written as one program, they are compiled together. In series, the parts are Dyck-1 "
    "of v (once), min(v, i/n), v + i/n and v at the previous position: v is the output of the part "
    "before. Every string up to length n is evaluated, and each part compared with its definition. "
    "A slot is live after a sublayer if it is not 0 on some input and weights read it later. The "
    "rank is of all vectors of a stream, the largest over the sublayers. The compiler is then "
    "asked for the width that it took, and for one slot less.",
    cases=_cases,
    rows=_rows,
    claims=(
        Claimed(
            "All parts are right on every string up to n, in every composition.",
            lambda rows: all(row["all parts are right"] is True for row in rows),
        ),
        Claimed(
            "The compiler refuses one slot less than it takes, and names the width it needs.",
            lambda rows: all(
                row["less is refused"] is True and row[NEEDED] == row[SLOTS]
                if row["composed by"] == COMPILER
                else row["less is refused"] is row[NEEDED] is None
                for row in rows
            ),
        ),
        Claimed("The compiler takes no more slots than parallel composition.", _is_narrower),
        Claimed(
            "No more slots are live, and no rank is larger, than slots are allocated.",
            lambda rows: all(
                1 <= max(row["of rank"], *row["live after each sublayer"]) <= row[SLOTS]
                and row["live"] == max(row["live after each sublayer"])
                for row in rows
            ),
        ),
    ),
    answer=_answer,
    chart=lambda rows: Chart(
        x="parts", y=SLOTS, curves=curves_of(rows, ["composed by"], "parts", SLOTS)
    ),
)
