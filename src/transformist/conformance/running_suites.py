"""Suites given to engines: every instrument in every mode."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transformist.conformance.case import Case
from transformist.conformance.explanation import Predictions
from transformist.conformance.families import FAMILIES
from transformist.conformance.family import Family
from transformist.conformance.fault_diagnosis import diagnose
from transformist.conformance.judgement import Judgement, Judgements, WrongToken
from transformist.conformance.modes import (
    BATCHED,
    EVERY_MODE,
    GENERATION,
    OF_ENCODERS,
    Answer,
    Greedy,
    batches,
    generation,
    in_words,
)
from transformist.conformance.network_files import labels_of
from transformist.conformance.rounding_margins import FORMATS
from transformist.conformance.suite_files import (
    FAMILY,
    LENGTH,
    MANIFEST,
    cases,
    read_manifest,
    write,
)
from transformist.errors import InvalidValue, UnknownName, is_name

_log = logging.getLogger(__name__)


def run(
    engine: Callable[[Path], Any],
    directory: str | os.PathLike[str] | None = None,
    *,
    family: str | None = None,
    length: int = LENGTH,
    mode: str | None = None,
    instrument: str | None = None,
    number_format: str = "float32",
) -> Judgements:
    """Give a suite to an engine, and compare its tokens with the known answers.

    The engine is a function from the directory of a checkpoint to a function
    `run(ids, max_new_tokens) -> ids`, which returns the new greedy tokens alone, or to an object
    with a method of this name. The mode `generation` needs no more. An object that also has a
    method `next_tokens(ids, mask, ends)` is given batches as well, in all other modes:
    `transformist.conformance.modes.Batched` describes it; the attribute `modes` names those modes
    that it has, if it has not all. The attribute `generations` has further functions as `run`, by
    the names of their modes (`beams`, `static-cache`, `prompt-lookup`, `prefix-cache`). The
    attribute `notes`, an iterable of texts, is kept: what the engine noticed beside the tokens.

    An error of the engine ends nothing: the answers that it prevents count as not run, with the
    words of the error, and never as right.

    Args:
        engine: the function that opens a checkpoint.
        directory: the suite; when left out, it is written to a temporary directory.
        family: the family of the suite; when left out, that of the directory, or `gpt2`.
        length: the longest input of a suite that is written, in tokens.
        mode: one mode; when left out, all that the engine has.
        instrument: one instrument; when left out, all.
        number_format: the format in which the engine computes: prompts whose answers need not hold
            in it are left out.

    Returns:
        A judgement of each case in each mode, and the diagnosis of wrong tokens.

    Raises:
        UnknownName: for an unknown family, mode, instrument or number format.
        InvalidValue: for a directory that is no suite or of another family, or an engine without
            these methods.

    Example:
        >>> from transformist.conformance import run
        >>> found = run(my_engine, "suite")  # doctest: +SKIP
        >>> found.is_right, found.wrong, found.not_run  # doctest: +SKIP
        (True, 0, 0)

    """
    if not callable(engine):
        raise _no_engine("a function from the directory of a checkpoint", engine)
    if mode is not None and not is_name(mode, EVERY_MODE):
        raise UnknownName.among("mode", mode, EVERY_MODE, "conformance")
    if family is not None and not is_name(family, FAMILIES):
        raise UnknownName.among("family", family, FAMILIES, "conformance")
    if not is_name(number_format, FORMATS):
        raise UnknownName.among("format", number_format, FORMATS, "conformance")
    if directory is None:
        with TemporaryDirectory() as made:
            suite = Path(made) / "suite"
            write(suite, family or FAMILY, length)
            return _run(engine, suite, mode, instrument, number_format)
    own = read_manifest(directory)["family"]
    if family not in (None, own):
        raise InvalidValue(
            "the family must be that of the suite",
            received=f"{family} for {directory}, a suite of {own}",
            where="conformance",
            remedy=f"leave it out, or write a suite of {family}",
        )
    return _run(engine, Path(directory), mode, instrument, number_format)


def _run(
    engine: Callable[[Path], Any],
    directory: Path,
    mode: str | None,
    instrument: str | None,
    number_format: str,
) -> Judgements:
    family = FAMILIES[read_manifest(directory)["family"]]
    by_instrument: dict[str, list[Case]] = {}
    for case in cases(directory):
        own = by_instrument.setdefault(case.instrument, [])
        if number_format in case.formats:
            own.append(case)
    if instrument is not None and not is_name(instrument, by_instrument):
        raise UnknownName.among("instrument", instrument, [*by_instrument], "conformance")
    every: list[Judgement] = []
    notes: list[str] = []
    for name, own in by_instrument.items():
        if own and instrument in (None, name):
            judged, noted = _judged(engine, name, own, mode, family)
            every += judged
            notes += [f"{name}: {each}" for each in noted]
    return Judgements(
        family=family.name,
        every=tuple(every),
        diagnosis=diagnose(every, predictions_of(directory)),
        notes=tuple(notes),
    )


def predictions_of(directory: Path) -> Predictions:
    """The tokens that known mistakes give on a suite, kept for the next run on it."""
    return _predictions(directory, directory.joinpath(MANIFEST).read_bytes())


@lru_cache(maxsize=8)
def _predictions(directory: Path, _manifest: bytes) -> Predictions:
    """The predictions for a suite; its manifest has the hashes of all files."""
    return Predictions(cases(directory))


def _judged(
    engine: Callable[[Path], Any],
    name: str,
    own: Sequence[Case],
    mode: str | None,
    family: Family,
) -> tuple[list[Judgement], Sequence[str]]:
    """The judgements of an instrument, mode by mode, and what the engine noted beside them."""
    texts = _texts(own[0].checkpoint)
    _log.info("%s: opening the checkpoint", name)
    try:
        opened = engine(own[0].checkpoint)
    except Exception as error:
        # Without the object nobody knows which modes it would have had: one row says that the
        # instrument did not run.
        answers: list[Answer] = [(each.reads, (), in_words(error)) for each in own]
        return _compared(mode or "opening", own, answers, texts), ()
    ways = _generations(opened) if family.generates else {}
    has_batches = callable(getattr(opened, "next_tokens", None))
    if not family.generates and not has_batches:
        raise _no_engine(
            f"an object with next_tokens(ids, mask, ends): {family.title} generates nothing",
            opened,
            "such an object",
        )
    batched = [
        each
        for each in getattr(opened, "modes", BATCHED)
        if has_batches and (family.generates or each in OF_ENCODERS)
    ]
    chosen = [each for each in (*batched, *ways) if mode in (None, each)]
    if not chosen:
        raise InvalidValue(
            f"an engine must have the mode {mode}",
            received=f"an engine of {family.title} with {', '.join([*batched, *ways])}",
            where="conformance",
            remedy=f"choose one of these, or give it {_needed(mode)}",
        )
    found: list[Judgement] = []
    for each in chosen:
        _log.info("%s: %s", name, each)
        if each in BATCHED:
            answers = batches(each, opened, own)
        else:
            answers = [generation(ways[each], case) for case in own]
        found += _compared(each, own, answers, texts)
    return found, [*getattr(opened, "notes", ())]


def _generations(opened: Any) -> Mapping[str, Greedy]:
    """The ways of generation of an engine, by their modes."""
    greedy = getattr(opened, "run", opened)
    if not callable(greedy):
        raise _no_engine("a function that gives run(ids, max_new_tokens) or such an object", opened)
    return {GENERATION: greedy, **getattr(opened, "generations", {})}


def _needed(mode: str | None) -> str:
    """What an engine needs for a mode."""
    return "next_tokens(ids, mask, ends)" if mode in BATCHED else f"generations[{mode!r}]"


def _compared(
    mode: str, own: Sequence[Case], answers: Sequence[Answer], texts: Sequence[str]
) -> list[Judgement]:
    return [
        _judgement(mode, case, answer, texts) for case, answer in zip(own, answers, strict=True)
    ]


def _judgement(mode: str, case: Case, answer: Answer, texts: Sequence[str]) -> Judgement:
    """The judgement of one case: the tokens of an answer beside those that are known."""
    reads, tokens, reason = answer
    known = dict(zip(case.reads, case.expected, strict=True))
    wrong = tuple(
        WrongToken(case=case, position=at, expected=known[at], got=got, texts=texts)
        for at, got in zip(reads, tokens, strict=False)
        if got != known[at]
    )
    return Judgement(
        case=case,
        mode=mode,
        positions=len(reads),
        wrong=wrong,
        not_run=len(reads) - len(tokens),
        reason=reason,
    )


def _texts(checkpoint: Path) -> tuple[str, ...]:
    """The text of each answer of a checkpoint: its tokens, or the labels of an encoder."""
    labels = labels_of((checkpoint / "config.json").read_bytes())
    if labels:
        return labels
    vocabulary = json.loads((checkpoint / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    return tuple(sorted(vocabulary, key=vocabulary.__getitem__))


def _no_engine(
    wanted: str, received: object, returned: str = "run(ids, max_new_tokens)"
) -> InvalidValue:
    return InvalidValue(
        f"an engine must be {wanted}",
        received=f"{received!r:.60}, a {type(received).__name__}",
        where="conformance",
        remedy=f"give a function that opens a checkpoint and returns {returned}",
    )
