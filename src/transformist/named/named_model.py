"""A model with the name that MODEL gives it, and a transformer that is built of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from transformist.arithmetic import Arithmetic, number_system
from transformist.claims import Finding, Recipe, Settings, StringClaim
from transformist.errors import InvalidValue
from transformist.model import Symbol, Trace, Transformer
from transformist.rounding import is_as_fine

RIGHT_OR_REFUSED = ("exact", "interval")
"""Arithmetics that give the right answer or refuse, whatever format the margins are for."""


@dataclass(frozen=True, kw_only=True)
class BuiltModel:
    """A transformer built for inputs of one length.

    Attributes:
        model: the transformer.
        safe: the longest N that the claim covers in the arithmetic; `None` for any.
        covered: True if the claim covers the model, or if nothing is claimed.
        recipe: the recipe that makes the claim; `None` for a model of which nothing is claimed.
        claim: what the model computes, in words; empty where nothing is claimed of it.
        dependence: what is claimed to depend on the length, in words; `None` without a claim.

    """

    model: Transformer
    safe: int | None = None
    covered: bool = True
    recipe: Recipe[StringClaim] | None = None
    claim: str = ""
    dependence: str | None = None

    def explained(self, trace: Trace) -> Finding:
        """The finding about an input that was run; empty where the claim does not cover it."""
        if self.recipe and self.recipe.explain and self.covered:
            return self.recipe.explain(trace)
        return Finding(sentence="")


@dataclass(frozen=True)
class NamedModel(ABC):
    """A model as MODEL and `--set` describe it.

    Attributes:
        name: the text of MODEL.
        given: the pairs of `--set`, unchecked.

    """

    name: str
    given: Settings

    @property
    def takes_strings(self) -> bool:
        """True if the model is a transformer, which runs on strings."""
        return True

    def require_strings(self, option: str, received: str) -> None:
        """Refuse an option, or a command, for anything but a model on strings.

        Raises:
            InvalidValue: for a recipe on vectors.

        """
        if not self.takes_strings:
            raise InvalidValue(
                f"{option} must come with a model on strings",
                received=f"{received} with {self.name}",
                remedy="leave it out, or choose such a model"
                if received.startswith("-")
                else "choose a program, or a recipe on strings such as dyck-1",
            )

    @property
    def usual_arithmetic(self) -> str:
        """The arithmetic of a run that names none."""
        return "float64"

    @property
    def has_length(self) -> bool:
        """True if N is the same for every input."""
        return "max_length" in self.given

    def adapted(self, pieces: Iterable[str]) -> Self:
        """The model with the settings that depend on the text, which comes in pieces."""
        return self

    @abstractmethod
    def alphabet(self, length: int, system: Arithmetic) -> tuple[Symbol, ...]:
        """The symbols that the model reads; a guess of the length saves building it twice."""

    @abstractmethod
    def transformer(self, length: int, system: Arithmetic) -> Transformer:
        """The transformer; the length and the arithmetic count where the settings name none."""

    def built(self, length: int, system: Arithmetic) -> BuiltModel:
        """The transformer for an input of this length, with its claim."""
        return BuiltModel(model=self.transformer(length, system))

    def shown(self) -> Transformer:
        """The transformer that `show` describes."""
        return self.transformer(0, number_system("exact"))

    def shortened(self, longest: int | None) -> str:
        """The warning that this N is not the usual one; empty where it is."""
        return ""

    def is_certified(self, system: Arithmetic, engine: str) -> bool:
        """True if a certificate of the model holds for all its lengths, this format and engine."""
        return False

    def caution(self, model: Transformer, system: Arithmetic, engine: str) -> str:
        """The warning that an arithmetic is coarser than the one of the margins; empty elsewhere.

        Example:
            >>> import transformist as tf
            >>> from transformist.named import find_model
            >>> named = find_model("programs/dyck-1", {"arithmetic": "float32"})
            >>> model = named.transformer(8, number_system("float32"))
            >>> named.caution(model, number_system("float64"), "reference")
            ''
            >>> print(named.caution(model, number_system("bfloat16"), "reference"))
            programs/dyck-1 is compiled for float32: in bfloat16 the answer may be wrong

        """
        margins, family = model.built_for, system.name.partition(":")[0]
        if margins in (None, system.name) or family in RIGHT_OR_REFUSED:
            return ""
        if is_as_fine(system, number_system(margins)) or self.is_certified(system, engine):
            return ""
        return f"{self.name} is compiled for {margins}: in {system.name} the answer may be wrong"
