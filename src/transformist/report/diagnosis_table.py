"""A diagnosis as plain values, in words, and its chain as a table."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

from rich.markup import escape
from rich.table import Table

from transformist.errors import visible
from transformist.report.values import answer_in_words, finite_or_words, plain
from transformist.verify import Diagnosis
from transformist.verify.diagnosis import (
    BelowResolution,
    Blend,
    LinearRegion,
    Link,
    MovedByNorm,
    Overflow,
    Remedy,
    Searched,
)

LONGEST_INPUT = 60
"""Most characters of an input that a line shows."""

LEAST_WEIGHT = 0.001
"""Least attention weight that a sentence names."""


def diagnosis_facts(name: str, found: Diagnosis) -> dict[str, Any]:
    """The facts of a diagnosis; facts of a failure are null where the input does not fail."""
    first = found.first[0] if found.first else found.origin
    signature = found.signature
    return {
        "model": name,
        "input": _text(found.input),
        "max_length": found.max_length,
        "arithmetic": found.arithmetic,
        "answer": plain(found.answer),
        "exact": plain(found.exact),
        "fails": found.fails,
        "wrong_position": found.wrong_position,
        "signature": signature and signature.name,
        "evidence": None if signature is None else finite_or_words(plain_fields(signature)),
        "slot": first and first.slot,
        "position": first and first.position,
        "layer": first and first.layer,
        "first": [_link_facts(each) for each in found.first],
        "origin": found.origin and _link_facts(found.origin),
        "chain": [_link_facts(each) for each in found.chain],
        "remedy": in_words(found.remedies[0]) if found.remedies else None,
        "remedies": [plain_fields(each) for each in found.remedies],
    }


def searched_facts(found: Searched) -> dict[str, Any]:
    """The facts of a search for a failing input."""
    return {
        "strings": found.strings,
        "longest": found.longest,
        "formats": list(found.formats),
        "max_lengths": list(found.lengths),
        "is_limited": found.is_limited,
        "seed": found.seed,
    }


def plain_fields(value: Any) -> dict[str, Any]:
    """The fields of a frozen value; tuples are lists.

    Example:
        >>> plain_fields(Overflow(of="a weight", value=70000.0, largest=65504.0))
        {'of': 'a weight', 'value': 70000.0, 'largest': 65504.0}

    """
    fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return {name: list(each) if isinstance(each, tuple) else each for name, each in fields.items()}


def _link_facts(link: Link) -> dict[str, Any]:
    facts = plain_fields(link)
    return {**facts, "exact": plain(link.exact)}


def diagnosis_lines(name: str, found: Diagnosis) -> Iterator[str]:
    """The diagnosis in sentences, without the chain."""
    shown = _input_in_words(found.input)
    exact = answer_in_words(found.exact)
    if not found.fails:
        yield f"{name} does not fail on {shown} in {found.arithmetic}: {exact} there and exactly"
        return
    got = "no answer" if found.answer is None else answer_in_words(found.answer)
    built = "" if found.max_length is None else f", built for N = {found.max_length},"
    yield f"{name}{built} on {shown}: {got} in {found.arithmetic}, {exact} exactly"
    if found.wrong_position is not None:
        yield f"first wrong position: {found.wrong_position}"
    assert found.signature is not None
    yield f"signature: {found.signature.name}: {in_words(found.signature)}"
    if found.first:
        first = found.first[0]
        where = f"{first.after}, {_place(first)}"
        more = f" and {len(found.first) - 1} more slots" * (len(found.first) > 1)
        yield f"first number that decides: {where}, {visible(first.slot)}{more}"
    elif found.answer is not None:
        yield "no number decides: in the format, exact numbers do not restore the answer"
    if found.origin is not None and found.origin not in found.first:
        origin = found.origin
        yield f"it comes from: {origin.after}, {_place(origin)}, {visible(origin.slot)}"
    for each in found.remedies:
        yield f"remedy: {in_words(each)}{_scope(each)}"
    if not found.remedies:
        yield "remedy: none found; no float format of higher precision gives the right answer"


@functools.singledispatch
def in_words(value: Any) -> str:
    """A signature or a remedy as a sentence.

    Example:
        >>> in_words(Overflow(of="slot square", value=69696.0, largest=65504.0))
        'slot square is 69696, and the largest number of the format is 65504'

    """
    raise TypeError(type(value).__name__)


@in_words.register
def _blend(found: Blend) -> str:
    weights = ", ".join(
        f"{_position(position)} with weight {_number(weight)}"
        for position, weight in zip(found.positions, found.weights, strict=True)
        if weight >= LEAST_WEIGHT
    )
    wanted = ", ".join(map(_position, found.wanted))
    return (
        f"layer {found.layer} head {found.head} at {_position(found.query)} attends to {weights}, "
        f"and should attend to {wanted} alone; the gap between scores is {_number(found.gap)} in "
        f"real numbers and {_number(found.lead)} in the format"
    )


@in_words.register
def _linear_region(found: LinearRegion) -> str:
    return (
        f"the comparison in layer {found.layer} gets {_number(found.value)}, where the exact "
        f"number is {_number(found.exact)}; it is linear from 0 to ε = {_number(found.epsilon)}"
    )


@in_words.register
def _moved_by_norm(found: MovedByNorm) -> str:
    return f"the norm makes {visible(found.slot)} {_number(found.factor)} times its exact value"


@in_words.register
def _below_resolution(found: BelowResolution) -> str:
    return (
        f"{visible(found.of)} is {_number(found.value)}, where numbers of the format are "
        f"{_number(found.spacing)} apart"
    )


@in_words.register
def _overflow(found: Overflow) -> str:
    return (
        f"{visible(found.of)} is {_number(found.value)}, and the largest number of the format is "
        f"{_number(found.largest)}"
    )


@in_words.register
def _remedy(found: Remedy) -> str:
    if found.kind == "sharpness":
        layer, head = found.head or (0, 0)
        return f"sharpness: multiply the queries of layer {layer} head {head} by {found.value}"
    return f"{found.kind}={found.value}"


def _scope(found: Remedy) -> str:
    """The inputs for which a remedy was tried, and the command that answers for every input."""
    # Each remedy was tried on one input. Another N or format is easily taken to help every input.
    if found.kind == "max_length":
        return " for this input (`precision` has the N for every input)"
    if found.kind == "arithmetic":
        return f" for this input (`certify --arithmetic {found.value}` speaks of every input)"
    return ""


def chain_table(found: Diagnosis) -> Table:
    """The numbers from the first that decides to the answer."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("written by", "slot", "position"):
        table.add_column(heading)
    for heading in (found.arithmetic, "exact"):
        table.add_column(heading, justify="right")
    before = ""
    for link in found.chain:
        got = "no number" if link.got is None else _number(link.got)
        label = "" if link.after == before else link.after
        before = link.after
        slot = escape(visible(link.slot))
        table.add_row(label, slot, _place(link).removeprefix("position "), got, _number(link.exact))
    return table


def _place(link: Link) -> str:
    return _position(link.position)


def _position(position: int) -> str:
    return f"position {position}" if position > 0 else "BOS"


def _number(value: Any) -> str:
    return f"{float(value):.6g}"


def _text(symbols: tuple[Any, ...]) -> Any:
    """A string where every symbol is a character, a list elsewhere."""
    if all(isinstance(each, str) and len(each) == 1 for each in symbols):
        return "".join(symbols)
    return plain(symbols)


def _input_in_words(symbols: tuple[Any, ...]) -> str:
    text = visible(str(_text(symbols)))
    cut = text if len(text) <= LONGEST_INPUT else f"{text[:LONGEST_INPUT]}…"
    return f"{cut!r} (length {len(symbols)})"
