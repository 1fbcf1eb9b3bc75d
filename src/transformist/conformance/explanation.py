"""Agreement of the tokens of an engine with those of each known mistake."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple

from transformist.conformance.case import Case
from transformist.conformance.family import DenseModel, Family
from transformist.conformance.judgement import Judgement, WrongToken
from transformist.conformance.mistake import Mistake, Tokens, opened, tokens
from transformist.conformance.mistakes import mistakes

SHORT, LONG = 34, 66
"""Lengths of prompts in tokens. For each of them, mistakes are evaluated on the longest prompts of
an instrument that are not longer: the first is below the window of most engines, and the second
leaves room for several chunks."""

MOST_TOKENS = 1000
"""The most tokens of a prompt on which mistakes are evaluated. Attention takes n² products a head,
for each of about a hundred mistakes: two prompts of 700 tokens take 4 s, two of 4,096 would take
34 times as long. If longer prompts alone are wrong, their lengths tell the class of the fault."""

MARKER, HERE = "marker", "here"
"""The instrument whose answers tell how far a token is attended, and its answer at the marker."""

FEW = 4
"""If an instrument has at most this many prompts, all of different lengths, mistakes are evaluated
on each of them."""


class Explanation(NamedTuple):
    """A known mistake beside the tokens of an engine.

    Attributes:
        mistake: the mistake.
        agreement: the share of answers that agree, of those that are wrong in the engine or by the
            mistake, averaged over the instruments.
        distance: how far its pattern of wrong answers is from that of the engine.
        agreeing: the number of answers that agree, of those that are wrong in either.
        compared: the number of these.
        one_answer: the agreement that one other answer of each instrument would take away.

    """

    mistake: Mistake
    agreement: float
    distance: float
    agreeing: int
    compared: int
    one_answer: float


@dataclass(frozen=True)
class _Pattern:
    """The wrong answers of an instrument, summed up.

    Attributes:
        share: the share of wrong answers.
        size: the decimal logarithm of the median change, of answers that are numbers.
        shift: the mean sign of these changes.

    """

    share: float
    size: float
    shift: float


class Predictions:
    """The tokens that known mistakes give on a suite, each evaluated once."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        self._networks: dict[str, DenseModel] = {}
        self._tokens: dict[tuple[str, str], Tokens] = {}

    def chosen(self, wrong: Collection[str]) -> Mapping[str, Sequence[Case]]:
        """The cases of each instrument on which mistakes are evaluated.

        Args:
            wrong: the names of the cases with wrong answers. The shortest one of each instrument
                is among the chosen cases, if it has at most `MOST_TOKENS` tokens.

        """
        found: dict[str, list[Case]] = {}
        for case in self._cases:
            found.setdefault(case.instrument, []).append(case)
        return {name: _some(own, wrong) for name, own in found.items()}

    @property
    def family(self) -> Family:
        """The family of the suite."""
        return self._network(self._cases[0]).family

    def _network(self, case: Case) -> DenseModel:
        name = case.instrument
        if name not in self._networks:
            self._networks[name] = opened(case.checkpoint)
        return self._networks[name]

    def _farthest(self, token: WrongToken) -> int:
        """The distance from the position of a wrong token to the farthest one that it depends on.

        In a decoder this is the first token. An encoder sees both ends of a text.
        """
        to_the_end = len(token.case.ids) - 1 - token.position
        return token.position if self.family.generates else max(token.position, to_the_end)

    def tokens(self, mistake: Mistake, case: Case) -> Tokens:
        """The tokens of a mistake at the positions that a case reads."""
        key = mistake.words, case.id
        if key not in self._tokens:
            self._tokens[key] = tokens(self._network(case), case, mistake)
        return self._tokens[key]

    def explanations(self, own: Sequence[Judgement]) -> list[Explanation]:
        """Compare the judgements of one mode with the known mistakes, the nearest first.

        There are none if mistakes are evaluated on no prompt with a wrong answer, as all of these
        have more than `MOST_TOKENS` tokens: whatever else agrees says nothing of the mistake.
        """
        got = {each.case.id: _answers(each) for each in own}
        first = min((self._farthest(token) for each in own for token in each.wrong), default=0)
        behind = (_behind(token) for each in own for token in each.wrong)
        distance = min((each for each in behind if each), default=0)
        texts = {each.case.instrument: token.texts for each in own for token in each.wrong}
        wrong = {each.case.id for each in own if each.wrong}
        chosen = self.chosen(wrong)
        if not any(case.id in wrong for cases in chosen.values() for case in cases):
            return []
        found = [
            self._explanation(mistake, chosen, got, texts)
            for mistake in mistakes(self.family, first, distance).values()
        ]
        # An exact mistake has the distance 0 and the agreement 1. Of those that are not exact, a
        # near pattern counts as much as equal tokens, which small vocabularies give by chance.
        return sorted(found, key=lambda each: each.distance - each.agreement)

    def _explanation(
        self,
        mistake: Mistake,
        chosen: Mapping[str, Sequence[Case]],
        got: Mapping[str, Mapping[int, int]],
        texts: Mapping[str, Sequence[str]],
    ) -> Explanation:
        agreements, distances, counts, agreeing = [], [], [], 0
        for name, cases in chosen.items():
            rows = [
                (engine[at], predicted, right)
                for case in cases
                for engine in [got.get(case.id, {})]
                for at, predicted, right in zip(
                    case.reads, self.tokens(mistake, case).tolist(), case.expected, strict=True
                )
                if at in engine
            ]
            either = [each for each in rows if len({*each}) > 1]
            if either:
                equal = sum(engine == predicted for engine, predicted, _ in either)
                agreements.append(equal / len(either))
                counts.append(len(either))
                agreeing += equal
            if rows:
                own, by = (
                    _pattern([(row[k], row[2]) for row in rows], texts.get(name, ()))
                    for k in (0, 1)
                )
                distances.append(_distance(own, by))
        return Explanation(
            mistake,
            fmean(agreements) if agreements else 0.0,
            fmean(distances) if distances else 2.0,
            agreeing,
            sum(counts),
            fmean(1 / each for each in counts) if counts else 0.0,
        )


def _some(own: Sequence[Case], wrong: Collection[str]) -> Sequence[Case]:
    lengths = {len(each.ids) for each in own}
    short = [each for each in own if each.id in wrong and len(each.ids) <= MOST_TOKENS]
    shortest = min(short, key=_length, default=None)
    if len(lengths) == len(own) <= FEW:
        return own
    most = {max((n for n in lengths if n <= limit), default=0) for limit in (SHORT, LONG)}
    return [each for each in own if len(each.ids) in most or each is shortest]


def _behind(token: WrongToken) -> int:
    """The distance of a wrong token of `marker` from the marker; 0 for another instrument."""
    case = token.case
    if case.instrument != MARKER:
        return 0
    known = zip(case.reads, case.expected, strict=True)
    places = [at for at, answer in known if token.texts[answer] == HERE]
    return min((abs(token.position - at) for at in places), default=0)


def _length(case: Case) -> int:
    return len(case.ids)


def _answers(judged: Judgement) -> Mapping[int, int]:
    """The tokens of a judgement by their positions."""
    known = dict(zip(judged.case.reads, judged.case.expected, strict=True))
    wrong = {each.position: each.got for each in judged.wrong}
    read = [*known][len(known) - judged.positions :] if judged.positions < len(known) else [*known]
    return {at: wrong.get(at, known[at]) for at in read[: judged.positions - judged.not_run]}


def _pattern(rows: Sequence[tuple[int, int]], texts: Sequence[str]) -> _Pattern:
    """The pattern of pairs of a token and the right one."""
    pairs = [(a, b) for a, b in rows if a != b]
    numbers = [(_number(texts, a), _number(texts, b)) for a, b in pairs]
    changes = [a - b for a, b in numbers if a is not None and b is not None]
    return _Pattern(
        share=len(pairs) / len(rows),
        size=math.log10(max(median(map(abs, changes)), 1e-3)) if changes else 0.0,
        shift=fmean(math.copysign(1, each) for each in changes) if changes else 0.0,
    )


def _number(texts: Sequence[str], token: int) -> float | None:
    try:
        return float(texts[token])
    except (ValueError, IndexError):
        return None


def _distance(a: _Pattern, b: _Pattern) -> float:
    if not a.share or not b.share:
        return 2.0 if a.share or b.share else 0.0
    return abs(a.share - b.share) + abs(a.size - b.size) + abs(a.shift - b.shift) / 4
