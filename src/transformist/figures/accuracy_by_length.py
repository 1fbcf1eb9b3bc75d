"""The share of right answers at each length, by number format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import eq
from typing import Any

from transformist.errors import InvalidValue
from transformist.figures.canvas import COLOURS, MARKERS, drawn, require_kind
from transformist.model import Symbol, Transformer


def accuracy(
    model: Transformer,
    inputs: Iterable[Sequence[Symbol]],
    *,
    reference: Callable[[Sequence[Symbol]], Any],
    arithmetics: Sequence[str] = ("float64", "float32", "float16", "bfloat16"),
) -> Any:
    """Draw the share of inputs of each length on which each format gives the right answer.

    Args:
        model: a transformer.
        inputs: the inputs to run; a share is taken over the inputs of one length.
        reference: the right answer of an input, such as the program that the model is compiled of.
        arithmetics: the number formats, by name.

    Returns:
        A matplotlib `Figure`; its label is a description in words.

    Raises:
        InvalidValue: without inputs or formats, and without matplotlib.

    """
    require_kind(model, Transformer, "accuracy", "give tf.compile(program)")
    by_length: dict[int, list[Sequence[Symbol]]] = {}
    for x in inputs:
        by_length.setdefault(len(x), []).append(x)
    if not by_length or not arithmetics:
        raise InvalidValue(
            "there must be inputs and number formats",
            received="no inputs" if arithmetics else "no number formats",
            where="accuracy",
            remedy="give strings of the lengths to compare, and formats such as float32",
        )
    # The answers of one format at one length are computed together, and the right ones only once.
    lengths = sorted(by_length)
    wanted = {length: [reference(x) for x in by_length[length]] for length in lengths}
    told = []
    with drawn(5.6, 3.2) as figure:
        axes = figure.add_axes((0.11, 0.15, 0.64, 0.75))
        for number, name in enumerate(arithmetics):
            shares = []
            for length in lengths:
                answers = model.answers(by_length[length], name)
                right = sum(map(eq, answers, wanted[length]))
                shares.append(right / len(answers))
            # Curves on top of each other: each is narrower than the one below it.
            axes.plot(
                lengths,
                shares,
                marker=MARKERS[number % len(MARKERS)],
                color=COLOURS[number % len(COLOURS)],
                markersize=max(8.0 - 1.5 * number, 3.0),
                linewidth=max(4.0 - number, 1.0),
                label=name,
            )
            pairs = zip(lengths, shares, strict=True)
            told.append(f"{name}: {', '.join(f'{share:.0%} at {n}' for n, share in pairs)}")
        axes.set_ylim(-0.03, 1.05)
        axes.set_xlabel("length")
        axes.set_ylabel("share of right answers")
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1))
        figure.set_label(f"Share of right answers by length. {'; '.join(told)}.")
    return figure
