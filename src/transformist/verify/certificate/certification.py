"""Certificates: a format decides as the weights do exactly, for every input up to a length.

A certificate of the first grade is proved operation by operation (`verify/proof`). Where that proof
stops, the laws of circuits (`finding`) may still show that the format decides rightly: the second
grade, which says where the proof stopped. In both grades the numbers, heads and units that a
certificate lists are read off the weights by those laws.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import fields, replace
from typing import Any

from transformist.arithmetic import Arithmetic, Floating, number_system
from transformist.bisection import largest_below
from transformist.errors import InvalidValue, TransformistError, UnknownName, is_name
from transformist.host_evaluation import HostEvaluation
from transformist.model import Outputs, Transformer, require_transformer
from transformist.rounding import ORDERS, float_format_of
from transformist.settings import require_length
from transformist.verify.certificate.confirming import confirm
from transformist.verify.certificate.finding import Search
from transformist.verify.certificate.identity import digest
from transformist.verify.certificate.refusals import Uncertifiable, Unproved, need
from transformist.verify.certificate.several_outputs import prove_all
from transformist.verify.certificate.statement import (
    DESCRIPTION,
    VERSION,
    Certificate,
    Demand,
)
from transformist.verify.proof import EVALUATIONS, Proof


def certify(
    model: Transformer,
    arithmetic: str | Arithmetic = "float32",
    max_length: int | None = None,
    order: str = "any",
    host: HostEvaluation | None = None,
) -> Certificate:
    """Certify that a format decides as the weights do exactly, for all inputs of length up to N.

    Args:
        model: a transformer whose read-out decides: accepts, labels, or takes a nearest fraction.
        arithmetic: a float format, or its name.
        max_length: N; the N of the model when left out.
        order: the evaluation. `any` order of summation, as linear algebra libraries choose it;
            that of the `reference`, from left to right, which `any` contains; the `structured`
            engine's own; or `flash`, what GPU kernels do, which `any` does not contain.
        host: the evaluation by a stock class of transformers, in float32 and in every way in which
            it computes attention; `None` for that of the model itself.

    Raises:
        InvalidValue: without a length, or for an arithmetic that is no float format.
        UnknownName: for an arithmetic or an order that does not exist.
        Uncertifiable: for a model that neither the proof nor the laws can follow.

    Returns:
        A certificate, with its grade. Where it does not hold, answers need not be wrong: bounds are
        sufficient, not necessary. `largest_length` is found by bisection: it holds for that.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["majority"], max_length=100)
        >>> found = certify(model, "float16")
        >>> found.holds, found.grade, found.largest_length
        (True, 1, 100)

    """
    n = _length(model, max_length)
    certification = Certification(model, _format(arithmetic, order, host), n, order, host)
    found = certification.certificate(n)
    if found.holds:
        return found
    return replace(found, largest_length=certification.largest_length(n))


def grade_of(
    model: Transformer,
    arithmetic: str | Arithmetic = "float32",
    max_length: int | None = None,
    order: str = "any",
    host: HostEvaluation | None = None,
) -> tuple[int, str]:
    """Return the grade of the certificate for N, and where the proof of the first grade stops.

    The grade is 0 where there is no certificate for N; a smaller N is not looked for. The other
    arguments, and what is raised, are those of `certify`; a model that can not be followed has the
    grade 0, too.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> tf.grade_of(tf.compile(PROGRAMS["majority"], max_length=100))
        (1, '')

    """
    n = _length(model, max_length)
    try:
        a = _format(arithmetic, order, host)
        found = Certification(model, a, n, order, host).certificate(n)
    except Uncertifiable as refusal:
        return 0, refusal.received
    return found.grade, found.stopped


def check_certificate(model: Transformer, certificate: Certificate) -> None:
    """Check that a certificate which holds follows from the weights of a model.

    In the first grade the proof is made again, operation by operation. In the second every line is
    confirmed by a second reading of the weights, under the same laws.

    Raises:
        Unproved: with the first thing that does not follow.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["majority"], max_length=100)
        >>> check_certificate(model, tf.certify(model))

    """
    need(isinstance(certificate, Certificate), "it is a Certificate")
    need(isinstance(model, Transformer), "its model is a Transformer")
    try:
        # A part keeps values that it computed once. The copy has none of them, so that the check
        # reads what each part holds now, not what it held before.
        _check(model, deepcopy(certificate))
    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, Unproved):
            raise
        need(False, f"its parts must be of their kinds ({type(error).__name__}: {error})")


def _check(model: Transformer, said: Certificate) -> None:
    need(said.version == VERSION, f"it is of version {VERSION}, not {said.version}")
    if said.weights != digest(model):
        raise Unproved(
            "a certificate must belong to the model that it is checked against",
            received="a certificate of another model, or with a changed digest",
            where="check_certificate",
            remedy="give the model that was certified, or certify this one",
        )
    if said.grade == 0:
        raise Unproved(
            "a certificate must hold, or there is nothing to check",
            received=f"one that does not hold: {said.stopped}",
            where="check_certificate",
            remedy="certify for a smaller max_length, or for another format",
        )
    need(said.grade in (1, 2), "its grade is 1 or 2")
    try:
        need(
            said.host is None or isinstance(said.host, HostEvaluation),
            "its host is a host evaluation",
        )
        a = _format(said.arithmetic, said.order, said.host)
        n = _length(model, said.max_length)
    except TransformistError as error:
        need(False, f"it is for a format, an order and a length ({error})")
        raise
    # The proof uses nothing that the certificate states, so comparison finds a forged field.
    proof = prove_all(model, a, n, said.order, said.host)
    need(said.grade == (1 if proof.holds else 2), "its grade agrees with its proof")
    if not proof.holds:
        need(said.stopped == proof.stopped, "it says where the proof stopped")
        need(not isinstance(model.read_out, Outputs), "its grade is 1, with several outputs")
        need(said.host is None, "its grade is 1, for a host")
        confirm(model, said)
        return
    need(isinstance(said.lines, tuple), "its lines are a tuple")
    again = Certification(model, a, n, said.order, said.host).proved(n, proof)
    for number, (line, wanted) in enumerate(zip(said.lines, again.lines, strict=False)):
        need(line == wanted, f"line {number}, {wanted.name}, is as stated")
    for part in fields(again):
        words, value = part.name.replace("_", " "), getattr(said, part.name)
        wanted = getattr(again, part.name)
        same = _are_alike(value, wanted) if part.name == "demands" else value == wanted
        need(same, f"its {words} is as stated")


_ALIKE = 2.0**-30
"""Largest relative difference of two margins that are the same.

Libraries of linear algebra add up the terms of an error bound in an order that depends on the
processor, so that the bound differs in its last places: by less than 2¹² · 2⁻⁵³ of itself.
"""


def _are_alike(said: tuple[Demand, ...], wanted: tuple[Demand, ...]) -> bool:
    """True if margins are the same but for the rounding of their error bounds."""
    return (
        type(said) is tuple
        and len(said) == len(wanted)
        and all(
            replace(x, error=y.error) == y
            and type(x.error) is float
            and math.isclose(x.error, y.error, rel_tol=_ALIKE)
            for x, y in zip(said, wanted, strict=True)
        )
    )


class Certification:
    """Certificates of a model in a format, for lengths up to N."""

    def __init__(
        self,
        model: Transformer,
        a: Floating,
        n: int,
        order: str,
        host: HostEvaluation | None = None,
    ) -> None:
        self.model, self.a, self.order, self.host = model, a, order, host
        # The laws are about the evaluation of the model itself.
        has_laws = order in ORDERS and not isinstance(model.read_out, Outputs) and host is None
        self.by_laws = Search(model, a, n, order) if has_laws else None

    def largest_length(self, n: int) -> int:
        """Return a length below N with a certificate of either grade, while the next has none.

        It is 0 where a bisection finds none. There must be no certificate for N. If one fails for a
        length and holds for a larger one, the length found need not be the largest.
        """
        # Laws take several times as long as a proof, so a proof is looked for first.
        proved = largest_below(n, self._is_proved)
        if proved + 1 == n or self.by_laws is None or not self.by_laws.holds(proved + 1):
            return proved
        return largest_below(n, self._holds, proved + 1)

    def _holds(self, n: int) -> bool:
        return self._is_proved(n) or (self.by_laws is not None and self.by_laws.holds(n))

    def _is_proved(self, n: int) -> bool:
        return prove_all(self.model, self.a, n, self.order, self.host).holds

    def certificate(self, n: int) -> Certificate:
        """Return the certificate for N, of the best grade that there is."""
        # The first grade is tried first: it does not rest on the laws, and says more.
        proof = prove_all(self.model, self.a, n, self.order, self.host)
        if proof.holds:
            return self.proved(n, proof)
        refusal = Uncertifiable(
            "a certificate must be for a model that can be followed",
            received=proof.stopped,
            where="certify",
            remedy="write it without that, or test it: transformist check",
        )
        try:
            if self.by_laws is not None:
                found = self.by_laws.certificate(n)
                return replace(found, grade=2 if found.holds else 0, stopped=proof.stopped)
        except Uncertifiable as other:
            refusal = other
        if not proof.margins:
            raise refusal
        return replace(self._described(n, proof), stopped=proof.stopped)

    def proved(self, n: int, proof: Proof) -> Certificate:
        """Return a certificate of the first grade, with the numbers that the laws know.

        Only its lines need the laws, and most of the time would be spent on them, so they are
        applied when the lines are read.
        """
        bare = replace(self._described(n, proof), grade=1)
        laws = self.by_laws
        return bare if laws is None else bare.described_by(lambda: _known(laws, n, bare))

    def _described(self, n: int, proof: Proof) -> Certificate:
        heads = [head for layer in self.model.layers for head in layer.heads]
        return Certificate(
            model=repr(self.model),
            weights=digest(self.model),
            arithmetic=self.a.name,
            max_length=n,
            order=self.order,
            weighting=", ".join(sorted({head.weighting for head in heads})),
            demands=tuple(
                Demand(where, what, float(error), float(allowed))
                for where, what, error, allowed in proof.margins
            ),
            lines=(),
            heads=(),
            units=(),
            largest_length=n,
            assumes=(),
            host=self.host,
        )


def _known(laws: Search, n: int, bare: Certificate) -> dict[str, Any]:
    """Return the description by laws, or that of a bare certificate where no law applies."""
    try:
        return laws.described(n)._asdict()
    except Uncertifiable:
        return {name: getattr(bare, name) for name in DESCRIPTION}


def _format(
    arithmetic: str | Arithmetic, order: str, host: HostEvaluation | None = None
) -> Floating:
    """Return the format, which an order of summation or a host may restrict."""
    if not is_name(order, EVALUATIONS):
        raise UnknownName.among("order of summation", order, EVALUATIONS)
    a = float_format_of(arithmetic)
    if a is None:
        raise InvalidValue(
            "a certificate must be for a format, in which numbers round",
            received=number_system(arithmetic).name,
            where="certify",
            remedy="give float32, float16 or another",
        )
    if host is not None and not isinstance(host, HostEvaluation):
        raise InvalidValue(
            "host must be a HostEvaluation",
            received=f"{host!r:.40}",
            where="certify",
            remedy="call tf.certify(model, host='gpt2'), which takes the name of a host",
        )
    if host is not None and (a.name, order) != ("float32", "any"):
        raise InvalidValue(
            f"{host.host} must be certified in float32, for every order of its kernels",
            received=f"{a.name}, order {order}",
            where="certify",
            remedy="leave out the order, and give float32",
        )
    if order == "structured" and a.name not in ("float64", "float32"):
        raise InvalidValue(
            "the structured engine must evaluate in float64 or float32",
            received=a.name,
            where="certify",
            remedy="certify it for one of these, or for another order",
        )
    return a


def _length(model: Transformer, max_length: int | None) -> int:
    require_transformer(model, "certify")
    n = model.max_length if max_length is None else max_length
    if n is None:
        raise InvalidValue(
            "a certificate must have a largest length",
            received="max_length = None, of a model for any length",
            where="certify",
            remedy="give max_length",
        )
    require_length(n, "certify")
    if model.max_length is not None and n > model.max_length:
        raise InvalidValue(
            f"max_length must be at most the model's (N = {model.max_length})",
            received=f"max_length = {n}",
            where="certify",
            remedy=f"give max_length = {model.max_length} or less, or build the model with "
            f"max_length = {n} or more",
        )
    return n
