"""Models of which too little is known for a certificate, and certificates that do not follow."""

from __future__ import annotations

from typing import Any

from transformist.errors import InvalidValue


class Uncertifiable(InvalidValue):
    """A model of which too little is known for a certificate."""


class UncertifiableAfterASum(Uncertifiable):
    """One of which more may be known if it is assumed what a slot that adds up holds."""


def uncertifiable(invariant: str, received: str, where: str) -> Uncertifiable:
    """The refusal of a part of a model."""
    return Uncertifiable(
        invariant,
        received=received,
        where=where,
        remedy="write it of means, matches and steps without that, or test it: transformist check",
    )


class Unproved(InvalidValue):
    """A certificate that does not follow from the weights."""


def need(truth: Any, what: str) -> None:
    """Refuse what does not follow."""
    if not truth:
        raise Unproved(
            f"a certificate follows from the weights of its model, and so {what}",
            received="one of which this is not so; it or the weights have been changed",
            where="check_certificate",
            remedy="certify the model again",
        )
