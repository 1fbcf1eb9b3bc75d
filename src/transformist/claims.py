"""Recipes and their claims: what a construction computes, where, and how exactly."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.arithmetic import SYSTEMS
from transformist.domains import Domain, Strings
from transformist.errors import UnknownName
from transformist.model import FeedForward, FeedForwardStack, Sublayer, Trace, Transformer
from transformist.settings import SETTINGS

Model: TypeAlias = "FeedForward | FeedForwardStack | Sublayer | Transformer"
Settings: TypeAlias = Mapping[str, Any]

NO_GELU = "GELU takes irrational values"


@dataclass(frozen=True, kw_only=True)
class FunctionClaim:
    """What a position-wise construction computes.

    Its functions take the numbers of a case, where they need them, and by keyword those settings
    of the recipe that they name.

    Attributes:
        statement: the function, as a formula.
        reference: the function written from its definition: the list of outputs, all exact.
        domain: the inputs.
        approximation: a bound of the distance from `reference` in real arithmetic; `None` where
            the construction is exact. Rounding comes on top, bounded by `bounds.rounding_error`.
        approximation_statement: that bound, in words.
        exact_on: domains on which even a float format makes no error; it may also name `p`, the
            precision of the format, and `domain`.
        exact_on_statement: those inputs, in words.
        rounding_statement: what rounding does elsewhere.
        rounding: a bound of the rounding error, which may also name `u`, the unit roundoff of the
            format, and `w`, that of the accumulator (0 where it is u itself); `None` leaves it to
            `bounds.rounding_error`.
        excluded: arithmetics it does not hold in, with the reason.
        variants: further settings under which it is checked.

    """

    statement: str
    reference: Callable[..., list[Any]]
    domain: Callable[..., Domain]
    approximation: Callable[..., Fraction] | None = None
    approximation_statement: str = "exact"
    exact_on: Callable[..., tuple[Domain, ...]] | None = None
    exact_on_statement: str = ""
    rounding_statement: str = "at most bounds.rounding_error of the input"
    rounding: Callable[..., Fraction] | None = None
    excluded: Mapping[str, str] = field(default_factory=dict)
    variants: tuple[Settings, ...] = ()
    depends_on: tuple[str, ...] = ()

    @property
    def arithmetics(self) -> tuple[str, ...]:
        """The arithmetics it holds in."""
        return tuple(name for name in SYSTEMS if name not in self.excluded)


@dataclass(frozen=True, kw_only=True)
class StringClaim:
    """What a construction on strings decides.

    Attributes:
        statement: the language or function.
        reference: the answer, written from the definition: takes the string.
        domain: the alphabet, and strings on which the construction is most likely to fail.
        safe_lengths: for each arithmetic, a length up to which every answer is right; `None` for
            every length.
        why_safe: how these lengths are known.
        excluded: arithmetics it does not hold in, with the reason.
        depends_on: what the weights depend on: "n", "N" or nothing.

    """

    statement: str
    reference: Callable[[str], Any]
    domain: Strings
    safe_lengths: Mapping[str, int | None]
    why_safe: str
    excluded: Mapping[str, str] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()

    @property
    def arithmetics(self) -> tuple[str, ...]:
        """The arithmetics it holds in."""
        return tuple(self.safe_lengths)


Claim: TypeAlias = "FunctionClaim | StringClaim"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a trace shows about an input: a sentence, and the position it is about (from 1)."""

    sentence: str
    position: int | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A construction with its claim.

    Attributes:
        name: kebab-case, stable.
        section: of the Cookbook, where it stands.
        claim: what it computes.
        construct: the weights, from settings.
        sources: where the construction and its corrections are from.
        explain: what a trace of it shows, for a person.

    Example:
        >>> import transformist as tf
        >>> tf.recipe("clip").build(delta=2)([5])
        array([2.])

    """

    name: str
    section: str
    claim: Claim
    construct: Callable[..., Any]
    sources: tuple[str, ...] = ()
    explain: Callable[[Trace], Finding] | None = field(default=None)

    def __post_init__(self) -> None:
        for name in self.parameters:
            if name not in SETTINGS:
                raise UnknownName.among("setting", name, SETTINGS, f"recipe {self.name}")

    @property
    def chapter(self) -> str:
        """The module of the catalogue, in kebab-case."""
        return self.construct.__module__.rsplit(".", 1)[-1].replace("_", "-")

    @property
    def summary(self) -> str:
        """One line: what it computes."""
        return self.claim.statement

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings it takes, with their defaults."""
        signature = inspect.signature(self.construct).parameters
        return {name: parameter.default for name, parameter in signature.items()}

    def settings(self, given: Settings) -> dict[str, Any]:
        """The given settings, checked, over the defaults.

        Raises:
            UnknownName: for a setting the recipe does not take.
            InvalidValue: for a value out of range.

        """
        known = self.parameters
        for name in given:
            if name not in known:
                if not known:
                    raise UnknownName(
                        "this recipe takes no parameters",
                        received=repr(name),
                        where=self.name,
                        remedy="leave it out",
                    )
                raise UnknownName.among("parameter of this recipe", name, known, self.name)
        chosen = {**known, **given}
        return {name: SETTINGS[name].value(value, self.name) for name, value in chosen.items()}

    def build(self, **given: Any) -> Any:
        """The weights.

        Args:
            given: settings by name; those left out have their defaults.

        Raises:
            UnknownName, InvalidValue: as `settings`.

        """
        return self.construct(**self.settings(given))


def ask(function: Callable[..., Any], *case: Fraction, **known: Any) -> Any:
    """Call a function of a claim with the case and those of the known settings that it names.

    Example:
        >>> ask(lambda x, *, delta: x + delta, 1, delta=2, epsilon=3)
        3
    """
    return function(*case, **{name: known[name] for name in _keywords(function)})


@functools.cache
def _keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    named = inspect.signature(function).parameters.values()
    return tuple(each.name for each in named if each.kind is each.KEYWORD_ONLY)


def everywhere(*, domain: Domain) -> tuple[Domain, ...]:
    """For `exact_on`: the whole domain."""
    return (domain,)


def recipe(
    name: str,
    *,
    section: str,
    claim: Claim,
    sources: tuple[str, ...] = (),
    explain: Callable[[Trace], Finding] | None = None,
) -> Callable[[Callable[..., Any]], Recipe]:
    """Make a recipe of the function that builds its weights."""

    def make(construct: Callable[..., Any]) -> Recipe:
        return Recipe(
            name=name,
            section=section,
            claim=claim,
            construct=construct,
            sources=(f"The Transformer Cookbook (arXiv 2510.00368), {section}", *sources),
            explain=explain,
        )

    return make
