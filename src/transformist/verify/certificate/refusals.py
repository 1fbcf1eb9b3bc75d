"""Refusals: models that no law follows, and certificates that do not follow from their model."""

from __future__ import annotations

from typing import Any

from transformist.errors import InvalidValue


class Uncertifiable(InvalidValue):
    """Refusal of a model that neither the proof nor the laws can follow."""


class UncertifiableAfterASum(Uncertifiable):
    """Refusal after a slot that holds a sum: an assumption on its range may help."""


def uncertifiable(invariant: str, received: str, where: str) -> Uncertifiable:
    """Return the refusal of a part of a model."""
    return Uncertifiable(
        invariant,
        received=received,
        where=where,
        remedy="write it of means, matches and steps without that, or test it: transformist check",
    )


class Unproved(InvalidValue):
    """Refusal of a certificate that does not follow from the weights."""


def need(truth: Any, what: str) -> None:
    """Refuse a certificate unless `what`, a clause that must be true of it, is true."""
    if not truth:
        raise Unproved(
            f"a certificate must follow from the weights of its model, which requires that {what}",
            received="a changed certificate, or changed weights",
            where="check_certificate",
            remedy="certify the model again",
        )
