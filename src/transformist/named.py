"""What MODEL names on the command line: a recipe, a program, or a saved transformer."""

from __future__ import annotations

import difflib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from rich.table import Table

from transformist.arithmetic import Arithmetic, Floating, Saturating, number_system
from transformist.catalogue import recipe as find_recipe
from transformist.catalogue import recipes
from transformist.claims import Finding, Recipe, Settings, StringClaim
from transformist.compiler import compile as compile_program
from transformist.compiler import largest_length
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import InvalidValue, UnknownName
from transformist.hosts import load, load_certificates
from transformist.inputs import PACKAGED, alphabet_of, load_program
from transformist.language import Program
from transformist.model import Symbol, Transformer
from transformist.programs import PROGRAMS
from transformist.report import (
    dependence_in_words,
    model_facts,
    model_table,
    recipe_facts,
    recipe_table,
)
from transformist.verify import (
    AnswerOnSymbols,
    BuiltModel,
    Certificate,
    Verdict,
    answer_on_symbols,
    built_for,
    built_for_input,
    certify,
    check_program,
    check_recipe,
    unproved,
)

RIGHT_OR_REFUSED = ("exact", "interval")
"""Arithmetics that give the right answer, or refuse, whatever the margins are for."""


def caution(name: str, model: Transformer, system: Arithmetic) -> str:
    """What a user of an arithmetic is warned of; empty where it is as fine as what was built for.

    Example:
        >>> import transformist as tf
        >>> model = tf.compile(PROGRAMS["dyck-1"], max_length=8, arithmetic="float32")
        >>> caution("mine", model, number_system("float64"))
        ''
        >>> caution("mine", model, number_system("bfloat16"))
        'mine is compiled for float32: in bfloat16 the answer may be wrong'

    """
    asked = model.built_for
    if asked in (None, system.name) or system.name.partition(":")[0] in RIGHT_OR_REFUSED:
        return ""
    wanted = number_system(asked)
    if (
        isinstance(wanted, Floating)
        and isinstance(system, Floating)
        and _is_as_fine(system, wanted)
    ):
        return ""
    return f"{name} is compiled for {asked}: in {system.name} the answer may be wrong"


def _is_as_fine(one: Floating, other: Floating) -> bool:
    """Whether a format rounds, overflows and underflows no sooner than another."""
    return (
        one.precision >= other.precision
        and one.accumulator_roundoff <= other.accumulator_roundoff
        and one.largest >= other.largest
        and one.smallest <= other.smallest
    )


SUFFIX = ".safetensors"
"""What is called so is meant to be a file."""


@dataclass(frozen=True)
class Named(ABC):
    """A model with the name that it has on the command line."""

    name: str

    @property
    def takes_strings(self) -> bool:
        """Whether it is a transformer, which is run on strings."""
        return True

    def require_strings(self, what: str, received: str) -> None:
        """Refuse what only transformers have.

        Raises:
            InvalidValue: for a recipe on vectors.

        """
        if not self.takes_strings:
            raise InvalidValue(
                f"{what} must come with a model on strings",
                received=f"{received} with {self.name}",
                remedy="leave it out, or choose such a model",
            )

    def usual_arithmetic(self, given: Settings) -> str:
        """That in which it is run where none is asked for."""
        return "float64"

    def has_length(self, given: Settings) -> bool:
        """Whether its N is settled, whatever the input."""
        return "max_length" in given

    def adapted(self, given: Settings, text: Iterable[str]) -> Settings:
        """The settings for an input: what is given, and what its pieces say where it is not."""
        return given

    @abstractmethod
    def alphabet(self, given: Settings) -> tuple[Symbol, ...]:
        """The symbols of its inputs."""

    @abstractmethod
    def transformer(self, given: Settings, length: int, system: Arithmetic) -> Transformer:
        """The model for inputs up to a length, in an arithmetic, where the settings do not say."""

    def facts(self, given: Settings) -> dict[str, Any]:
        """What `show` tells of it."""
        return model_facts(self.name, self.shown(given))

    def table(self, facts: Mapping[str, Any]) -> Table:
        """The same for a person."""
        return model_table(facts)

    def shortened(self, given: Settings, built: int | None) -> str:
        """The warning that it is not built for the usual N, but for another; empty elsewhere."""
        return ""

    def shown(self, given: Settings) -> Transformer:
        """The transformer that is shown."""
        return self.transformer(given, 0, number_system("exact"))

    def is_certified(self, system: Arithmetic, engine: str) -> bool:
        """Whether a certificate that comes with it says that it decides right in an arithmetic."""
        return False

    def dependence(self, settings: Settings) -> str | None:
        """What is claimed to depend on the length, in words; `None` where nothing is claimed."""
        return None

    @abstractmethod
    def verdict(self, max_length: int | None) -> Verdict:
        """Whether it does what it is said to do."""

    def prepared(self, given: Settings, length: int, system: Arithmetic) -> BuiltModel:
        """The model for an input of a length, and whether what is claimed covers it."""
        return BuiltModel(model=self.transformer(given, length, system), settings=given)

    def answer(
        self, given: Settings, symbols: Sequence[Symbol], system: Arithmetic
    ) -> AnswerOnSymbols:
        """Its answer on an input."""
        trace = self.transformer(given, len(symbols), system).run(symbols, system)
        return AnswerOnSymbols(
            trace=trace, settings=given, safe=None, covered=True, finding=Finding(sentence="")
        )


@final
@dataclass(frozen=True)
class NamedRecipe(Named):
    """A recipe of the catalogue."""

    recipe: Recipe[Any]

    @property
    def takes_strings(self) -> bool:
        """Whether its claim is on strings."""
        return isinstance(self.recipe.claim, StringClaim)

    def usual_arithmetic(self, given: Settings) -> str:
        """As its claim says."""
        usual: str = self.recipe.claim.usual_arithmetic(self.recipe.settings(given))
        return usual

    def has_length(self, given: Settings) -> bool:
        """Whether its N is settled, whatever the input."""
        return "max_length" in given

    def adapted(self, given: Settings, text: Iterable[str]) -> Settings:
        """The alphabet is that of the text where it is a setting that is not given."""
        if "alphabet" not in self.recipe.parameters or "alphabet" in given:
            return given
        return {**given, "alphabet": alphabet_of(text)}

    def alphabet(self, given: Settings) -> tuple[Symbol, ...]:
        """That of the model."""
        settings = self.recipe.settings(given)
        alphabet: tuple[Symbol, ...] = self.recipe.construct(**settings).alphabet
        return alphabet

    def transformer(self, given: Settings, length: int, system: Arithmetic) -> Transformer:
        """Built for this length."""
        built = {"max_length": max(length, 1)} if "max_length" in self.recipe.parameters else {}
        settings = self.recipe.settings({**built, **given})  # by name: one may be called self
        model: Transformer = self.recipe.construct(**settings)
        return model

    def dependence(self, settings: Settings) -> str | None:
        """As its claim says."""
        return dependence_in_words(self.recipe.claim.dependence(self.recipe.settings(settings)))

    def facts(self, given: Settings) -> dict[str, Any]:
        """With its claim and its parameters."""
        return recipe_facts(self.recipe, given)

    def table(self, facts: Mapping[str, Any]) -> Table:
        """The same for a person."""
        return recipe_table(facts)

    def verdict(self, max_length: int | None) -> Verdict:
        """Of its claim."""
        return check_recipe(self.recipe, max_length)

    def prepared(self, given: Settings, length: int, system: Arithmetic) -> BuiltModel:
        """With what its claim covers."""
        return built_for_input(self.recipe, given, length, system)

    def answer(
        self, given: Settings, symbols: Sequence[Symbol], system: Arithmetic
    ) -> AnswerOnSymbols:
        """With what its claim covers."""
        return answer_on_symbols(self.recipe, given, symbols, system)


@final
@dataclass(frozen=True)
class NamedProgram(Named):
    """A packaged program, or one in a file, which is compiled."""

    program: Program

    def alphabet(self, given: Settings) -> tuple[Symbol, ...]:
        """That of the program."""
        return self.program.alphabet

    def transformer(self, given: Settings, length: int, system: Arithmetic) -> Transformer:
        """Compiled for this arithmetic, and the length rounded up to a power of two, 16 or more.

        Where that is refused, it is compiled for the length itself.
        """
        asked = {**self._arithmetic(given, system), **given}
        if "max_length" in given:
            return self.compiled(asked)
        try:
            return self.compiled({"max_length": built_for(length), **asked})
        except Uncompilable:
            return self.compiled({"max_length": max(length, 1), **asked})

    def _arithmetic(self, given: Settings, system: Arithmetic) -> Settings:
        """The option of the compiler for what is evaluated in a number system.

        Left to its default for any length, which no format has, and where sums saturate.
        """
        any_length = self.options(given)["max_length"] is None
        if any_length or isinstance(system, Saturating):
            return {}
        return {"arithmetic": system.name if isinstance(system, Floating) else "exact"}

    def shown(self, given: Settings) -> Transformer:
        """Compiled with these options."""
        return self.compiled(given)

    def lengths(self, given: Settings, formats: Sequence[str], longest: int) -> dict[str, Any]:
        """The largest N in each of these formats, for these options.

        Raises:
            InvalidValue: for `max_length` or `arithmetic`, which are what varies.
            TransformistError: for a program that is not compiled for another reason.

        """
        for name in ("max_length", "arithmetic"):
            if name in given:
                raise InvalidValue(
                    "the largest N in each format is searched for",
                    received=f"--set {name}",
                    where="precision",
                    remedy=f"write --{name.replace('_', '-')}",
                )
        options = {k: v for k, v in self.options(given).items() if k != "max_length"}
        found = {
            name: largest_length(self.program, most=longest, **{**options, "arithmetic": name})
            for name in formats
        }
        rows = [{"arithmetic": name, "largest_length": length} for name, length in found.items()]
        return {
            "program": self.name,
            "weighting": options["weighting"],
            "searched": longest,
            "results": rows,
        }

    def certified_below(self, given: Settings, refused: Certificate) -> int:
        """The largest N that the compiler admits in a format, where it is certified; 0 elsewhere.

        A program has other weights for each N; those for a larger one may hold for no length at
        all.
        """
        name, varied = refused.arithmetic, ("max_length", "arithmetic")
        kept = {key: value for key, value in given.items() if key not in varied}
        n: int = self.lengths(kept, [name], refused.max_length)["results"][0]["largest_length"]
        if not 0 < n < refused.max_length:
            return 0
        model = self.compiled({**kept, "max_length": n, "arithmetic": name})
        return n if certify(model, name, n, refused.order).holds else 0

    def compiled(self, given: Settings) -> Transformer:
        """Compiled with these options; those left out have their defaults.

        Where N is left out and a margin does not fit the default, N is the largest that fits.

        Raises:
            UnknownName: for an option that does not exist.
            TransformistError: for a program that is not compiled as asked.

        """
        options = self.options(given)
        try:
            return compile_program(self.program, **options)
        except Uncompilable:
            if "max_length" in given:
                raise
            usual = options.pop("max_length")
            fits = largest_length(self.program, most=usual, **options)
            if not fits:
                raise
            return compile_program(self.program, max_length=fits, **options)

    def shortened(self, given: Settings, built: int | None) -> str:
        """Where the usual N does not fit a program, and none is given."""
        usual = self.options(given)["max_length"]
        if "max_length" in given or built == usual:
            return ""
        return (
            f"{self.name} does not fit the usual N = {usual}: it is compiled for N = {built}, the "
            "largest that fits"
        )

    def options(self, given: Settings) -> dict[str, Any]:
        """All options of the compiler; a text is JSON where it can be.

        Raises:
            UnknownName: for an option that does not exist.

        """
        known = inspect.getfullargspec(compile_program).kwonlydefaults or {}
        for name in given:
            if name not in known:
                raise UnknownName.among("option of the compiler", name, known, self.name)
        return {**known, **{name: _value(each) for name, each in given.items()}}

    def verdict(self, max_length: int | None) -> Verdict:
        """What is compiled against the interpretation."""
        return check_program(self.name, self.program, max_length)


@final
@dataclass(frozen=True)
class NamedFile(Named):
    """A saved transformer, which has no settings, and the certificates saved with it."""

    model: Transformer
    certificates: tuple[Certificate, ...] = ()

    def has_length(self, given: Settings) -> bool:
        """Always: it was saved with it."""
        return True

    def alphabet(self, given: Settings) -> tuple[Symbol, ...]:
        """That of the model."""
        return self.model.alphabet

    def transformer(self, given: Settings, length: int, system: Arithmetic) -> Transformer:
        """The model as it is.

        Raises:
            InvalidValue: for settings.

        """
        if given:
            raise InvalidValue(
                "a saved model must be taken as it is",
                received=f"--set {next(iter(given))}",
                where=self.name,
                remedy="leave --set out, or compile the program anew",
            )
        return self.model

    def is_certified(self, system: Arithmetic, engine: str) -> bool:
        """Whether one that follows from the weights holds for all lengths that the model takes."""
        longest = self.model.max_length
        found = [
            each
            for each in self.certificates
            if (each.holds and each.arithmetic == system.name)
            and each.order in ORDERS_OF[engine]
            and longest is not None
            and each.max_length >= longest
        ]
        return bool(found) and not unproved(self.model, found)

    def verdict(self, max_length: int | None) -> Verdict:
        """None: a file does not say what it computes.

        Raises:
            InvalidValue: always.

        """
        raise InvalidValue(
            "a saved model must be compared with a function or a program",
            received="no --against",
            where=self.name,
            remedy="give --against FILE.py:NAME, or --against programs/NAME",
        )


ORDERS_OF = {"reference": ("any", "reference"), "structured": ("structured",)}
"""The orders of summation of certificates that speak of an engine."""


def _value(given: Any) -> Any:
    """What the text of --set says: JSON, `None`, or the text."""
    try:
        return None if given == "None" else json.loads(given)
    except (RecursionError, TypeError, ValueError):
        return given


def named_model(given: str) -> Named:
    """The model that MODEL names; where a recipe and a file have one name, the recipe.

    Raises:
        UnknownName: where there is none, with what MODEL can be.
        TransformistError: for a file that cannot be read.

    Example:
        >>> named_model("min").takes_strings, named_model("programs/dyck-1").alphabet({})
        (False, ('(', ')'))

    """
    names = [each.name for each in recipes()]
    if given in names:
        return NamedRecipe(given, find_recipe(given))
    if given.removeprefix(PACKAGED) in PROGRAMS and given.startswith(PACKAGED):
        return NamedProgram(given, load_program(given))
    if _is_there(given) and not given.endswith(".py"):
        return NamedFile(given, load(given), load_certificates(given))
    if _names_a_place(given):
        return NamedProgram(given, load_program(given))
    known = [*names, *(f"{PACKAGED}{name}" for name in PROGRAMS)]
    if given.endswith(SUFFIX):
        known = []
    near = difflib.get_close_matches(given, known, n=3, cutoff=0.5)
    raise UnknownName(
        "MODEL is a recipe's name, a packaged program (programs/NAME), a program in a file "
        "(FILE.py:NAME), or a saved file; no recipe, program or file has this name",
        received=repr(given),
        remedy=f"did you mean {' or '.join(near)}?"
        if near
        else "transformist list has the names"
        if known
        else f"there is no file {given}: check the path",
    )


def named_program(given: str) -> NamedProgram:
    """The program that programs/NAME or FILE.py:NAME names.

    Raises:
        TransformistError: as `load_program`.

    """
    return NamedProgram(given, load_program(given))


def _names_a_place(given: str) -> bool:
    """Whether it has the form FILE.py:NAME, or is the FILE.py of one."""
    return given.endswith(".py") or given.rpartition(":")[0].endswith(".py")


def _is_there(given: str) -> bool:
    try:
        return bool(given) and Path(given).exists()
    except (OSError, ValueError):
        return False
