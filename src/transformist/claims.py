"""Recipes and their claims: the function a construction computes, its inputs and its error."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import SYSTEMS, Arithmetic, Array, number_system
from transformist.deferred import Library
from transformist.domains import Domain, Reals, Sequences, Strings
from transformist.errors import InputTooLong, InvalidValue, OutsideClaim, UnknownName, require_type
from transformist.model import (
    Attention,
    FeedForward,
    FeedForwardStack,
    LayerNorm,
    LayerStack,
    PositionEncoding,
    Sublayer,
    Trace,
    Transformer,
    rationals,
)
from transformist.model.definition import Definition, observed
from transformist.settings import SETTINGS

_NOTEBOOK = Library("transformist.report.notebook_html")
"""What notebooks show, imported when a notebook asks for it."""

Model: TypeAlias = (
    FeedForward
    | FeedForwardStack
    | LayerNorm
    | Sublayer
    | Attention
    | LayerStack
    | PositionEncoding
    | Transformer
)
Settings: TypeAlias = Mapping[str, Any]

COOKBOOK = "The Transformer Cookbook (arXiv 2510.00368)"
"""The paper that most recipes are from."""

NO_GELU = "GELU takes irrational values"
NO_EXPONENTIAL = "the activation takes irrational values"
NO_ROOT = "the root of a variance is irrational, but for squares"
NO_SOFTMAX = "e to a power other than 0 is irrational"


@dataclass(frozen=True, kw_only=True)
class Claim(ABC):
    """Statement of a function, of the inputs it is computed on, and of the arithmetics that do.

    The functions of a claim name, by keyword, those settings of the recipe that they need.

    Attributes:
        statement: the function, as a formula.
        reference: the same, written from its definition, without the construction.
        domain: the inputs; its text describes them.
        excluded: the reason, for those of `SYSTEMS` in which it does not hold.
        only_in: the arithmetics it speaks about under some settings, by name; `None` for all of
            `SYSTEMS` but the excluded ones.
        variants: further settings under which it is checked.
        depends_on: the lengths that the weights and features depend on: "n", "N" or nothing; or a
            function that returns them.
        size: the growth of the width in terms of settings, where it grows.

    """

    statement: str
    reference: Callable[..., Any]
    domain: Callable[..., object]
    excluded: Mapping[str, str] = field(default_factory=dict)
    only_in: Callable[..., tuple[str, ...]] | None = None
    variants: tuple[Settings, ...] = ()
    depends_on: tuple[str, ...] | Callable[..., tuple[str, ...]] = ()
    size: str = ""

    def arithmetics(self, settings: Settings) -> tuple[str, ...]:
        """The arithmetics it speaks about under these settings; in some no length may be safe."""
        if self.only_in is not None:
            return tuple(ask(self.only_in, **settings))
        return tuple(name for name in SYSTEMS if name not in self.excluded)

    @abstractmethod
    def safe_lengths(self, settings: Settings) -> dict[str, int | None]:
        """The safe length of each arithmetic in which it holds; `None` for every length."""

    def claimed(self, settings: Settings) -> tuple[str, ...]:
        """The arithmetics in which it holds under these settings, for some length at least."""
        return tuple(self.safe_lengths(settings))

    def outside(self, x: Array, a: Arithmetic, settings: Settings) -> str:
        """The part of an input that the claim does not cover, in words; "" where there is none."""
        return ""

    def usual_arithmetic(self, settings: Settings) -> str:
        """The arithmetic to run in: float64 if it holds there, else the first in which it does."""
        claimed = self.claimed(settings)
        return claimed[0] if claimed and "float64" not in claimed else "float64"

    def dependence(self, settings: Settings) -> tuple[str, ...]:
        """The lengths that the weights and features depend on under these settings."""
        return ask(self.depends_on, **settings) if callable(self.depends_on) else self.depends_on

    def inputs(self, settings: Settings) -> str:
        """Description of the inputs that the claim covers."""
        return str(ask(self.domain, **settings))


@final
@dataclass(frozen=True, kw_only=True)
class FunctionClaim(Claim):
    """Claim of a position-wise construction. Its functions take the numbers of a case.

    Attributes:
        reference: returns the list of outputs, all exact.
        domain: the vectors.
        approximation: a bound of the distance from `reference` in real arithmetic; `None` where
            the construction is exact. Rounding comes on top, bounded by `bounds.rounding_error`.
        approximation_statement: that bound, in words.
        exact_on: domains on which even a float format makes no error; it may also name `p`, the
            precision of the format, and `domain`.
        exact_on_statement: those inputs, in words.
        rounding_statement: the effect of rounding elsewhere, in words.
        rounding: a bound of the rounding error, which may also name `u`, the unit roundoff of the
            format, and `w`, the unit roundoff of the accumulator (0 where it is u itself);
            `None` leaves it to `bounds.rounding_error`.

    """

    reference: Callable[..., list[Any]]
    domain: Callable[..., Domain]
    approximation: Callable[..., Fraction] | None = None
    approximation_statement: str = "exact"
    exact_on: Callable[..., tuple[Domain, ...]] | None = None
    exact_on_statement: str = ""
    rounding_statement: str = "at most bounds.rounding_error of the input"
    rounding: Callable[..., Fraction] | None = None

    def safe_lengths(self, settings: Settings) -> dict[str, int | None]:
        """No length is too long: a vector has none."""
        return dict.fromkeys(self.arithmetics(settings))

    def outside(self, x: Array, a: Arithmetic, settings: Settings) -> str:
        """The first vector that is not in the domain."""
        domain: Domain = ask(self.domain, **settings)
        if isinstance(domain, Reals) and domain.is_everything:
            return ""
        rows = rationals(a.numbers(x)).reshape(-1, x.shape[-1])
        found = next((row for row in rows.tolist() if tuple(row) not in domain), None)
        return "" if found is None else f"x = [{', '.join(f'{float(v):g}' for v in found)}]"


def any_length(*, arithmetic: Arithmetic) -> None:
    """For `safe_length`: no length is too long."""


@dataclass(frozen=True, kw_only=True)
class LengthClaim(Claim):
    """Claim of a construction on inputs of every length.

    Attributes:
        error: a bound of the distance of each number from `reference`; `None` where an answer is
            right or wrong.
        error_statement: that bound, in words.
        safe_length: a length up to which the claim holds in an `arithmetic`; `None` for every
            length, 0 where it is not claimed at all. It bounds N where the recipe has one.
        why_safe: the derivation of these lengths, in words.
        weightings: those it works with.
        mask: of its heads.
        gap: the least difference between the best dot product and the next, and d_key, for inputs
            of length n, "next" being the next lower one where several are best; the gap of scores
            is the first over the root of the second. `None` where all scores of a row are equal.
        gap_statement: that gap, as a formula.

    """

    error: Callable[..., Fraction | float] | None = None
    error_statement: str = ""
    safe_length: Callable[..., int | None] = any_length
    why_safe: str = "nothing grows with n"
    weightings: tuple[str, ...] = ()
    mask: str = ""
    gap: Callable[..., tuple[Fraction, int] | None] = lambda: None
    gap_statement: str = ""

    def safe_lengths(self, settings: Settings) -> dict[str, int | None]:
        lengths = {
            name: ask(self.safe_length, arithmetic=number_system(name), **settings)
            for name in self.arithmetics(settings)
        }
        return {name: length for name, length in lengths.items() if length != 0}

    def outside_lengths(self, n: int, a: Arithmetic, settings: Settings) -> str:
        """A length beyond the safe one, or an arithmetic without a claim, in words; else ""."""
        return beyond(n, self.safe_length_in(a, settings), a)

    def safe_length_in(self, a: Arithmetic, settings: Settings) -> int | None:
        """The safe length in an arithmetic; 0 in one that the claim does not speak about."""
        if a.name not in self.arithmetics(settings):
            return 0
        safe: int | None = ask(self.safe_length, arithmetic=a, **settings)
        return safe

    def covers(self, n: int, settings: Settings) -> bool:
        """True if inputs of length n are covered in some arithmetic."""
        names = self.arithmetics(settings)
        return any(not self.outside_lengths(n, number_system(each), settings) for each in names)

    def needed_features(self, settings: Settings) -> tuple[str, ...]:
        """The positional features it needs."""
        return ()


@final
@dataclass(frozen=True, kw_only=True)
class SequenceClaim(LengthClaim):
    """Claim of attention, or of a stack of layers, on lists of vectors.

    Attributes:
        reference: returns the vectors, one a position; it names the free columns of the domain, n,
            and `arithmetic`; `None` in place of the vector of a position that is not claimed.
        domain: the vectors, column by column.
        error: it may name n, `arithmetic`, and `size`, the largest magnitude among the free
            numbers. 0 where the result is exact in every arithmetic.

    """

    reference: Callable[..., Sequence[Sequence[Any] | None]]
    domain: Callable[..., Sequences]
    error: Callable[..., Fraction | float] = lambda: 0
    error_statement: str = "exact, wherever it is claimed"

    def outside(self, x: Array, a: Arithmetic, settings: Settings) -> str:
        """A length beyond the safe one, or the first numbers that are not in the domain."""
        n = x.shape[-2]
        if n == 0:
            return ""
        too_long = self.outside_lengths(n, a, settings)
        if too_long:
            return too_long
        domain: Sequences = ask(self.domain, **settings)
        lists = _floats(a.numbers(x)).reshape(-1, n, x.shape[-1])
        found = domain.first_outside(lists, a)
        if found is None:
            return ""
        column, place, numbers = found
        return f"{column.label} = {', '.join(f'{v:g}' for v in numbers)} at position {place}"

    def needed_features(self, settings: Settings) -> tuple[str, ...]:
        """The columns that the position fixes."""
        domain: Sequences = ask(self.domain, **settings)
        return domain.features


@final
@dataclass(frozen=True, kw_only=True)
class PositionClaim(LengthClaim):
    """Claim of a position encoding.

    Attributes:
        reference: returns the numbers observed at position i of n; it names i and n.
        observed: a function of all vectors; the vectors themselves if left out.
        error: it may name `arithmetic` and `value`, the reference's number.

    """

    reference: Callable[..., list[Any]]
    domain: Callable[..., str] = lambda: "n, the number of positions"
    observed: Callable[[list[list[Fraction]]], list[list[Fraction]]] = lambda vectors: vectors
    error: Callable[..., Fraction] = lambda *, arithmetic, value: rounded_once(arithmetic, value)
    error_statement: str = "exact, then each number rounded once"


def beyond(n: int, safe: int | None, a: Arithmetic) -> str:
    """A length beyond the safe one, in words; "" for one that is safe.

    Example:
        >>> beyond(9, 8, number_system("float16")), beyond(8, 8, number_system("float16"))
        ('n = 9 in float16, in which it is safe up to 8', '')

    """
    if safe is None or n <= safe:
        return ""
    limit = f"it is safe up to {safe}" if safe else "nothing is claimed"
    return f"n = {n} in {a.name}, in which {limit}"


def rounded_once(arithmetic: Arithmetic, value: Fraction) -> Fraction:
    """Bound of the distance of a number from its value in the arithmetic.

    Example:
        >>> rounded_once(number_system("float16"), Fraction(1, 3)) > Fraction(1, 6144)
        True

    """
    # To the nearest of p significant bits, the error is at most u |v|, u = 2⁻ᵖ. Below the normal
    # numbers the format's numbers are multiples of the smallest, and the error is at most half of
    # it, as everywhere in fixed point, where u is 0. The sum bounds both. Where nothing rounds, u
    # is 0 and there is no smallest number.
    smallest = Fraction(getattr(arithmetic, "smallest", 0))
    return arithmetic.unit_roundoff * abs(value) + smallest / 2


@final
@dataclass(frozen=True, kw_only=True)
class StringClaim(LengthClaim):
    """Claim of a transformer on strings.

    Attributes:
        reference: returns the answer on a string; where answers are in numbers, a list of vectors,
            one a position read.
        domain: the alphabet, and strings on which the construction is most likely to fail.
        features: the positional features it needs, or a function that returns them.
        error: given where answers are in numbers; it may name the input x, n and `arithmetic`.

    """

    reference: Callable[..., Any]
    domain: Callable[..., Strings]
    features: tuple[str, ...] | Callable[..., tuple[str, ...]] = ()

    @property
    def in_numbers(self) -> bool:
        """True if an answer is in numbers, near the reference, and not right or wrong."""
        return self.error is not None

    def usual_arithmetic(self, settings: Settings) -> str:
        """The usual one of a claim; for numbers float64, as balls can bound their error there."""
        return "float64" if self.in_numbers else super().usual_arithmetic(settings)

    def needed_features(self, settings: Settings) -> tuple[str, ...]:
        """Those of the embedding."""
        return ask(self.features, **settings) if callable(self.features) else self.features


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Finding about an input that was run.

    Attributes:
        sentence: in words.
        position: the position of the input that it is about, from 1.
        related: further positions that show why.
        numbers: the counts it rests on, by name.

    """

    sentence: str
    position: int | None = None
    related: tuple[int, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)


C = TypeVar("C", bound=Claim)
C_co = TypeVar("C_co", bound=Claim, covariant=True)


@dataclass(frozen=True, kw_only=True)
class Recipe(Generic[C_co]):
    """A construction with its claim.

    Attributes:
        name: kebab-case, stable.
        section: the section of its document: a number, or a heading.
        document: the paper it is from.
        claim: the statement of what it computes.
        construct: builds the weights from settings.
        sources: where the construction and its corrections are from.
        errata: the entries of docs/errata.md that it heeds, by id.
        explain: returns the finding about an input that was run, for a person.

    Example:
        >>> import transformist as tf
        >>> tf.recipe("clip").build(delta=2)([5])
        array([2.])

    """

    name: str
    section: str
    claim: C_co
    construct: Callable[..., Any]
    sources: tuple[str, ...] = ()
    errata: tuple[str, ...] = ()
    explain: Callable[[Trace], Finding] | None = field(default=None)
    document: str = COOKBOOK

    def __post_init__(self) -> None:
        require_type(
            self.claim,
            Claim,
            "the claim of a recipe must be a FunctionClaim, SequenceClaim, PositionClaim or "
            "StringClaim",
            where=self.name,
            remedy="give one, such as tf.recipe('min').claim",
        )
        for name in self.parameters:
            if name not in SETTINGS:
                raise UnknownName.among("setting", name, SETTINGS, f"recipe {self.name}")

    def _repr_html_(self) -> str:
        """The claim, the parameters and the size, for notebooks."""
        html: str = _NOTEBOOK.recipe_html(self)
        return html

    @property
    def chapter(self) -> str:
        """The module of the catalogue, in kebab-case."""
        _, _, path = self.construct.__module__.partition("catalogue.")
        return path.split(".")[0].replace("_", "-")

    @property
    def cookbook_section(self) -> str | None:
        """Its section of the Cookbook; `None` for other documents.

        Example:
            >>> import transformist as tf
            >>> tf.recipe("clip").cookbook_section
            '6.4'
            >>> tf.recipe("original-transformer").cookbook_section is None
            True

        """
        return self.section if self.document == COOKBOOK else None

    @property
    def summary(self) -> str:
        """The function that it computes, in a line."""
        return self.claim.statement

    def replace(self, **changes: Any) -> Recipe[C_co]:
        """Return the recipe with other fields, such as another construction of the same claim.

        Args:
            changes: fields by name. A new `construct` is called with those parameters of the recipe
                that it names; the recipe keeps its parameters and their defaults.

        Raises:
            UnknownName: for a field that does not exist.
            InvalidValue: for a construction or a claim that needs a parameter the recipe does not
                have, and for a `claim` of another type.

        Example:
            >>> import transformist as tf
            >>> swapped = tf.recipe("min").replace(construct=tf.recipe("max").construct)
            >>> tf.check(swapped).held, tf.check(tf.recipe("min")).held
            (False, True)

        """
        known = [each.name for each in fields(self)]
        for name in changes:
            if name not in known:
                raise UnknownName.among("field of a recipe", name, known, self.name)
        if "construct" in changes:
            changes["construct"] = _with_parameters_of(self, changes["construct"])
        changed = replace(self, **changes)
        if "claim" in changes:
            _require_parameters(changed)
        return changed

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
        require_type(
            given,
            Mapping,
            "settings must be a mapping from names of parameters to values",
            where=self.name,
            remedy='give one such as {"max_length": 8}',
        )
        for name in given:
            if name not in known:
                if not known:
                    raise UnknownName(
                        "there must be no settings, as this recipe takes no parameters",
                        received=repr(name),
                        where=self.name,
                        remedy="leave it out",
                    )
                raise UnknownName.among("parameter of this recipe", name, known, self.name)
        chosen = {
            # None is a value only where it is the default.
            name: None if value is known[name] is None else SETTINGS[name].value(value, self.name)
            for name, value in {**known, **given}.items()
        }
        self._require_claimed(chosen)
        return chosen

    def _require_claimed(self, chosen: Settings) -> None:
        weightings = getattr(self.claim, "weightings", ())
        if "weighting" in chosen and chosen["weighting"] not in weightings:
            raise InvalidValue(
                f"the weighting must be one that {self.name} claims: {', '.join(weightings)}",
                received=f"weighting = {chosen['weighting']}",
                where=self.name,
                remedy="choose one of them (soften makes softmax of hard attention with a gap)",
            )

    def safe_lengths(self, **given: Any) -> dict[str, int | None]:
        """For each arithmetic of the claim, a length up to which it holds; `None` for every length.

        An arithmetic that is not there has no such length.

        Args:
            given: settings by name; those left out have their defaults.

        Raises:
            UnknownName, InvalidValue: as `settings`.

        Example:
            >>> import transformist as tf
            >>> tf.recipe("quadratic-lookup").safe_lengths()["float32"]
            3444

        """
        return self.claim.safe_lengths(self.settings(given))

    def gap(self, n: int, **given: Any) -> tuple[Fraction, int] | None:
        """The least difference of dot products for inputs of length n, and d_key.

        The gap of scores is the first over the root of the second. `None` where scores have none.

        Raises:
            UnknownName, InvalidValue: as `settings`.

        Example:
            >>> import transformist as tf
            >>> tf.recipe("quadratic-lookup").gap(n=10)
            (Fraction(1, 1), 2)

        """
        claim: Claim = self.claim
        settings = self.settings(given)
        if not isinstance(claim, LengthClaim):
            return None
        found: tuple[Fraction, int] | None = ask(claim.gap, n=n, **settings)
        return found

    def build(self, **given: Any) -> Any:
        """Build the weights.

        Args:
            given: settings by name; those left out have their defaults. A text is read as `--set`
                reads it, such as "1/3" for a number.

        Raises:
            UnknownName, InvalidValue: as `settings`.

        Warns:
            OutsideClaim: the first time that the model is called on vectors, or on a string, that
                the claim does not cover; at once where it covers no input of length N.

        """
        settings = self.settings(given)
        model = self.construct(**settings)
        _warn_beyond_every_length(self, settings)
        if not isinstance(model, Definition):  # a position encoding of a user
            return model
        kind = _StringObserver if isinstance(model, Transformer) else _Observer
        return observed(model, kind(self, settings))


def _warn_beyond_every_length(recipe: Recipe[Any], settings: Settings) -> None:
    """Warn of a longest length that the claim covers in no arithmetic."""
    claim, longest = recipe.claim, settings.get("max_length")
    if longest is None or not isinstance(claim, LengthClaim) or claim.covers(longest, settings):
        return
    lengths = [each for each in claim.safe_lengths(settings).values() if each is not None]
    limit = f"lengths up to {max(lengths)}" if lengths else "no length under these settings"
    sentence = f"{recipe.name} is claimed for {limit}; it is built for N = {longest}"
    _warn_outside(sentence)


def _warn_outside(sentence: str) -> None:
    """Warn the caller of the package that a result may be wrong."""
    # Models are called through several functions of the package, so the level of the caller is
    # counted: 1 is this function, and each frame of the package adds 1.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(OutsideClaim(f"{sentence}: the result may be wrong"), stacklevel=level)


_PACKAGE = str(Path(__file__).parent)
"""Directory of the modules of the package."""


def _floats(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers rounded to float64, infinite where they are beyond its range."""
    if numbers.dtype != object:
        return numbers.astype(np.float64)
    return np.array([_float(v) for v in numbers.ravel()]).reshape(numbers.shape)


def _float(v: Fraction) -> float:
    try:
        return float(v)
    except OverflowError:
        return math.inf if v > 0 else -math.inf


class _Observer:
    """Observer that warns of the first input that the claim of a recipe does not cover."""

    def __init__(self, recipe: Recipe[Any], settings: Settings) -> None:
        self._recipe, self._settings, self._has_warned = recipe, settings, False

    def __call__(self, x: Any, a: Arithmetic) -> None:
        if self._has_warned:
            return
        outside = self._outside(x, a)
        if outside:
            self._has_warned = True
            inputs = self._recipe.claim.inputs(self._settings)
            _warn_outside(f"{self._recipe.name} is claimed for {inputs}; got {outside}")

    def _outside(self, x: Any, a: Arithmetic) -> str:
        claim: Claim = self._recipe.claim
        return claim.outside(x, a, self._settings)


class _StringObserver(_Observer):
    """Observer of strings, by their lengths: a model has only the symbols of its claim.

    A decoder asks at every token, so each safe length is computed once.
    """

    def __init__(self, recipe: Recipe[Any], settings: Settings) -> None:
        super().__init__(recipe, settings)
        self._safe: dict[str, int | None] = {}

    def _outside(self, x: Any, a: Arithmetic) -> str:
        if a.name not in self._safe:
            claim: StringClaim = self._recipe.claim
            self._safe[a.name] = claim.safe_length_in(a, self._settings)
        return beyond(len(x), self._safe[a.name], a)


def _with_parameters_of(recipe: Recipe[Any], construct: Any) -> Callable[..., Any]:
    """A function of all settings of a recipe, which passes on those that `construct` names."""
    try:
        named = inspect.signature(construct).parameters.values()
    except (TypeError, ValueError):  # no function, or one of Python's own without a signature
        raise InvalidValue(
            "construct must be a function from settings to weights",
            received=f"{construct!r:.60}",
            where=recipe.name,
            remedy="give a function, such as lambda: model",
        ) from None
    takes_all = any(each.kind is each.VAR_KEYWORD for each in named)
    taken = {
        each.name for each in named if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)
    }
    needed = {each.name for each in named if each.default is each.empty} & taken
    if not needed <= {*recipe.parameters}:
        raise InvalidValue(
            f"a construction of {recipe.name} must need only parameters that the recipe has: "
            f"{', '.join(recipe.parameters) or 'none'}",
            received=f"one that needs {', '.join(sorted(needed - {*recipe.parameters}))}",
            where=recipe.name,
            remedy="give these a default, or leave them out",
        )

    # `wraps` keeps the signature, from which the parameters of the recipe follow.
    @functools.wraps(recipe.construct)
    def constructed(**settings: Any) -> Any:
        return construct(
            **{name: each for name, each in settings.items() if takes_all or name in taken}
        )

    return constructed


def _require_parameters(recipe: Recipe[Any]) -> None:
    """Refuse a claim whose functions name settings that the recipe does not take."""
    asked = (getattr(recipe.claim, each.name) for each in fields(recipe.claim))
    named = {name for each in asked if inspect.isfunction(each) for name in _keywords(each)}
    missing = (named & {*SETTINGS}) - {*recipe.parameters}
    if missing:
        raise InvalidValue(
            f"a claim of {recipe.name} must need only parameters that the recipe has: "
            f"{', '.join(recipe.parameters) or 'none'}",
            received=f"one that needs {', '.join(sorted(missing))}",
            where=recipe.name,
            remedy="give a claim whose functions name no others",
        )


def ask(function: Callable[..., Any], *case: Any, **known: Any) -> Any:
    """Call a function of a claim with the case, and with each known setting that it names.

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
    claim: C,
    sources: tuple[str, ...] = (),
    errata: tuple[str, ...] = (),
    explain: Callable[[Trace], Finding] | None = None,
    document: str = COOKBOOK,
) -> Callable[[Callable[..., Any]], Recipe[C]]:
    """Make a recipe of the function that builds its weights."""

    def make(construct: Callable[..., Any]) -> Recipe[C]:
        return Recipe(
            name=name,
            section=section,
            claim=claim,
            construct=construct,
            sources=(f"{document}, {section}", *sources),
            errata=errata,
            explain=explain,
            document=document,
        )

    return make


def require_claimed_length(
    recipe: Recipe[LengthClaim], settings: Settings, n: int, system: Arithmetic
) -> None:
    """Refuse an input longer than N, or longer than the safe length of the format.

    Raises:
        InputTooLong: beyond N.
        InvalidValue: beyond the safe length, or in an arithmetic in which nothing is claimed.

    """
    built_for = settings.get("max_length")
    if built_for is not None and n > built_for:
        raise InputTooLong(
            f"an input of {recipe.name} must have at most N = {built_for} positions",
            received=f"{n}",
            remedy=f"give --set max_length={n}",
        )
    arithmetic = system.name
    lengths = recipe.claim.safe_lengths(settings)
    safe = lengths.get(arithmetic, 0)
    if not lengths:
        raise InvalidValue(
            f"{recipe.name} must have settings that an arithmetic holds, to claim anything in it",
            received="numbers that none of them holds",
            remedy="give numbers such as 1/2 or 3, and no larger than the largest number",
        )
    if safe == 0:
        reason = recipe.claim.excluded.get(arithmetic)
        raise InvalidValue(
            f"the arithmetic must be one that {recipe.name} is claimed in: {', '.join(lengths)}",
            received=f"{arithmetic} ({reason})" if reason else arithmetic,
            remedy="choose another arithmetic",
        )
    if safe is not None and n > safe:
        raise InvalidValue(
            f"in {arithmetic} an input of {recipe.name} must have a length of at most {safe}, up "
            "to which the claim is safe",
            received=f"n = {n}",
            remedy="give a shorter input or choose a wider format",
        )
