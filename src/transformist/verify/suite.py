"""Checks of many recipes and programs, in several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from transformist.catalogue import recipe as find_recipe
from transformist.compiler import compile as compile_program
from transformist.language import Program
from transformist.programs import PROGRAMS
from transformist.verify.checking import check
from transformist.verify.claim_kinds import check_recipe
from transformist.verify.feasible import length_within, require_feasible
from transformist.verify.runs.processes import Workers
from transformist.verify.verdict import Coverage, Verdict
from transformist.verify.workers import EACH_PROCESSOR, spread

# Softmax has margins that a format may break, so a narrow format tests them; average-hard attention
# in exact arithmetic tests the construction alone.
TRIED = (("softmax", "float32", 2**13), ("average-hard", "exact", 2**11))
"""A weighting, the arithmetic it is evaluated in, and the number of strings tried."""

SHORTEST_BUILT = 16
"""Programs are compiled for inputs of at least this length."""


def built_for(length: int) -> int:
    """N of the model that is compiled for an input: its length rounded up to a power of two.

    Example:
        >>> built_for(3), built_for(16), built_for(17)
        (16, 16, 32)

    """
    return max(SHORTEST_BUILT, 1 << max(length - 1, 0).bit_length())


def check_program(name: str, program: Program, max_length: int | None = None) -> Verdict:
    """Compare the model compiled from a program with its interpretation, on every short string.

    Softmax is evaluated in float32, average-hard attention in exact arithmetic.

    Args:
        name: of the program, for the verdict.
        program: the program to compile.
        max_length: length of the longest strings; chosen by the number of strings when left out.

    Raises:
        InvalidValue: for a length below 0 or beyond what is feasible.
        TransformistError: for a program that is not compiled.

    """
    tried = dict[str, str]()
    coverage = list[Coverage]()
    for weighting, arithmetic, count in TRIED:
        length = length_within(count, len(program.alphabet)) if max_length is None else max_length
        require_feasible(length, len(program.alphabet), may_be_recorded=False)
        model = compile_program(program, max_length=built_for(length), weighting=weighting)
        verdict = check(model, program, length, arithmetic)
        given = {"weighting": weighting}
        coverage += [replace(each, settings=given) for each in verdict.coverage]
        cases = sum(each.cases for each in coverage)
        tried[f"{verdict.covered} with {weighting}"] = arithmetic
        found = verdict.counterexample
        if found is not None:
            found = replace(found, settings=f"weighting={weighting}")
            return Verdict(
                name, cases, tuple(tried.values()), verdict.covered, found, tuple(coverage)
            )
    return Verdict(name, cases, tuple(tried.values()), " and ".join(tried), None, tuple(coverage))


def check_recipes(
    names: Sequence[str], max_length: int | None = None, workers: Workers = EACH_PROCESSOR
) -> Iterator[Verdict]:
    """Yield the verdicts of several recipes, in order, each when it is ready.

    Args:
        names: of the recipes.
        max_length: as for `check_recipe`.
        workers: the processes; as many as there are processors, when left out.

    """
    yield from spread(partial(_check_named, max_length=max_length), names, workers)


def check_programs(
    max_length: int | None = None, workers: Workers = EACH_PROCESSOR
) -> Iterator[Verdict]:
    """Yield the verdicts of the packaged programs, in order, each when it is ready.

    Args:
        max_length: as for `check_program`.
        workers: the processes; as many as there are processors, when left out.

    """
    yield from spread(partial(_check_packaged, max_length=max_length), list(PROGRAMS), workers)


def _check_packaged(name: str, max_length: int | None) -> Verdict:
    return check_program(f"programs/{name}", PROGRAMS[name], max_length)


def _check_named(name: str, max_length: int | None) -> Verdict:
    return check_recipe(find_recipe(name), max_length)
