"""Suites given to engines: every instrument in every mode."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from transformist.conformance.case import Case
from transformist.conformance.judgement import Judgement, Judgements, WrongToken
from transformist.conformance.modes import (
    BATCHED,
    GENERATION,
    MODES,
    Answer,
    Greedy,
    batches,
    generation,
    in_words,
)
from transformist.conformance.suite_files import FAMILIES, LENGTH, cases, read_manifest, write
from transformist.errors import InvalidValue, UnknownName, is_name

_log = logging.getLogger(__name__)


def run(
    engine: Callable[[Path], Any],
    directory: str | os.PathLike[str] | None = None,
    *,
    family: str | None = None,
    length: int = LENGTH,
    mode: str | None = None,
) -> Judgements:
    """Give a suite to an engine, and compare its tokens with the known answers.

    The engine is a function from the directory of a checkpoint to a function
    `run(ids, max_new_tokens) -> ids`, which returns the new greedy tokens alone, or to an object
    with a method of this name. The mode `generation` needs no more. An object that also has a
    method `next_tokens(ids, mask, ends)` is given batches as well, in all other modes:
    `transformist.conformance.modes.Batched` describes it.

    An error of the engine ends nothing: the answers that it prevents count as not run, with the
    words of the error, and never as right.

    Args:
        engine: the function that opens a checkpoint.
        directory: the suite; when left out, it is written to a temporary directory.
        family: the family of the suite; when left out, that of the directory, or `gpt2`.
        length: the longest input of a suite that is written, in tokens.
        mode: one mode; when left out, all that the engine has.

    Returns:
        A judgement of each case in each mode.

    Raises:
        UnknownName: for an unknown family or mode.
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
    if mode is not None and not is_name(mode, MODES):
        raise UnknownName.among("mode", mode, MODES, "conformance")
    if family is not None and not is_name(family, FAMILIES):
        raise UnknownName.among("family", family, FAMILIES, "conformance")
    if directory is None:
        with TemporaryDirectory() as made:
            suite = Path(made) / "suite"
            write(suite, family or FAMILIES[0], length)
            return _run(engine, suite, mode)
    own = read_manifest(directory)["family"]
    if family not in (None, own):
        raise InvalidValue(
            "the family must be that of the suite",
            received=f"{family} for {directory}, a suite of {own}",
            where="conformance",
            remedy=f"leave it out, or write a suite of {family}",
        )
    return _run(engine, directory, mode)


def _run(
    engine: Callable[[Path], Any], directory: str | os.PathLike[str], mode: str | None
) -> Judgements:
    by_instrument: dict[str, list[Case]] = {}
    for case in cases(directory):
        by_instrument.setdefault(case.instrument, []).append(case)
    every = [
        judgement
        for name, own in by_instrument.items()
        for judgement in _judged(engine, name, own, mode)
    ]
    return Judgements(family=read_manifest(directory)["family"], every=tuple(every))


def _judged(
    engine: Callable[[Path], Any], name: str, own: Sequence[Case], mode: str | None
) -> list[Judgement]:
    """The judgements of an instrument, mode by mode."""
    texts = _texts(own[0].checkpoint)
    _log.info("%s: opening the checkpoint", name)
    try:
        opened = engine(own[0].checkpoint)
    except Exception as error:
        # Without the object nobody knows which modes it would have had: one row says that the
        # instrument did not run.
        answers: list[Answer] = [(each.reads, (), in_words(error)) for each in own]
        return _compared(mode or "opening", own, answers, texts)
    greedy = getattr(opened, "run", opened)
    if not callable(greedy):
        raise _no_engine("a function that gives run(ids, max_new_tokens) or such an object", opened)
    has_batches = callable(getattr(opened, "next_tokens", None))
    if mode in BATCHED and not has_batches:
        raise InvalidValue(
            f"an engine must have next_tokens(ids, mask, ends) for the mode {mode}",
            received=f"{opened!r:.60}",
            where="conformance",
            remedy=f"add this method, or choose the mode {GENERATION}",
        )
    chosen = [
        each for each in MODES if mode in (None, each) and (has_batches or each == GENERATION)
    ]
    found: list[Judgement] = []
    for each in chosen:
        _log.info("%s: %s", name, each)
        if each == GENERATION:
            answers = [generation(cast(Greedy, greedy), case) for case in own]
        else:
            answers = batches(each, opened, own)
        found += _compared(each, own, answers, texts)
    return found


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
    """The text of each token of a checkpoint."""
    vocabulary = json.loads((checkpoint / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    return tuple(sorted(vocabulary, key=vocabulary.__getitem__))


def _no_engine(wanted: str, received: object) -> InvalidValue:
    return InvalidValue(
        f"an engine must be {wanted}",
        received=f"{received!r:.60}, a {type(received).__name__}",
        where="conformance",
        remedy="give a function that opens a checkpoint and returns run(ids, max_new_tokens)",
    )
