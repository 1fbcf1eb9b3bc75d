"""A recipe that is named on the command line, as a model that is built for each input."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, final

from transformist.arithmetic import Arithmetic
from transformist.claims import Recipe, Settings, StringClaim, ask, require_claimed_length
from transformist.inputs import alphabet_of
from transformist.model import Symbol, Transformer
from transformist.named.named_model import BuiltModel, NamedModel
from transformist.report.values import dependence_in_words
from transformist.settings import SETTINGS


@final
@dataclass(frozen=True)
class NamedRecipe(NamedModel):
    """A recipe of the catalogue; `--set` gives its parameters."""

    recipe: Recipe[Any]

    @cached_property
    def settings(self) -> Settings:
        """The parameters, checked; those left out have their defaults.

        Raises:
            UnknownName, InvalidValue: as `Recipe.settings`.

        """
        return self.recipe.settings(self.given)

    @cached_property
    def safe_lengths(self) -> dict[str, int | None]:
        """The length up to which the claim holds in each arithmetic; `None` for every length."""
        lengths: dict[str, int | None] = self.recipe.claim.safe_lengths(self.settings)
        return lengths

    @cached_property
    def _models(self) -> dict[int | None, Transformer]:
        """The models that have been built, by N."""
        return {}

    @property
    def takes_strings(self) -> bool:
        return isinstance(self.recipe.claim, StringClaim)

    @property
    def usual_arithmetic(self) -> str:
        """The arithmetic that the claim names first, float64 where it is among them."""
        usual: str = self.recipe.claim.usual_arithmetic(self.settings)
        return usual

    @property
    def _takes_length(self) -> bool:
        """True if N is a parameter that `--set` leaves out."""
        return "max_length" in self.recipe.parameters and "max_length" not in self.given

    def adapted(self, pieces: Iterable[str]) -> Self:
        """The recipe with the alphabet of the text, where the alphabet is a parameter left out."""
        if "alphabet" not in self.recipe.parameters or "alphabet" in self.given:
            return self
        return replace(self, given={**self.given, "alphabet": alphabet_of(pieces)})

    def alphabet(self, length: int, system: Arithmetic) -> tuple[Symbol, ...]:
        return self._of_length(self._longest(length, system)).alphabet

    def transformer(self, length: int, system: Arithmetic) -> Transformer:
        return self._of_length(max(length, 1))

    def built(self, length: int, system: Arithmetic) -> BuiltModel:
        """The transformer for an input of this length, with its claim.

        Raises:
            InvalidValue: where the claim does not cover the length and scores have a gap, or the
                arithmetic, the answer being no numbers.

        Example:
            >>> import transformist as tf
            >>> from transformist.arithmetic import number_system
            >>> named = NamedRecipe("dyck-1", {}, tf.recipe("dyck-1"))
            >>> named.built(3, number_system("float32")).model.max_length
            4

        """
        claim, safe = self.recipe.claim, self.safe_lengths.get(system.name, 0)
        if safe == 0 and not claim.in_numbers:
            require_claimed_length(self.recipe, self.settings, length, system)
        longest = self._longest(length, system)
        model, settings = self._of_length(longest), self._settings_for(longest)
        covered = safe is None or (model.max_length or length) <= safe
        # Beyond the safe length a head whose scores have a gap may choose a wrong position, so that
        # the answer would mean nothing. A mean is merely less exact: it is given, with a warning.
        if not covered and ask(claim.gap, n=max(length, 1), **settings) is not None:
            require_claimed_length(self.recipe, settings, model.max_length or length, system)
        return BuiltModel(
            model=model,
            safe=safe,
            covered=covered,
            recipe=self.recipe,
            claim=claim.statement if covered else "",
            dependence=dependence_in_words(claim.dependence(settings)),
        )

    def _longest(self, length: int, system: Arithmetic) -> int:
        """N for an input of this length, where N is not given.

        The length rounded up to a power of two; it stays within the length that the claim covers
        if the input does.
        """
        rounded = 1 << max(length - 1, 0).bit_length()
        safe = self.safe_lengths.get(system.name, 0)  # None for every length, 0 for none
        return min(rounded, safe) if safe and length <= safe else rounded

    def _settings_for(self, longest: int) -> Settings:
        if not self._takes_length:
            return self.settings
        checked = SETTINGS["max_length"].value(longest, self.recipe.name)
        return {**self.settings, "max_length": checked}

    def _of_length(self, longest: int) -> Transformer:
        """The model for this N, built once."""
        key = longest if self._takes_length else None
        if key not in self._models:
            self._models[key] = self.recipe.construct(**self._settings_for(longest))
        return self._models[key]
