"""Judgements: the answers of an engine to the prompts of a suite, beside those that are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from transformist.conformance.case import Case
from transformist.conformance.faults import NamedFault

BETWEEN_MISTAKES = "(?<!,) or "
"""Pattern between the mistakes of a meaning: "or" within a sentence follows a comma."""

MOST_MEANINGS = 3
"""Most meanings that a line of evidence shows."""


@dataclass(frozen=True, kw_only=True)
class WrongToken:
    """A wrong token of a case.

    Attributes:
        case: the prompt.
        position: the position, from 0, after which the token comes.
        expected: the right token.
        got: the token of the engine.
        texts: the texts of the tokens of the checkpoint.

    """

    case: Case
    position: int
    expected: int
    got: int
    texts: Sequence[str] = field(repr=False)

    @property
    def meaning(self) -> str:
        """The meaning of the token, by the suite; empty if it has none."""
        return self.case.meaning(self.got)

    @property
    def mistakes(self) -> tuple[str, ...]:
        """The mistakes that give this token; none if the suite has no meaning for it alone."""
        words = self.case.wrong.get(str(self.got), "")
        return tuple(re.split(BETWEEN_MISTAKES, words)) if words else ()

    @property
    def text(self) -> str:
        """The text of the token; a token that the vocabulary does not have is shown as a number."""
        known = 0 <= self.got < len(self.texts)
        return self.texts[self.got] if known else f"token {self.got}"

    def __str__(self) -> str:
        expected = self.texts[self.expected]
        return f"{self.case.id}, position {self.position}: {self.text} in place of {expected}"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """One case in one mode.

    Attributes:
        case: the prompt.
        mode: the name of the mode.
        positions: the number of known answers that the mode reads.
        wrong: the wrong tokens.
        not_run: the number of known answers that the engine did not give.
        reason: the reason for these, in words.

    """

    case: Case
    mode: str
    positions: int
    wrong: tuple[WrongToken, ...] = ()
    not_run: int = 0
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The judgements of an instrument in a mode, counted."""

    name: str
    mode: str
    positions: int
    wrong: int
    not_run: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The wrong tokens of an instrument, by their meanings.

    Attributes:
        instrument: the name of the instrument.
        wrong: the number of wrong tokens.
        answers: the number of answers that the engine gave in the modes with wrong tokens.
        modes: these modes.
        right_in: the modes in which all answers came and were right.
        meanings: each meaning and the number of tokens that have it, the most frequent first.
        mistakes: the mistakes that explain every answer in the modes with wrong tokens.
        first: the first wrong token.

    """

    instrument: str
    wrong: int
    answers: int
    modes: tuple[str, ...]
    right_in: tuple[str, ...]
    meanings: tuple[tuple[str, int], ...]
    mistakes: tuple[str, ...]
    first: WrongToken

    def __str__(self) -> str:
        parts = [f"{self.wrong} of {self.answers} answers are wrong in {', '.join(self.modes)}"]
        if self.right_in:
            parts.append(f"all are right in {', '.join(self.right_in)}")
        if self.mistakes:
            parts.append(f"every answer means: {' or '.join(self.mistakes)}")
        else:
            shown = self.meanings[:MOST_MEANINGS]
            parts += [f"{count} of these mean: {meaning}" for meaning, count in shown]
        parts.append(f"the first is {self.first}")
        return f"{self.instrument}: {'; '.join(parts)}"


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """The judgements of a suite.

    Attributes:
        family: the family of the suite.
        every: a judgement for each case and mode.
        diagnosis: the classes of faults that explain wrong tokens, at most two.
        notes: what the engine noticed beside the tokens, by instrument.

    """

    family: str
    every: tuple[Judgement, ...]
    diagnosis: tuple[NamedFault, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def wrong(self) -> int:
        """The number of wrong answers."""
        return sum(len(each.wrong) for each in self.every)

    @property
    def not_run(self) -> int:
        """The number of known answers that the engine did not give."""
        return sum(each.not_run for each in self.every)

    @property
    def is_right(self) -> bool:
        """True if the engine gave every known answer, and none was wrong."""
        return any(each.positions for each in self.every) and not self.wrong and not self.not_run

    def rows(self) -> list[Row]:
        """Return a row for each instrument and mode, in the order in which they ran."""
        found: dict[tuple[str, str], list[Judgement]] = {}
        for each in self.every:
            found.setdefault((each.case.instrument, each.mode), []).append(each)
        return [
            Row(
                name=name,
                mode=mode,
                positions=sum(each.positions for each in own),
                wrong=sum(len(each.wrong) for each in own),
                not_run=sum(each.not_run for each in own),
                reason=next((each.reason for each in own if each.reason), ""),
            )
            for (name, mode), own in found.items()
        ]

    def evidence(self) -> list[Evidence]:
        """Return the wrong tokens of each instrument, those that name a mistake first.

        Among these, and among the others, the larger share of wrong answers comes first.
        """
        found: dict[str, list[tuple[str, WrongToken]]] = {}
        for each in self.every:
            for token in each.wrong:
                found.setdefault(each.case.instrument, []).append((each.mode, token))
        rows = self.rows()
        made = [
            _evidence(tokens, [each for each in rows if each.name == name])
            for name, tokens in found.items()
        ]
        return sorted(made, key=lambda each: (not each.mistakes, -each.wrong / each.answers))


def _evidence(tokens: Sequence[tuple[str, WrongToken]], rows: Sequence[Row]) -> Evidence:
    """The evidence of one instrument: its wrong tokens with their modes, and its rows."""
    modes = {mode for mode, _ in tokens}
    own = [each for each in rows if each.mode in modes]
    answers = sum(each.positions - each.not_run for each in own)
    meanings = Counter(token.meaning for _, token in tokens if token.meaning)
    named = Counter(mistake for _, token in tokens for mistake in token.mistakes)
    # A wrong token has the meaning of some mistake by chance in one of four prompts of a fixed
    # network. So a mistake is named only if it explains all of them, none being left out.
    is_whole = not any(each.not_run for each in own)
    return Evidence(
        instrument=own[0].name,
        wrong=len(tokens),
        answers=answers,
        modes=tuple(each.mode for each in own),
        right_in=tuple(
            each.mode for each in rows if each.positions and not each.wrong and not each.not_run
        ),
        meanings=tuple(meanings.most_common()),
        mistakes=tuple(each for each, count in named.items() if is_whole and count == answers),
        first=tokens[0][1],
    )
