"""A saved transformer as a model of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from transformist.arithmetic import Arithmetic
from transformist.claims import Settings
from transformist.errors import InvalidValue
from transformist.hosts import load, load_certificates, unproved
from transformist.model import Symbol, Transformer
from transformist.named.named_model import NamedModel
from transformist.verify import Certificate

ORDERS_OF = {"reference": ("any", "reference"), "structured": ("structured",)}
"""The orders of summation whose certificates speak about an engine."""


@final
@dataclass(frozen=True)
class NamedFile(NamedModel):
    """A saved transformer, which has no settings, and the certificates saved with it."""

    model: Transformer
    certificates: tuple[Certificate, ...] = ()

    @property
    def has_length(self) -> bool:
        """True: N was saved with the weights."""
        return True

    def alphabet(self, length: int, system: Arithmetic) -> tuple[Symbol, ...]:
        return self.model.alphabet

    def transformer(self, length: int, system: Arithmetic) -> Transformer:
        """The model as it is.

        Raises:
            InvalidValue: for settings.

        """
        if self.given:
            raise InvalidValue(
                "a saved model takes no settings",
                received=f"--set {next(iter(self.given))}",
                where=self.name,
                remedy="leave --set out, or compile the program anew",
            )
        return self.model

    def is_certified(self, system: Arithmetic, engine: str) -> bool:
        longest = self.model.max_length
        found = [
            each
            for each in self.certificates
            if (each.holds and each.arithmetic == system.name and each.host is None)
            and each.order in ORDERS_OF[engine]
            and longest is not None
            and each.max_length >= longest
        ]
        return bool(found) and not unproved(self.model, found)


def saved_model(path: str, settings: Settings) -> NamedFile:
    """The model in a file.

    Raises:
        TransformistError: for a file that cannot be read.

    """
    return NamedFile(path, settings, load(path), load_certificates(path))
