"""Certificates that come with a model, checked against its weights."""

from __future__ import annotations

from collections.abc import Iterable

from transformist.hosts.certifying import check_certificate
from transformist.model import Transformer
from transformist.verify import Certificate, Unproved


def unproved(model: Transformer, certificates: Iterable[Certificate]) -> list[Unproved]:
    """Refusals of the certificates that do not follow from the weights, one for each.

    Example:
        >>> import transformist as tf
        >>> model = tf.compile(tf.programs.PROGRAMS["dyck-1"], max_length=20)
        >>> other = tf.compile(tf.programs.PROGRAMS["parity"], max_length=20)
        >>> found = tf.certify(model)
        >>> len(unproved(model, [found])), len(unproved(other, [found, found]))
        (0, 2)

    """
    refusals = []
    for certificate in certificates:
        try:
            check_certificate(model, certificate)
        except Unproved as refusal:
            refusals.append(refusal)
    return refusals
