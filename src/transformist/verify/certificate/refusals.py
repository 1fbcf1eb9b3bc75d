"""Models of which too little is known for a certificate."""

from __future__ import annotations

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
