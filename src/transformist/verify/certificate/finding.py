"""Certificates: for every input up to a length, a format decides as the weights do exactly.

The ideal is what the weights compute in exact arithmetic with hard attention: a head attends to the
largest score, or to all that are largest. A bound of how far rounding, and the weight that softmax
leaves elsewhere, move every number is composed atom by atom; a step, and a choice of a head, whose
margin is kept starts again from its ideal value.
"""

from __future__ import annotations

from dataclasses import replace

from transformist.arithmetic import Floating
from transformist.bounds import ORDERS, float_format_of, order_of
from transformist.circuit import READ_OUT, Kept
from transformist.errors import InvalidValue
from transformist.model import Transformer
from transformist.settings import require_length
from transformist.verify.certificate.affine import read
from transformist.verify.certificate.demands import follow_within, noted, require_finite
from transformist.verify.certificate.extraction import extract
from transformist.verify.certificate.observing import Observations, has_no_ties, observe
from transformist.verify.certificate.read_outs import READ_OUTS
from transformist.verify.certificate.refusals import Uncertifiable, UncertifiableAfterASum
from transformist.verify.certificate.statement import TIES, Certificate, Line, assumed


def certify(
    model: Transformer,
    arithmetic: str = "float32",
    max_length: int | None = None,
    order: str = "any",
) -> Certificate:
    """Whether a format decides as the weights do exactly, for every input of length up to N.

    Args:
        model: a transformer of means, matches, lookups, steps and ReLUs, such as `compile` makes.
        arithmetic: a float format.
        max_length: N; that of the model when left out.
        order: `any` order of summation, as linear algebra libraries choose it, that of the
            `reference`, from left to right, or that of the `structured` engine.

    Raises:
        InvalidValue: without a length, or for an arithmetic that is no float format.
        UnknownName: for an arithmetic or an order that does not exist.
        Uncertifiable: for a model of which too little is known.

    Returns:
        A certificate. Where it does not hold, answers need not be wrong: bounds are sufficient, not
        necessary. Its largest length is found by bisection: it holds for that, not for the next.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["majority"], max_length=100)
        >>> found = certify(model, "float16")
        >>> found.holds, found.largest_length, found.assumes
        (True, 100, ())

    """
    n = _length(model, max_length)
    order = order_of(order).name
    a = float_format_of(arithmetic)
    if a is None:
        raise InvalidValue(
            "a certificate is for a format, in which numbers round",
            received=arithmetic,
            where="certify",
            remedy="give float32, float16 or another",
        )
    if order == "structured" and a.name not in ("float64", "float32"):
        raise InvalidValue(
            "the structured engine evaluates in float64 and float32",
            received=arithmetic,
            where="certify",
            remedy="certify it for one of these, or for another order",
        )
    found, observations = _with_what_is_needed(model, a, n, order)
    if found.holds:
        return found
    fits, fails = 0, n
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if _certificate(model, a, middle, order, observations).holds:
            fits = middle
        else:
            fails = middle
    return replace(found, largest_length=fits)


def _with_what_is_needed(
    model: Transformer, a: Floating, n: int, order: str
) -> tuple[Certificate, Observations | None]:
    """Without an assumption; where that fails, and a slot goes on to hold a sum, with it."""
    try:
        found = _certificate(model, a, n, order, None)
    except UncertifiableAfterASum:
        observations = observe(model, n)
        return _certificate(model, a, n, order, observations), observations
    if found.holds or not any(isinstance(line.atom, Kept) for line in found.lines):
        return found, None
    observations = observe(model, n)
    return _certificate(model, a, n, order, observations), observations


def _length(model: Transformer, max_length: int | None) -> int:
    if not isinstance(model, Transformer):
        raise InvalidValue(
            "a certificate is for a transformer on strings",
            received=f"{type(model).__name__}",
            where="certify",
            remedy="give one, such as tf.compile(program) makes",
        )
    n = model.max_length if max_length is None else max_length
    if n is None:
        raise InvalidValue(
            "a certificate is for every input up to a length",
            received="max_length = None, of a model for any length",
            where="certify",
            remedy="give max_length",
        )
    require_length(n, "certify", "max_length is a whole number of at least 1")
    if model.max_length is not None and n > model.max_length:
        raise InvalidValue(
            f"the model takes inputs of length at most N = {model.max_length}",
            received=f"max_length = {n}",
            where="certify",
            remedy="ask for its own length, or less",
        )
    return n


def _certificate(
    model: Transformer, a: Floating, n: int, order: str, observations: Observations | None
) -> Certificate:
    """Every number and margin, given what was observed."""
    found = extract(model, n, observations.held if observations else None)
    circuit = found.circuit
    cancelled = dict(found.cancelled)  # to which the read-out adds
    margins, demands = noted(circuit, found.sharpness, a, ORDERS[order], cancelled, found.falling)
    for _ in circuit.atoms:
        follow_within(margins)
    require_finite(margins, model, found.held)
    read_out = model.read_out
    rule = READ_OUTS.get(type(read_out))
    if rule is None:
        raise Uncertifiable(
            "a read-out accepts, chooses a label, or takes the nearest fraction",
            received=type(read_out).__name__,
            where="certify",
            remedy="give a model with one of these",
        )
    forms = read(read_out.W_out, read_out.b_out, found.state, cancelled)
    is_one = rule(margins, read_out, forms)
    seen = observations.length if observations else 0
    assumes = [assumed(circuit, each, seen) for each in found.assumed]
    if not is_one:
        holds, checked = has_no_ties(model, n)
        margins.require(READ_OUT, TIES, not holds, 1)
        assumes.append(assumed(circuit, None, checked))
    parts = zip(circuit.names, circuit.atoms, circuit.laws, margins.errors, strict=True)
    return Certificate(
        model=repr(model),
        arithmetic=a.name,
        max_length=n,
        order=order,
        weighting=circuit.weighting,
        demands=tuple(demands),
        lines=tuple(Line(*part, number in found.falling) for number, part in enumerate(parts)),
        heads=found.heads,
        units=found.units,
        largest_length=n,
        assumes=tuple(assumes),
    )
