"""Certificates by the laws of circuits alone; and whether a certificate is true, by evaluation."""

import itertools

from transformist.arithmetic import number_system
from transformist.verify.certificate import Uncertifiable, certify
from transformist.verify.certificate.confirming import confirm
from transformist.verify.certificate.finding import Search
from transformist.verify.certificate.observing import hardened


def by_laws(model, arithmetic="float32", max_length=None, order="any"):
    """What the laws say of a model, whether it is proved operation by operation or not."""
    n = model.max_length if max_length is None else max_length
    return Search(model, number_system(arithmetic), n, order).certificate(n)


def confirmed(model, *given, **named):
    """What they say, confirmed by another reading of the weights; it holds, then."""
    found = by_laws(model, *given, **named)
    confirm(model, found)
    return found


def holds_by_laws(model, *given, **named):
    """Whether they say that it holds; where they do not know enough, they do not."""
    try:
        return by_laws(model, *given, **named).holds
    except Uncertifiable:
        return False


def every_input(model, longest):
    """Every input that the model takes, of up to `longest` symbols."""
    first = 0 if model.embedding.front or model.read_out.at == "every" else 1
    for n in range(first, longest + 1):
        yield from itertools.product(model.alphabet, repeat=n)


def wrong_inputs(model, arithmetic, longest):
    """The inputs on which a format decides otherwise than the weights do exactly."""
    xs, ideal = list(every_input(model, longest)), hardened(model)
    pairs = zip(xs, model.answers(xs, arithmetic), ideal.answers(xs, "exact"), strict=True)
    return [x for x, found, exact in pairs if found != exact]


def require_refused_by_laws(model, arithmetic="float32", max_length=None, order="any"):
    """The laws do not show that a model decides right; where a proof does, it does on every input.

    Returns:
        Whether it is proved.

    """
    assert not holds_by_laws(model, arithmetic, max_length, order)
    try:
        found = certify(model, arithmetic, max_length, order)
    except Uncertifiable:
        return False
    assert found.grade == int(found.holds)
    if found.holds:
        assert not wrong_inputs(model, arithmetic, found.max_length)
    return found.holds
