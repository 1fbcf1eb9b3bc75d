"""Diagnosis: from the wrong tokens of an engine to at most two classes of faults, with evidence.

Prompts that are given alone, all tokens at once, need neither padding nor a cache that was filled
before. If answers are wrong there, the tokens are compared with those of known mistakes. Else the
fault lies in what the other modes add, and the modes and instruments that are wrong name it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from transformist.conformance.explanation import Explanation, Predictions
from transformist.conformance.faults import NamedFault
from transformist.conformance.judgement import Judgement, WrongToken
from transformist.conformance.modes import BATCHED, CHUNK, EVERY_MODE, GENERATION
from transformist.conformance.number_by_hand import IN_PLACE

# Planted bugs that are among the known mistakes agree in 70 % of wrong answers or more, but for two
# whose errors float32 magnifies. The other mistakes agree in at most 65 % of them.
KNOWN = 0.7
"""Least agreement with which a mistake counts as the mistake of the engine."""

BY_POSITION = ("place",)
"""Instruments that read positions alone."""

BY_MASK = ("count", "marker", "sort")
"""Instruments without positions, whose answers depend on the mask."""

OF_FORMULAS = ("norm", "activation", "depth", "heads")
"""Instruments that read a formula after the last token of a short prompt."""

AT_A_DISTANCE = ("offset", "recall")
"""Instruments whose answers depend on distances between positions, and on the cache."""

BY_BITS = "number"
"""The instrument that reads a number bit by bit."""


def diagnose(every: Sequence[Judgement], predictions: Predictions) -> tuple[NamedFault, ...]:
    """Name the classes of faults that explain wrong tokens; none if no token is wrong.

    Args:
        every: the judgements of a suite.
        predictions: the tokens that known mistakes give on this suite.

    """
    seen = _Seen(every, "window" in predictions.family.settings)
    if not seen.modes:
        return ()
    ran = {each.mode for each in every if each.not_run < each.positions}
    alone = next((each for each in ("alone", GENERATION) if each in ran), None)
    if alone is not None and alone not in seen.modes:
        found = seen.by_modes()
    else:
        mode = alone or next(iter(seen.wrong))
        own = predictions.explanations([each for each in every if each.mode == mode])
        # Without prompts alone, a mistake that does not fit may be one of the mode.
        found = _known(own, mode, seen) if alone else _fitting(own, mode)
    return tuple(NamedFault(fault=fault, evidence=words) for fault, words in found[:2])


def _fitting(found: Sequence[Explanation], mode: str) -> list[tuple[str, str]]:
    """The classes of the known mistakes that give the tokens of a mode."""
    best = max(found, key=lambda each: each.agreement, default=None)
    if best is None or best.agreement < KNOWN:
        return []
    # A rounding may change an answer of an instrument: one for each of them tells no two apart.
    tied = [each for each in found if each.agreement >= best.agreement - best.one_answer]
    tied.sort(key=lambda each: -each.agreement)
    return [(each.mistake.fault, _agreement(each, mode)) for each in _firsts(tied)]


def _known(found: Sequence[Explanation], mode: str, seen: _Seen) -> list[tuple[str, str]]:
    """The classes of the known mistakes that are nearest to the tokens of a mode."""
    return (
        _fitting(found, mode)
        or seen.few_bits()
        or seen.long_prompts(mode)
        or [
            (each.mistake.fault, f"no known mistake gives these tokens; {_agreement(each, mode)}")
            for each in _firsts(found)
        ]
    )


def _firsts(found: Sequence[Explanation]) -> list[Explanation]:
    """The first explanation of each class."""
    best: dict[str, Explanation] = {}
    for each in found:
        best.setdefault(each.mistake.fault, each)
    return [*best.values()]


def _agreement(found: Explanation, mode: str) -> str:
    return (
        f"{found.mistake.words}: {found.agreeing} of {found.compared} answers of {mode} that are "
        "wrong or would be by this mistake are those of the mistake"
    )


@dataclass(frozen=True)
class _Seen:
    """The wrong tokens of a suite, and the classes of faults that they point to.

    `has_windows` is true for a family with sliding windows: `marker` then has one.
    """

    every: Sequence[Judgement]
    has_windows: bool

    @cached_property
    def wrong(self) -> Mapping[str, Mapping[str, Sequence[WrongToken]]]:
        """The wrong tokens by mode and instrument."""
        found: dict[str, dict[str, list[WrongToken]]] = {}
        for each in self.every:
            for token in each.wrong:
                own = found.setdefault(each.mode, {})
                own.setdefault(each.case.instrument, []).append(token)
        return found

    @cached_property
    def modes(self) -> frozenset[str]:
        """The modes with wrong tokens."""
        return frozenset(self.wrong)

    def instruments(self, *modes: str) -> frozenset[str]:
        """The instruments with wrong tokens in some modes."""
        return frozenset(name for mode in modes for name in self.wrong.get(mode, {}))

    def has(self, instrument: str) -> bool:
        """True if the suite has an instrument."""
        return any(each.case.instrument == instrument for each in self.every)

    def long_prompts(self, mode: str) -> list[tuple[str, str]]:
        """Classes of faults that begin with a length of the prompt, not with a position in it."""
        own = [
            each
            for each in self.every
            if each.mode == mode and each.case.instrument not in OF_FORMULAS and each.positions > 1
        ]
        bad = [each for each in own if each.wrong]
        if not bad or self.instruments(mode) & {*OF_FORMULAS}:
            return []
        names = {each.case.instrument for each in bad}
        good = [each for each in own if not each.wrong and each.case.instrument in names]
        least = min(len(each.case.ids) for each in bad)
        shorter = [len(each.case.ids) for each in good if len(each.case.ids) < least]
        first, most = min(each.wrong[0].position for each in bad), max(shorter, default=0)
        if not first < most:
            return []
        words = (
            f"prompts of up to {most} tokens are right in {mode}, and in one of {least} tokens the "
            f"answer at position {first} is wrong"
        )
        if "count" in names:
            return [("window", words)]
        return [("contents of the cache", f"{words}; `count` is right"), ("window", words)]

    def by_modes(self) -> list[tuple[str, str]]:
        """Classes of faults that leave prompts in mode `alone` right."""
        padding = self._padding()
        if padding:
            return [("padding mask", padding)]
        rows = self._other_rows()
        if rows:
            return [("rows of a batch", rows)]
        bits = self.few_bits()
        if bits:
            return bits
        if not self.modes & {*BATCHED}:
            modes = ", ".join(each for each in EVERY_MODE if each in self.modes)
            words = f"prompts are right in one piece, and answers are wrong in {modes}"
            found = [("choice of tokens", words), ("contents of the cache", words)]
            # A prefix that was kept changes nothing but the cache.
            return found[::-1] if self.modes == {"prefix-cache"} else found
        if self.modes & {"left-padded", "right-padded"}:
            return self._in_batches()
        if "chunks" in self.modes and "decoding" in self.modes:
            return self._in_both()
        return self._in_pieces("chunks" if "chunks" in self.modes else "decoding")

    def _padding(self) -> str:
        """Evidence that attention counts padding; empty if there is none."""
        for mode in ("left-padded", "right-padded", "decoding"):
            tokens = self.wrong.get(mode, {}).get("count", ())
            if not tokens:
                continue
            width = self._width("count")
            pads = [each.got - each.expected == width - len(each.case.ids) for each in tokens]
            if sum(pads) > len(pads) / 2:
                return (
                    f"`count` is larger by the padding of the row in {sum(pads)} of {len(pads)} "
                    f"wrong answers of {mode}"
                )
        return ""

    def _width(self, instrument: str) -> int:
        """The width of a batch of an instrument."""
        return max(len(each.case.ids) for each in self.every if each.case.instrument == instrument)

    def _other_rows(self) -> str:
        """Evidence that rows of a left-padded batch have the answers of others; empty for none."""
        own = [
            each
            for each in self.every
            if each.mode == "left-padded" and each.case.instrument == "count"
        ]
        # Columns are counted from the end of the batch, where all rows have tokens.
        right = [
            {at - len(each.case.ids): token for at, token in _known_tokens(each)} for each in own
        ]
        for step in range(1, len(own)):
            triples = [
                (token.got, right[row - step].get(at), len(own[row - step].case.ids) - length)
                for row, each in enumerate(own)
                for length in [len(each.case.ids)]
                for token in each.wrong
                for at in [token.position - length]
            ]
            # A row that is shorter has no token in the first columns of a longer one.
            shared = [(got == known, shift) for got, known, shift in triples if known is not None]
            # Where all rows differ in length by the same number from the row before, a count that
            # is wrong by this number is the right one of that row as well.
            if len({shift for _, shift in shared}) > 1 and all(equal for equal, _ in shared):
                return (
                    f"{len(shared)} wrong answers of `count` in left-padded are the right ones of "
                    f"the row {step} before, at the same column"
                )
        return ""

    def few_bits(self) -> list[tuple[str, str]]:
        """Classes of faults that leave count and marker right, and change a number in the cache."""
        tokens = [each for own in self.wrong.values() for each in own.get(BY_BITS, ())]
        if not tokens or self.instruments(*self.modes) & {*BY_MASK, *BY_POSITION}:
            return []
        if any(each.meaning.startswith(IN_PLACE) for each in tokens):
            return []
        modes = [each for each in EVERY_MODE if BY_BITS in self.wrong.get(each, {})]
        found = [
            (
                "format of the cache",
                f"`{BY_BITS}` is right in place, and from the cache wrong in {', '.join(modes)}: "
                f"{tokens[0].meaning}",
            )
        ]
        # A lost number is wrong from its first bit on, as one of few bits is.
        if any("float16" in each.case.formats for each in tokens):
            found.append(("contents of the cache", found[0][1]))
        return found

    def _in_batches(self) -> list[tuple[str, str]]:
        own = self.instruments("left-padded", "right-padded")
        modes = ", ".join(each for each in ("left-padded", "right-padded") if each in self.modes)
        shown = f"prompts alone are right, and {_names(own)} wrong in {modes}"
        if own & {*BY_MASK}:
            return [("padding mask", shown), ("rows of a batch", shown)]
        if own & {*BY_POSITION} or not self.has("place"):
            return [("positions of a batch", f"{shown}; `count`, `marker` and `sort` are right")]
        return [("padding mask", shown), ("positions of a batch", shown)]

    def _in_pieces(self, mode: str) -> list[tuple[str, str]]:
        """Classes of faults of chunks alone, or of decoding alone."""
        own = self.instruments(mode)
        shown = f"all other prefill is right, and {_names(own)} wrong in {mode}"
        is_chunk = mode == "chunks"
        by_place = BY_POSITION if self.has("place") else AT_A_DISTANCE
        of_places = next((each for each in by_place if each in own), None)
        if of_places and not own & {*BY_MASK}:
            first = self.wrong[mode][of_places][0]
            words = f"`{of_places}` answers {first.text} at position {first.position} in {mode}"
            if is_chunk and first.position % CHUNK == 0:
                words += ", where a chunk begins"
            return [("positions of a chunk" if is_chunk else "positions in decoding", words)]
        if self.has_windows and "marker" in own and "count" not in own:
            words = f"{shown}; `count`, which has no window, is right"
            return [("window", words)]
        if is_chunk and own & {*BY_MASK}:
            return [("mask over the cache", shown)]
        if not is_chunk and own & {*BY_MASK}:
            return self._in_decoding(shown)
        fault = "positions of a chunk" if is_chunk else "positions in decoding"
        if own - {*OF_FORMULAS}:
            return [("contents of the cache", shown), (fault, shown)]
        return [(fault, f"{shown}; the others are right")]

    def _in_decoding(self, shown: str) -> list[tuple[str, str]]:
        own = self.instruments("decoding")
        tokens = [each for name in BY_MASK for each in self.wrong["decoding"].get(name, ())]
        first = min(each.position for each in tokens)
        read = [
            at
            for each in self.every
            if each.mode == "decoding" and each.case.instrument == "count"
            for at in each.case.reads[-4:]
        ]
        if any(at < first for at in read) and not own & {*OF_FORMULAS}:
            words = f"{shown}; the answers at positions below {first} are right"
            return [("window", words)]
        return [("contents of the cache", shown)]

    def _in_both(self) -> list[tuple[str, str]]:
        """Classes of faults of chunks and of decoding."""
        own = self.instruments("chunks", "decoding")
        shown = f"prefill in one piece is right, and {_names(own)} wrong in chunks and in decoding"
        if GENERATION in self.modes:
            return [("contents of the cache", f"{shown}; generation of one row is wrong")]
        if self.has_windows and "marker" in own and "count" not in own:
            return [("window", f"{shown}; `count`, which has no window, is right")]
        if own & {*BY_MASK}:
            return [("rows of a batch", f"{shown}; generation of one row is right")]
        if own & {*BY_POSITION}:
            return [("positions of a batch", f"{shown}; `count`, `marker` and `sort` are right")]
        if own - {*OF_FORMULAS, *AT_A_DISTANCE} or self.has("place"):
            return [("contents of the cache", shown)]
        words = f"{shown}; instruments without positions are right"
        return [("positions of a batch", words), ("contents of the cache", words)]


def _known_tokens(judged: Judgement) -> Iterable[tuple[int, int]]:
    return zip(judged.case.reads, judged.case.expected, strict=True)


def _names(instruments: frozenset[str]) -> str:
    names = sorted(instruments)
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
