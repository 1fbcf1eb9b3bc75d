"""Verdicts: the outcome of comparing weights with what they are said to compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Counterexample:
    """An input on which the weights and the reference differ by more than the claim admits."""

    input: Any
    expected: Any
    got: Any
    arithmetic: str
    settings: str = ""

    def __str__(self) -> str:
        where = f" with {self.settings}" if self.settings else ""
        return (
            f"input {_shown(self.input)} gives {_shown(self.got)} in {self.arithmetic}{where}, "
            f"expected {_shown(self.expected)}"
        )


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        name: of what was checked.
        cases: how many inputs were evaluated, over all arithmetics.
        arithmetics: the number systems they were evaluated in.
        covered: what was tried, in words.
        counterexample: the first input that failed, or `None`.

    """

    name: str
    cases: int
    arithmetics: tuple[str, ...]
    covered: str
    counterexample: Counterexample | None = None

    @property
    def held(self) -> bool:
        """Whether no counterexample was found."""
        return self.counterexample is None

    def __bool__(self) -> bool:
        """As `held`, so that a verdict can be asserted."""
        return self.held


def described(settings: Mapping[str, Any]) -> str:
    """Settings in a line."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_shown(each) for each in value)}]"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
