"""Check of a transformer against a function: every string up to a length, and drawn ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from transformist.arithmetic import Arithmetic, is_whole, number_system
from transformist.claims import Model, Recipe, StringClaim, ask
from transformist.errors import InvalidValue
from transformist.model import Transformer
from transformist.verify.claim_kinds import check_model, check_recipe
from transformist.verify.comparison import lengths_in_words, shortest_input
from transformist.verify.feasible import DEFAULT_LENGTH, require_feasible, sample
from transformist.verify.runs.execution import Executed, Progress, Subject, execute, in_turn
from transformist.verify.runs.fingerprint import fingerprint
from transformist.verify.runs.journal import opened
from transformist.verify.runs.pieces import pieces
from transformist.verify.runs.processes import VERSION, Workers, is_named
from transformist.verify.runs.shrinking import shrunk
from transformist.verify.verdict import Coverage, Drawn, Trial, Verdict, verdict_of

LONGEST_DRAWN = 100
"""Length of the longest drawn strings where none is given, if the model takes them."""


def check(
    model: Transformer | Model | Recipe[Any],
    reference: Callable[[Any], Any] | Recipe[Any] | None = None,
    max_length: int | None = None,
    arithmetic: Arithmetic | str = "float64",
    *,
    drawn: Drawn | int = 0,
    journal: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    backend: Any = None,
    address: str | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Verdict:
    """Compare a model with a function on every string up to a length, and on drawn strings.

    A recipe is checked against its claim, and so is a model that is given with a recipe.

    Args:
        model: the transformer; or a recipe; or with a recipe as the reference, a model of the kind
            that the recipe builds, with the default settings.
        reference: returns the right answer on a string; or a recipe.
        max_length: length of the longest strings; 14, or the length the model is built for where
            that is less, when left out.
        arithmetic: the number system to evaluate in.
        drawn: strings tried after these: their number, for lengths up to 100 (or N where that is
            less), or a `Drawn`.
        journal: a file that records what is finished. The same check goes on from there when it is
            called again.
        jobs: number of processes. If only `backend` is given, one for each processor or worker; if
            neither is, the check runs in this process.
        backend: a backend as `joblib.parallel_config` takes it: "loky" (processes of this machine),
            "dask", "ray", or an object.
        address: of the scheduler of Dask or Ray.
        progress: called after each piece of the check.

    Raises:
        InvalidValue: for a length below 0 or beyond what is feasible, a reference that raises, or a
            journal of another check.
        UnreadableInput: for a file that is no journal.
        InputTooLong: for a length beyond N.
        Undecided: where the balls of `interval` are too wide to say whether a claim holds.

    Example:
        >>> import transformist as tf
        >>> tf.check(tf.recipe("dyck-1").build(), lambda x: x == "", max_length=3).counterexample
        Counterexample(input='()', expected=False, got=True, arithmetic='float64', settings='')
        >>> tf.check(tf.recipe("min").build(), tf.recipe("min")).held
        True

    """
    if Recipe in (type(model), type(reference)) and not isinstance(model, Transformer):
        given = {"drawn": drawn, "journal": journal}
        given |= {"jobs": jobs, "backend": backend, "address": address}
        return _check_claim(model, reference, max_length, arithmetic, given)
    model, reference = _compared(model, reference)
    if max_length is None:
        max_length = min(DEFAULT_LENGTH, model.max_length or DEFAULT_LENGTH)
    symbols, shortest = len(model.alphabet), shortest_input(model)
    system = number_system(arithmetic)
    require_feasible(
        max_length, symbols, journal is not None, lambda: sample(model, reference, system)
    )
    draws = _draws(drawn, model)
    every = (shortest, max_length) if shortest <= max_length else None
    if every is None and draws is None:
        raise InvalidValue(
            f"max_length must be at least {shortest}, the length of the model's shortest input",
            received=str(max_length),
            where="check",
            remedy=f"give a length of at least {shortest}, or draw strings",
        )
    subject = Subject(model, reference, system)
    parts = list(pieces(symbols, shortest, max_length, draws))
    with ExitStack() as stack:
        record = None
        if journal is not None:
            run = _run(subject, max_length, draws)
            record = stack.enter_context(opened(Path(journal), run))
        spread = in_turn
        if jobs not in (None, 1) or backend is not None or address is not None:
            spread = Workers(jobs, backend, address).spread
        found = execute(subject, parts, record, spread, progress)
    covered = [f"every string {lengths_in_words(*every)}"] if every else []
    covered += [str(draws)] if draws else []
    return _verdict(subject, found, every, draws, ", ".join(covered))


def _compared(model: Any, reference: Any) -> tuple[Transformer, Callable[[Any], Any]]:
    """The transformer and the function with which it is compared."""
    is_transformer = isinstance(model, Transformer)
    if not is_transformer or reference is None:
        more = ", with a function or a recipe as its reference" * is_transformer
        raise InvalidValue(
            f"the model to compare must be a Transformer{more}",
            received="no reference"
            if is_transformer
            else f"{type(model).__name__} as the first argument",
            where="check",
            remedy="compile a program, tf.compile(program), or give it second; or give a "
            "transformer such as tf.recipe('dyck-1').build()",
        )
    return model, _answers_of(reference) if isinstance(reference, Recipe) else reference


def _answers_of(recipe: Recipe[Any]) -> Callable[[Any], Any]:
    """The reference of a claim on strings, with the default settings of its recipe."""
    claim = recipe.claim
    if isinstance(claim, StringClaim) and not claim.in_numbers:
        return partial(ask, claim.reference, **recipe.settings({}))
    raise InvalidValue(
        "a transformer must be compared with a recipe on strings whose answers are right or wrong",
        received=f"the recipe {recipe.name}",
        where="check",
        remedy="give another recipe, or check recipe.replace(construct=lambda: model)",
    )


def _check_claim(
    model: Any,
    reference: Any,
    max_length: int | None,
    arithmetic: Arithmetic | str,
    given: Mapping[str, Any],
) -> Verdict:
    """Check a recipe, or a model against the claim of a recipe."""
    settled = [name for name, value in given.items() if value]
    settled += ["arithmetic"] * (arithmetic != "float64")
    if settled or (isinstance(model, Recipe) and reference is not None):
        raise InvalidValue(
            "a claim must be checked by itself: it names its inputs and its arithmetics",
            received=", ".join(settled) or "a recipe with a reference",
            where="check",
            remedy="leave this out, or check recipe.build() against a function",
        )
    if isinstance(model, Recipe):
        return check_recipe(model, max_length)
    return check_model(model, reference, max_length)


def _draws(drawn: Drawn | int, model: Transformer) -> Drawn | None:
    """The drawn strings, of lengths that the model takes."""
    if not isinstance(drawn, Drawn):
        if not is_whole(drawn, 0):
            raise InvalidValue(
                "drawn must be a number of strings, or a Drawn",
                received=repr(drawn)[:40],
                where="check",
                remedy="give a whole number of at least 0",
            )
        longest = min(LONGEST_DRAWN, model.max_length or LONGEST_DRAWN)
        drawn = Drawn(drawn, shortest_input(model), longest)
    return drawn if drawn.count else None


def _run(subject: Subject, max_length: int, draws: Drawn | None) -> dict[str, str]:
    """What the pieces of a check depend on, as its journal records it."""
    # The strings first: a refusal names the first thing that differs, and a recipe that is checked
    # to another length is also built for another N.
    return {
        "strings": f"every string to length {max_length}" + (f", {draws}" if draws else ""),
        "version": VERSION,
        "model": fingerprint(subject.model),
        "reference": fingerprint(subject.reference),
        "arithmetic": _arithmetic(subject.arithmetic),
    }


def _arithmetic(system: Arithmetic) -> str:
    """The name of a number system, with a fingerprint where the name alone means another one."""
    return system.name if is_named(system) else f"{system.name} {fingerprint(system)}"


def _verdict(
    subject: Subject,
    found: Executed,
    every: tuple[int, int] | None,
    draws: Drawn | None,
    covered: str,
) -> Verdict:
    wrong, name = found.mismatch, subject.arithmetic.name
    tried = covered
    if wrong is not None:
        then = [f"strings to length {every[1]}"] if every else []
        then += [str(draws)] if draws else []
        tried = f"{', '.join(then)}, until one of length {len(wrong.input)} failed"
        if found.is_drawn:
            wrong = shrunk(subject, wrong)
    coverage = Coverage(
        arithmetic=name,
        cases=found.cases,
        inputs=tried,
        every=every if wrong is None else None,
        drawn=draws if wrong is None else None,
        pieces=found.pieces,
        from_journal=found.from_journal,
    )
    return verdict_of("model", [Trial(coverage, wrong)], covered)
