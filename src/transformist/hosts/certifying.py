"""Certificates of models, in their own evaluation and as a stock class evaluates them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from transformist.arithmetic import Arithmetic
from transformist.errors import InvalidValue, NotFinite
from transformist.host_evaluation import HOST_CLASSES, HostEvaluation
from transformist.hosts import checkpoint
from transformist.hosts.host import HOSTS
from transformist.hosts.host_comparison import HostSearch
from transformist.hosts.host_searches import require_searchable, search_host
from transformist.hosts.optional_library import MissingLibrary, optional
from transformist.hosts.plain_model import FORMAT
from transformist.model import Transformer, require_transformer
from transformist.verify import Certificate, Uncertifiable, Unproved
from transformist.verify import certify as certify_evaluation
from transformist.verify import check_certificate as check_proof


@dataclass(frozen=True)
class SearchedCertificate(Certificate):
    """Certificate for a host, where it does not hold, with a search for the first wrong answer.

    Attributes:
        searched: the result of the search in the class of transformers.

    """

    searched: HostSearch = field(kw_only=True)

    def __str__(self) -> str:
        return f"{super().__str__()}. Searched {self.searched}"


class OnlySearched(Uncertifiable):
    """Refusal of a certificate for a host, with a search for the first wrong answer there.

    Attributes:
        searched: the result of the search in the class of transformers.

    """

    def __init__(self, invariant: str, *, received: str, searched: HostSearch) -> None:
        super().__init__(
            invariant,
            received=received,
            where="certify",
            remedy=f"there is no certificate; searched {searched}",
        )
        self.searched = searched


def certify(
    model: Transformer,
    arithmetic: str | Arithmetic = "float32",
    max_length: int | None = None,
    order: str = "any",
    host: str | None = None,
) -> Certificate:
    """Certify that a format decides as the weights do exactly, for all inputs of length up to N.

    Args:
        model: a transformer whose read-out decides: accepts, labels, or takes a nearest fraction.
        arithmetic: a float format, or its name.
        max_length: N; the N of the model when left out.
        order: the evaluation. `any` order of summation, as linear algebra libraries choose it;
            that of the `reference`, from left to right, which `any` contains; the `structured`
            engine's own; or `flash`, what GPU kernels do, which `any` does not contain.
        host: the evaluation of the checkpoint that `export` writes, by a class of transformers,
            with its norms and its activation, in any order of summation, with eager attention and
            with the kernels of sdpa. Certificates exist for `gpt2` and `llama` in float32. Where
            there is none, `search_host` looks for the first wrong answer in the class, and the
            result says what was tried. When left out, the certificate is for the evaluation by
            transformist.

    Raises:
        InvalidValue: without a length, for an arithmetic that is no float format, or for a model
            that the host cannot hold.
        UnknownName: for an arithmetic, an order or a host that does not exist.
        Uncertifiable: for a model that neither the proof nor the laws can follow.
        OnlySearched: for a host or a format without error bounds, or a model that the proof for a
            host cannot follow; its attribute `searched` has the result of the search.

    Returns:
        A certificate, with its grade. Where it does not hold, answers need not be wrong: bounds are
        sufficient, not necessary. `largest_length` is found by bisection: it holds for that. For a
        host, a certificate that does not hold has the result of the search as `searched`.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["majority"], max_length=64, masks="future", reuse=False)
        >>> certify(model, "float16").grade, certify(model, host="gpt2").grade
        (1, 1)

    """
    if host is None:
        return certify_evaluation(model, arithmetic, max_length, order)
    require_transformer(model, "certify")
    name: Any = getattr(arithmetic, "name", arithmetic)
    require_searchable(host, name, "certify")
    if order != "any":
        raise InvalidValue(
            f"{host} must be certified for every order of its kernels",
            received=f"order {order!r:.40}",
            where="certify",
            remedy="leave out the order",
        )
    if host not in HOST_CLASSES:
        raise OnlySearched(
            f"a certified host must be one of {', '.join(HOST_CLASSES)}",
            received=f"{host}, whose operations have no error bounds",
            searched=_searched(model, host, name, max_length),
        )
    if name != FORMAT:
        raise OnlySearched(
            f"{host} must be certified in {FORMAT}, whose operations have error bounds",
            received=name,
            searched=_searched(model, host, name, max_length),
        )
    try:
        found = certify_unsearched(model, name, max_length, host=host)
    except Uncertifiable as refusal:
        raise OnlySearched(
            refusal.invariant,
            received=refusal.received,
            searched=_searched(model, host, name, max_length),
        ) from None
    if found.holds:
        return found
    parts = {each.name: getattr(found, each.name) for each in fields(found)}
    return SearchedCertificate(**parts, searched=_searched(model, host, name, max_length))


def certify_unsearched(
    model: Transformer,
    arithmetic: str | Arithmetic = FORMAT,
    max_length: int | None = None,
    order: str = "any",
    host: str | None = None,
) -> Certificate:
    """Certify as `certify` does, without a search where the certificate does not hold.

    The host must be one with error bounds.
    """
    evaluation = None if host is None else _evaluation(model, host, max_length)
    return certify_evaluation(model, arithmetic, max_length, order, evaluation)


def _searched(model: Transformer, host: str, arithmetic: str, max_length: int | None) -> HostSearch:
    """The result of the search; the reason if there is no library, or a weight does not fit."""
    try:
        return search_host(model, host, arithmetic, max_length)
    except (MissingLibrary, NotFinite) as refusal:
        return HostSearch(
            host=host,
            arithmetic=arithmetic,
            inputs=0,
            every_to=-1,
            longest=-1,
            right_to=-1,
            ended=f"{refusal.invariant}; received {refusal.received}; {refusal.remedy}",
        )


def check_certificate(model: Transformer, certificate: Certificate) -> None:
    """Check that a certificate which holds follows from the weights of a model.

    In the first grade the proof is made again, operation by operation. In the second every line is
    confirmed by a second reading of the weights, under the same laws. A certificate for a host must
    be for the checkpoint that `export` writes.

    Raises:
        Unproved: with the first thing that does not follow.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["majority"], max_length=64, masks="future", reuse=False)
        >>> check_certificate(model, tf.certify(model, host="gpt2"))

    """
    check_proof(model, certificate)
    if certificate.host is None:
        return
    wanted = _evaluation(model, certificate.host.host, certificate.max_length)
    if certificate.host != wanted:
        raise Unproved(
            "a certificate must be for the checkpoint that export writes",
            received="one with other factors or another width",
            where="check_certificate",
            remedy="certify the model again",
        )


def _evaluation(model: Transformer, host: str, max_length: int | None) -> HostEvaluation:
    """Return the evaluation of a model by a host with error bounds."""
    module = optional(HOSTS[host].module, HOSTS[host].extra, "certify")
    return checkpoint.evaluation(module.STOCK, model, max_length)
