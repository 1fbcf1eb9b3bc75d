"""Diagnosis: why a model's answer in a format differs from its exact answer."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.arithmetic import FORMATS, Arithmetic, Floating, is_whole, number_system
from transformist.errors import InvalidValue, NotFinite
from transformist.model import NOTHING, Symbol, Transformer, require_transformer
from transformist.verify.diagnosis.classifying import classify
from transformist.verify.diagnosis.comparing import RowNumbers, SideBySide
from transformist.verify.diagnosis.failing_inputs import LONGEST, failing_input
from transformist.verify.diagnosis.remedies import Build, Remedy, remedies
from transformist.verify.diagnosis.signatures import Overflow, Signature
from transformist.verify.diagnosis.stepwise import Stepwise, ideal_run, steps_of

MAX_STRINGS = 2**16
"""Default limit on the strings of a search; no search of a packaged program has as many."""

LINKS = 3
"""Most numbers of one step in a chain."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A number of the run in a format, beside the exact one.

    Attributes:
        stream: the number of the stream, 0 being the embedding, or one more than the last for a
            value that is read out.
        after: the step that wrote it: `embedding`, a sublayer, `final norm` or `read-out`.
        layer: the layer of this step, if it is in one.
        slot: what the coordinate holds there.
        coordinate: its number.
        position: of the input, from 1; 0 is BOS.
        row: specials included; of values that are read out, which of them.
        got: the number in the format; `None` where an overflow left none.
        exact: the number without rounding.

    """

    stream: int
    after: str
    layer: int | None
    slot: str
    coordinate: int
    position: int
    row: int
    got: float | None
    exact: Fraction | float


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Reason why an answer in a format differs from the exact one.

    Attributes:
        input: the symbols.
        arithmetic: the format.
        max_length: N of the model.
        answer: the answer in the format; `None` where the format gives none.
        exact: the answer of the weights without rounding, with average-hard attention for softmax.
        wrong_position: the first position whose answer is wrong; `None` where the model reads out
            one position, or where none of its answers is wrong.
        signature: the kind of failure, with its numbers; `None` where the input does not fail.
        first: the first numbers that, restored to their exact values, restore the answer at that
            position; mostly one. Empty if a weight or a feature of a position is too large for the
            format.
        origin: the number in which the signature shows: the first of these, or one that made it.
        chain: `first`, and of each later step the numbers that change most once `first` is
            restored; `origin` alone where `first` is empty.
        remedies: changes of one number with which the whole answer is right.

    """

    input: tuple[Symbol, ...]
    arithmetic: str
    max_length: int | None
    answer: Any
    exact: Any
    wrong_position: int | None = None
    signature: Signature | None = None
    first: tuple[Link, ...] = ()
    origin: Link | None = None
    chain: tuple[Link, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def fails(self) -> bool:
        """True if the format gives another answer, or none."""
        return self.signature is not None


def diagnose(
    model: Transformer,
    x: Sequence[Symbol] | None = None,
    arithmetic: Arithmetic | str | None = None,
    build: Build | None = None,
    *,
    max_strings: int = MAX_STRINGS,
    seed: int = 0,
) -> Diagnosis:
    """Find out why a model's answer in a format differs from its exact answer.

    The run in the format is compared, number by number, with the weights in exact arithmetic, where
    average-hard attention takes the place of softmax.

    Args:
        model: the transformer.
        x: a string, or a sequence of symbols; when left out, a failing one is searched for.
        arithmetic: a float format; when left out, the widest in which x fails, or the narrowest if
            x fails in none. Without x, the first of `SEARCHED` in which an input fails.
        build: returns the model for another N, so that a smaller N can be a remedy.
        max_strings: most strings that are compared where x is searched for.
        seed: of the strings that the search draws.

    Raises:
        InvalidValue: for an arithmetic that is no float format, a model whose answers are not right
            or wrong or that has no exact run, a search that finds no failing input, or a number of
            strings below 1.
        UnknownSymbol, InputTooLong, InputTooLarge: as `Transformer.run`.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["reverse"], max_length=17, arithmetic="exact")
        >>> found = tf.diagnose(model, "ab" * 8 + "a", "bfloat16")
        >>> found.signature.name, found.signature.head, found.first[0].position
        ('retrieval blends positions', 0, 2)
        >>> found.remedies
        (Remedy(kind='arithmetic', value='float16', head=None),)

    """
    require_transformer(model, "diagnose")
    if x is None:
        found = first_failing(
            lambda _: model,
            [model.max_length or LONGEST],
            arithmetic,
            max_strings=max_strings,
            seed=seed,
        )
        if found.failing is None:
            raise InvalidValue(
                "the search must find an input on which the model fails, where none is given",
                received=f"a model on which it found none: {found}",
                where="diagnose",
                remedy="give an input, a narrower format, or a model for a larger N"
                + ", or a larger max_strings" * found.is_limited,
            )
        _, x, arithmetic = found.failing
    # `FORMATS` begins with the widest, so the first that fails is the widest that does.
    formats = list(FORMATS) if arithmetic is None else [_format(arithmetic)]
    diagnosis = None
    for a in formats:
        diagnosis = _diagnosed(model, x, a, build)
        if diagnosis.fails:
            break
    assert diagnosis is not None
    return diagnosis


def _format(arithmetic: Arithmetic | str) -> Floating:
    system = number_system(arithmetic)
    if isinstance(system, Floating):
        return system
    raise InvalidValue(
        "the run that is compared with the exact one must be in a float format",
        received=system.name,
        where="diagnose",
        remedy="choose one such as bfloat16",
    )


SEARCHED = ("bfloat16", "float16", "float32", "float64")
"""Formats in which a failing input is searched for, one after the other, where none is given."""


@dataclass(frozen=True, kw_only=True)
class Searched:
    """Result of a search for an input that fails.

    Attributes:
        failing: the model, the input and the name of the format; `None` where none was found.
        strings: number of strings compared, those of each format and each N counted.
        longest: length of the longest of these.
        formats: names of the formats searched.
        lengths: N of each model that was searched; `None` for one that has no N.
        is_limited: True if the limit of strings ended the search.
        seed: of the drawn strings.

    """

    failing: tuple[Transformer, Sequence[Symbol], str] | None
    strings: int
    longest: int
    formats: tuple[str, ...]
    lengths: tuple[int | None, ...]
    is_limited: bool
    seed: int

    def __str__(self) -> str:
        text = f"{self.strings:,} strings to length {self.longest}, not all of each length"
        text += f", were compared in {', '.join(self.formats)} (seed {self.seed})"
        return text + ", where the limit of strings ended the search" * self.is_limited


def first_failing(
    build: Build,
    lengths: Sequence[int],
    arithmetic: Arithmetic | str | None = None,
    *,
    max_strings: int = MAX_STRINGS,
    seed: int = 0,
) -> Searched:
    """Search models of increasing N for an input that fails.

    Args:
        build: returns the model for an N.
        lengths: each N that is tried.
        arithmetic: a float format; when left out, the formats of `SEARCHED` in turn.
        max_strings: most strings that are compared in all.
        seed: of the drawn strings.

    Raises:
        InvalidValue: for an arithmetic that is no float format, a number of strings below 1, or a
            seed below 0.

    """
    for name, value, least in (("max_strings", max_strings, 1), ("seed", seed, 0)):
        if not is_whole(value, least):
            raise InvalidValue(
                f"{name} must be a whole number of at least {least}",
                received=f"{value!r:.40}",
                where="diagnose",
                remedy=f"give {name}={MAX_STRINGS if least else 0}, or leave it out",
            )
    strings = longest = 0
    formats: list[str] = []
    tried: list[int | None] = []
    failing = None
    systems = [_format(each) for each in (SEARCHED if arithmetic is None else [arithmetic])]
    for a, length in itertools.product(systems, lengths):
        if failing is not None or strings == max_strings:
            break
        model = build(length)
        found = failing_input(model, a, max_strings - strings, seed)
        strings, longest = strings + found.strings, max(longest, found.longest)
        formats += [a.name] * (a.name not in formats)
        tried += [model.max_length] * (model.max_length not in tried)
        if found.failing is not None:
            failing = model, found.failing, a.name
    return Searched(
        failing=failing,
        strings=strings,
        longest=longest,
        formats=tuple(formats),
        lengths=tuple(tried),
        is_limited=failing is None and strings == max_strings,
        seed=seed,
    )


def _diagnosed(
    model: Transformer, x: Sequence[Symbol], a: Floating, build: Build | None
) -> Diagnosis:
    try:
        run = SideBySide(model, x, a)
    except NotFinite:
        return _unfit(model, x, a, build)
    known = {
        "input": tuple(x),
        "arithmetic": a.name,
        "max_length": model.max_length,
        "answer": run.answer,
        "exact": run.right,
    }
    if not run.fails:
        return Diagnosis(**known)
    numbers = run.restoring()
    found = classify(run, numbers.stream, numbers.row, numbers.slots[0])
    # The numbers that are read out may not restore the answer (`restoring`): they are then no link
    # of the chain, which has the origin alone.
    decides = run.wrong is None or run.restores(numbers.stream, [numbers.row], numbers.slots)
    place = None
    if model.read_out.reads_several and run.wrong is not None:
        place = run.format.position(len(run.streams) - 1, run.wrong)
    return Diagnosis(
        **known,
        wrong_position=place,
        signature=found.signature,
        first=tuple(_links(run, numbers)) if decides else (),
        origin=next(_links(run, found.origin)),
        chain=tuple(_chain(run, numbers) if decides else _links(run, found.origin)),
        remedies=remedies(model, x, a, known["exact"], found.signature, build),
    )


def _links(run: SideBySide, numbers: RowNumbers) -> Iterator[Link]:
    stream, row = numbers.stream, numbers.row
    for slot in numbers.slots:
        got = float(run.got(stream, slot)[row])
        yield Link(
            stream=stream,
            after=run.format.names[stream],
            layer=run.format.layer(stream),
            slot=run.format.held(stream, slot),
            coordinate=slot,
            position=run.format.position(stream, row),
            row=row,
            got=got if np.isfinite(got) else None,
            exact=run.exactly(stream, row, slot),
        )


def _chain(run: SideBySide, numbers: RowNumbers) -> Iterator[Link]:
    """The first numbers, and of each later step those that change most once they are restored."""
    yield from _links(run, numbers)
    restored = run.restored(numbers.stream, [numbers.row], numbers.slots)
    for stream in range(numbers.stream + 1, len(run.streams)):
        before, after = (
            np.asarray(run.arithmetic.numbers(z), dtype=float)
            for z in (run.streams[stream], restored[stream - numbers.stream])
        )
        # Where both are the same there is no change, infinite ones too; NaN is the largest one.
        with np.errstate(invalid="ignore"):
            moved = np.nan_to_num(abs(before - after), nan=np.inf)
        change = np.where(before == after, 0, moved)
        if stream == len(run.streams) - 1 and run.wrong is not None:
            change = np.where(np.arange(len(change))[:, None] == run.wrong, change, 0)
        rows = change.argmax(axis=0)
        largest = change.max(axis=0)
        moved_slots = [int(each) for each in np.argsort(-largest, kind="stable") if largest[each]]
        # No sublayer reads a slot that holds nothing.
        read = (each for each in moved_slots if run.format.held(stream, each) != NOTHING)
        for slot in itertools.islice(read, LINKS):
            yield from _links(run, RowNumbers(stream, int(rows[slot]), (slot,)))


def _unfit(model: Transformer, x: Sequence[Symbol], a: Floating, build: Build | None) -> Diagnosis:
    """The diagnosis where a feature of a position or a weight is too large for the format."""
    found = ideal_run(model, x)
    ideal, exact, answer = found.stepwise, found.numbers, found.answer
    embedded = np.asarray(ideal.arithmetic.numbers(exact[0]), dtype=float)
    origin = None
    if (abs(embedded) > a.largest).any():
        row, slot = map(int, np.argwhere(abs(embedded) > a.largest)[0])
        origin = _of_ideal(ideal, row, slot, ideal.arithmetic.numbers(exact[0])[row, slot])
        signature = Overflow(of=origin.slot, value=float(embedded[row, slot]), largest=a.largest)
    else:
        of, value = _largest_weight(model)
        signature = Overflow(of=of, value=value, largest=a.largest)
    return Diagnosis(
        input=tuple(x),
        arithmetic=a.name,
        max_length=model.max_length,
        answer=None,
        exact=answer,
        signature=signature,
        origin=origin,
        chain=() if origin is None else (origin,),
        remedies=remedies(model, x, a, answer, signature, build),
    )


def _of_ideal(ideal: Stepwise, row: int, slot: int, exact: Any) -> Link:
    """A number of the embedding that the format does not have."""
    return Link(
        stream=0,
        after="embedding",
        layer=None,
        slot=ideal.held(0, slot),
        coordinate=slot,
        position=ideal.position(0, row),
        row=row,
        got=None,
        exact=exact,
    )


def _largest_weight(model: Transformer) -> tuple[str, float]:
    """The largest weight of the model, and where it is."""
    parts: list[tuple[str, Any]] = [("embedding", model.embedding), ("read-out", model.read_out)]
    for step in steps_of(model):
        function = getattr(step.function, "function", step.function)
        parts += [(step.name, each) for each in getattr(function, "heads", (function,))]
    found = [
        (float(np.max(np.abs(np.asarray(getattr(part, each.name), dtype=float)))), name, each.name)
        for name, part in parts
        for each in dataclasses.fields(part)
        if each.metadata.get("weights") and getattr(part, each.name) is not None
    ]
    value, name, weight = max(found)
    return f"weight of {name}, in {weight}", value
