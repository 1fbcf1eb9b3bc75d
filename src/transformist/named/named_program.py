"""A program as a model of the command line: it is compiled for the input that comes."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self, final

from transformist.arithmetic import Arithmetic, Floating, Saturating
from transformist.compiler import answered_after, largest_length
from transformist.compiler import compile as compile_program
from transformist.compiler.uncompilable import TagsLookAhead, Uncompilable
from transformist.errors import InvalidValue, QuadraticCode, TransformistError, UnknownName
from transformist.language import Program
from transformist.model import Symbol, Transformer
from transformist.named.named_model import BuiltModel, NamedModel
from transformist.verify import THIS_PROCESS, Workers, built_for, spread

AFTER = "="
"""The separator of a program that answers after its input."""


@final
@dataclass(frozen=True)
class NamedProgram(NamedModel):
    """A packaged program, or one in a file; `--set` gives options of the compiler.

    Attributes:
        program: the program.
        answers_after: the separator if it answers after its input; else empty.

    """

    program: Program
    answers_after: str = ""

    @cached_property
    def options(self) -> dict[str, Any]:
        """All options of the compiler; a text is JSON where it can be.

        Raises:
            UnknownName: for an option that does not exist.

        """
        known = inspect.getfullargspec(compile_program).kwonlydefaults or {}
        for name in self.given:
            if name not in known:
                raise UnknownName.among("option of the compiler", name, known, self.name)
        return {**known, **{name: _value(each) for name, each in self.given.items()}}

    def with_defaults(self, **defaults: Any) -> Self:
        """The program, with options for the settings that `--set` leaves out."""
        return replace(self, given={**defaults, **self.given})

    def for_masks(self) -> Self:
        """The program, or the one that answers after `=` if the masks that are set require it.

        A causal decoder gives a tag before it reads the rest of the input. A program whose tags
        need the rest is replaced by `answered_after`, with N for the input, `=` and the tags. A
        program that is refused for another reason is returned unchanged.

        Raises:
            InvalidValue: if tags need the rest of the input, and cannot be given after it either.

        """
        small = {**self.options, "max_length": 4, "arithmetic": "exact"}
        refusal = _refusal(self.program, small) if small["masks"] == "future" else None
        if refusal is None:
            return self
        try:
            program = answered_after(self.program, AFTER)
            refusal_after = _refusal(program, small)
        except TransformistError as other:
            refusal_after = other
        if refusal_after is not None:
            if isinstance(refusal, TagsLookAhead):
                raise refusal_after
            return self
        n = self.options["max_length"]
        longest = {} if n is None else {"max_length": 2 * n + 1}
        given = {**self.given, **longest}
        return replace(self, program=program, given=given, answers_after=AFTER)

    @property
    def after_in_words(self) -> str:
        """The sentence on a program that answers after its input; empty for another one."""
        n = self.options["max_length"]
        if not self.answers_after or n is None:
            return ""
        return (
            f"{self.name} answers after its input: N = {n} is {n // 2} symbols, "
            f"{self.answers_after}, and {n // 2} tags, one a step"
        )

    def alphabet(self, length: int, system: Arithmetic) -> tuple[Symbol, ...]:
        return self.program.alphabet

    def transformer(self, length: int, system: Arithmetic) -> Transformer:
        """Compiled for this arithmetic, and the length rounded up to a power of two, 16 or more.

        Where that is refused, it is compiled for the length itself.
        """
        program = self.with_defaults(**self._arithmetic(system))
        try:
            return program.with_defaults(max_length=built_for(length)).compiled()
        except Uncompilable:
            if "max_length" in self.given:
                raise
            return program.with_defaults(max_length=max(length, 1)).compiled()

    def built(self, length: int, system: Arithmetic) -> BuiltModel:
        # The whole first paragraph: half a sentence may say something else.
        claim = " ".join(self.program.description.partition("\n\n")[0].split())
        return BuiltModel(model=self.transformer(length, system), claim=claim)

    def _arithmetic(self, system: Arithmetic) -> dict[str, str]:
        """The option of the compiler for what is evaluated in a number system.

        It keeps its default where the model is for any length, which no format allows, and where
        sums saturate.
        """
        any_length = self.options["max_length"] is None
        if any_length or isinstance(system, Saturating):
            return {}
        return {"arithmetic": system.name if isinstance(system, Floating) else "exact"}

    def compiled(self) -> Transformer:
        """Compiled with these options; those left out have their defaults.

        Where N is left out and a margin does not fit the default, N is the largest that fits.

        Raises:
            UnknownName: for an option that does not exist.
            TransformistError: for a program that is not compiled as asked.

        """
        try:
            return compile_program(self.program, **self.options)
        except Uncompilable:
            if "max_length" in self.given:
                raise
            options = {**self.options}
            fits = largest_length(self.program, most=options.pop("max_length"), **options)
            if not fits:
                raise
            return compile_program(self.program, max_length=fits, **options)

    def shown(self) -> Transformer:
        return self.compiled()

    def shortened(self, longest: int | None) -> str:
        usual = self.options["max_length"]
        if "max_length" in self.given or longest == usual:
            return ""
        return (
            f"{self.name} does not fit the usual N = {usual}: it is compiled for N = {longest}, "
            "the largest that fits"
        )

    def largest_lengths(
        self, formats: Sequence[str], most: int, workers: Workers = THIS_PROCESS
    ) -> dict[str, int]:
        """The largest N, at most `most`, that the margins allow in each of these formats.

        Args:
            formats: names of float formats.
            most: the largest N that is tried.
            workers: the processes.

        Raises:
            InvalidValue: for `max_length` or `arithmetic` among the options: these two vary.
            TransformistError: for a program that is not compiled for another reason.

        """
        for name in ("max_length", "arithmetic"):
            if name in self.given:
                raise InvalidValue(
                    f"{name} must not be set: the search varies it",
                    received=f"--set {name}",
                    where="precision",
                    remedy=f"write --{name.replace('_', '-')}",
                )
        fixed = {k: v for k, v in self.options.items() if k not in ("max_length", "arithmetic")}
        in_format = partial(_largest_length, self.program, most=most, fixed=fixed)
        return dict(zip(formats, spread(in_format, formats, workers), strict=True))


def _refusal(program: Program, options: dict[str, Any]) -> TransformistError | None:
    """The refusal to compile a program; `None` where it is compiled."""
    # The model is dropped: the one that is kept has the warning.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuadraticCode)
        try:
            compile_program(program, **options)
        except TransformistError as refusal:
            return refusal
    return None


def _largest_length(program: Program, arithmetic: str, most: int, fixed: dict[str, Any]) -> int:
    return largest_length(program, most=most, arithmetic=arithmetic, **fixed)


def _value(given: Any) -> Any:
    """The value that a text of --set stands for: JSON, `None`, or the text."""
    try:
        return None if given == "None" else json.loads(given)
    except (RecursionError, TypeError, ValueError):
        return given
