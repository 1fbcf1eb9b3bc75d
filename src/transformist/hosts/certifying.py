"""Certificates of models, in their own evaluation and in that of a stock class of transformers."""

from __future__ import annotations

from transformist.arithmetic import Arithmetic
from transformist.errors import InvalidValue, UnknownName, is_name
from transformist.host_evaluation import HOST_CLASSES, HostEvaluation
from transformist.hosts import checkpoint
from transformist.hosts.host import HOSTS
from transformist.hosts.optional_library import optional
from transformist.model import Transformer, require_transformer
from transformist.verify import Certificate, Unproved
from transformist.verify import certify as certify_evaluation
from transformist.verify import check_certificate as check_proof


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
        max_length: N; that of the model when left out.
        order: the evaluation. `any` order of summation, as linear algebra libraries choose it;
            that of the `reference`, from left to right, which `any` contains; the `structured`
            engine's own; or `flash`, what GPU kernels do, which `any` does not contain.
        host: `gpt2` or `llama`, for the evaluation of the checkpoint that `export` writes, by the
            class of transformers: in float32, with its norms and its activation, in any order of
            summation, with eager attention and with the kernels of sdpa. Left out, the certificate
            is for the evaluation of the model itself.

    Raises:
        InvalidValue: without a length, for an arithmetic that is no float format, or for a model
            that the host cannot hold.
        UnknownName: for an arithmetic, an order or a host that does not exist.
        Uncertifiable: for a model that neither the proof nor the laws can follow.

    Returns:
        A certificate, with its grade. Where it does not hold, answers need not be wrong: bounds are
        sufficient, not necessary. `largest_length` is found by bisection: it holds for that.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["majority"], max_length=64, masks="future", reuse=False)
        >>> certify(model, "float16").grade, certify(model, host="gpt2").grade
        (1, 1)

    """
    if host is None:
        return certify_evaluation(model, arithmetic, max_length, order)
    evaluation = _evaluation(model, host, max_length)
    return certify_evaluation(model, arithmetic, max_length, order, evaluation)


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
    """Return the evaluation of a model by a host.

    Raises:
        UnknownName: for a host that does not exist.
        InvalidValue: for a host without error bounds.

    """
    require_transformer(model, "certify")
    if not is_name(host, HOSTS):
        raise UnknownName.among("host", host, HOSTS, "certify")
    if host not in HOST_CLASSES:
        raise InvalidValue(
            f"a certified host must be one of {', '.join(HOST_CLASSES)}",
            received=f"{host}, whose operations have no error bounds",
            where="certify",
            remedy="leave out the host to certify the evaluation by transformist",
        )
    module = optional(HOSTS[host].module, HOSTS[host].extra, "certify")
    return checkpoint.evaluation(module.STOCK, model, max_length)
