"""The first length at which a number format breaks a recipe: a search.

The search goes below the length that the claim calls safe and beyond it. Its work is counted in
attention scores and bounded beforehand, so that it ends, and gives the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transformist.arithmetic import Arithmetic, Floating, is_whole, number_system
from transformist.claims import Recipe, Settings, StringClaim
from transformist.errors import InvalidValue
from transformist.verify.attempt import Attempt, Attempts, safe_length
from transformist.verify.claim_kinds import CLAIM_KINDS
from transformist.verify.verdict import Mismatch

WORK = 2**26
"""Budget of a search in scores, unless another is given: some seconds."""

SHORT_WORK = 2**19
"""Budget of a search beside other facts: some tenths of a second a format."""

LONGEST = 2**20
"""The longest inputs tried, unless another length is given."""

GROWTH = 4
"""If not every length is tried, the next length is longer by one part in this many."""


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Result of a search for the first length at which a format breaks a recipe.

    For a recipe that is built for N, length means N: inputs of N and fewer vectors or symbols are
    tried in the model that is built for N.

    Attributes:
        recipe: its name.
        arithmetic: the float format.
        settings: those that were given.
        length: the least length found at which an answer is wrong, or `None`.
        input: the input answered wrongly there: a string, or the position in a list, with its own
            free numbers.
        expected, got: the right answer and the one given; where the format cannot hold the
            weights, features or scores, `got` is the refusal.
        searched: the longest length tried; 0 where none was.
        inputs_to: the longest input tried, shorter than N where N is large.
        every_length_to: every single length up to this one was tried, and passed.
        claimed: the length that the claim calls safe; `None` for every length, 0 for not claimed.
        ended: why the search went no further, in words.

    """

    recipe: str
    arithmetic: str
    settings: Settings
    length: int | None
    input: Any
    expected: Any
    got: Any
    searched: int
    inputs_to: int
    every_length_to: int
    claimed: int | None
    ended: str

    @property
    def refutes_the_claim(self) -> bool:
        """True if an answer is wrong at a length that the claim calls safe."""
        return self.length is not None and _covers(self.claimed, self.length)


def first_failure(
    recipe: Recipe[Any],
    arithmetic: Arithmetic | str,
    longest: int = LONGEST,
    work: int = WORK,
    **given: Any,
) -> Breakdown:
    """Search for the first length at which a format breaks a recipe.

    Lengths are tried one by one for an eighth of the work, then on a grid that grows by a quarter
    and holds the safe length and the next, for five eighths. Between the last length that passed
    and the first that failed the interval is halved; what work is left goes to the lengths not yet
    tried, from the least on. Failure need not be monotone: below `length` and above
    `every_length_to` there may be lengths that fail and were not tried.

    An answer is wrong where it differs from the claim's reference by more than the claim admits;
    beyond the safe length, by more than it admits at the safe length (for lists, where that is
    infinite, by an eighth of the largest number).

    Args:
        recipe: the recipe to try.
        arithmetic: a float format.
        longest: length of the longest inputs.
        work: budget in scores, over all lengths.
        given: settings of the recipe by name, but max_length.

    Raises:
        InvalidValue: for a recipe without lengths, an arithmetic in which nothing rounds, a longest
            length or work below 1, max_length among the settings, or answers in numbers without an
            error claimed in this format.
        UnknownName, InvalidValue: as `recipe.settings`.

    Example:
        >>> import transformist as tf
        >>> found = first_failure(tf.recipe("quadratic-lookup"), "float16", longest=64)
        >>> found.claimed, found.length, found.every_length_to, found.input
        (38, 40, 39, {'n': 40, 'i': 40, 'q': 40, 'v': (Fraction(-677, 512),)})

    """
    system = float_format(arithmetic)
    _require_right_or_wrong(recipe, system.name)
    attempts = CLAIM_KINDS[type(recipe.claim)].attempts
    if attempts is None:
        raise InvalidValue(
            "the recipe must be one on strings, lists or positions",
            received=f"{recipe.name!r}, in which nothing grows with a length",
            where="precision",
            remedy=f"transformist show {recipe.name} tells its rounding error",
        )
    settings = _settings(recipe, {"longest": longest, "work": work}, given)
    safe = safe_length(recipe.claim, settings, system)
    search = _Search(attempts(recipe, settings, system), longest, work)
    # The safe length and the next are where the claim says that something changes.
    search.run(marks=(safe, safe + 1) if safe else ())
    length = min(search.failed, default=None)
    wrong = None if length is None else search.failed[length]
    return Breakdown(
        recipe=recipe.name,
        arithmetic=system.name,
        settings={name: settings[name] for name in given},
        length=length,
        input=wrong and wrong.input,
        expected=wrong and wrong.expected,
        got=wrong and wrong.got,
        searched=max(search.tried, default=0),
        inputs_to=max((tried.inputs_to for tried in search.tried.values()), default=0),
        every_length_to=search.every_length_to,
        claimed=_claimed(search.tried) if search.tried else safe,
        ended=search.ended,
    )


def float_format(arithmetic: Arithmetic | str) -> Floating:
    """The float format.

    Raises:
        UnknownName: when there is no arithmetic of this name.
        InvalidValue: for an arithmetic in which nothing rounds.

    """
    system = number_system(arithmetic)
    if isinstance(system, Floating):
        return system
    raise InvalidValue(
        "the arithmetic must be a float format",
        received=f"{system.name}, in which nothing rounds",
        where="precision",
        remedy="choose a float format, such as float32",
    )


def _settings(recipe: Recipe[Any], counts: Mapping[str, int], given: Settings) -> dict[str, Any]:
    """The settings of a search, none of which it varies by itself."""
    for name, count in counts.items():
        if not is_whole(count, 1):
            raise InvalidValue(
                f"{name} must be a whole number of at least 1",
                received=f"{name} = {count!r}",
                where="precision",
                remedy="give a larger one",
            )
    if "max_length" in given:
        raise InvalidValue(
            "max_length must be left out: each length that is tried is declared as N",
            received=f"max_length = {given['max_length']}",
            where="precision",
            remedy="leave it out (--max-length n bounds the lengths that are tried)",
        )
    return recipe.settings(given)


def _require_right_or_wrong(recipe: Recipe[Any], name: str) -> None:
    """Refuse a format in which answers are numbers without a claimed error."""
    claim = recipe.claim
    if isinstance(claim, StringClaim) and claim.in_numbers and name in claim.excluded:
        raise InvalidValue(
            "the format must be one in which an error is claimed, as the answer is in numbers",
            received=f"{name}, in which {recipe.name} claims nothing: {claim.excluded[name]}",
            where="precision",
            remedy=f"transformist run {recipe.name} prints an error bound for an input",
        )


def _claimed(tried: Mapping[int, Attempt]) -> int | None:
    """The safe length; where it depends on N, the largest N that was tried and is claimed."""
    lengths = {attempt.claimed for attempt in tried.values()}
    if len(lengths) == 1:
        return lengths.pop()
    return max((n for n, each in tried.items() if _covers(each.claimed, n)), default=0)


def _covers(claimed: int | None, n: int) -> bool:
    return claimed is None or n <= claimed


class _Search:
    """The lengths tried so far, and the work that is left."""

    def __init__(self, attempts: Attempts, longest: int, work: int) -> None:
        self.attempts, self.longest, self.work, self.left = attempts, longest, work, work
        self.tried: dict[int, Attempt] = {}
        self.failed: dict[int, Mismatch] = {}
        self.every_length_to = 0
        self.ended = ""

    def run(self, marks: tuple[int, ...]) -> None:
        """Fill `tried` and `failed`."""
        # An eighth of the work goes to the shortest lengths, as most formats fail early; then the
        # grid, a quarter being kept for the rest: halving an interval of at most 2¹⁸ lengths (a
        # quarter of LONGEST) takes 18 attempts, and closes in on a length that fails.
        self._one_by_one(keep=self.work - self.work // 8)
        if not self.failed:
            self._grid(marks, keep=self.work // 4)
        # What follows may end for want of work too; the reason to tell is that of the grid.
        ended = self.ended
        if self.failed:
            self._halve()
        self._one_by_one(keep=0)
        self.ended = "a failing length was found" if self.failed else ended

    def _one_by_one(self, keep: int) -> None:
        """Try the lengths from the least on, while more work is left than is to be kept."""
        end = min(self.failed, default=self.longest + 1)
        while self.every_length_to + 1 < end:
            n = self.every_length_to + 1
            if not self._try(n, keep) or n in self.failed:
                return
            self.every_length_to = n

    def _grid(self, marks: tuple[int, ...], keep: int) -> None:
        for n in _growing(self.every_length_to, self.longest, marks):
            if not self._try(n, keep) or self.failed:
                return
        self.ended = f"no longer input was asked for than {self.longest}"

    def _halve(self) -> None:
        """Halve the interval from the last length that passed to the first that failed."""
        # Failure need not be monotone: this finds a length that fails after one that passes, and
        # every shorter length that is tried later is tried for itself.
        first = min(self.failed)
        last = max((n for n in self.tried if n < first), default=0)
        while first - last > 1:
            middle = (last + first) // 2
            if not self._try(middle):
                return
            first, last = (middle, last) if middle in self.failed else (first, middle)

    def _try(self, n: int, keep: int = 0) -> bool:
        """Try a length; false where it takes too much work, or is refused."""
        if n in self.tried:
            return True
        try:
            attempt = self.attempts(n)
        except InvalidValue as refusal:
            # The model cannot be built for n, as where a table would grow too large: longer ones
            # cannot either.
            self.ended = refusal.invariant
            return False
        if attempt.scores > self.left - keep:
            self.ended = f"n = {n} would take more than the work that was left"
            return False
        self.left -= attempt.scores
        self.tried[n] = attempt
        wrong = attempt.run()
        if wrong is not None:
            self.failed[n] = wrong
        return True


def _growing(start: int, longest: int, marks: tuple[int, ...]) -> Iterator[int]:
    """Lengths beyond `start`, each a quarter longer, with the marks among them, to the longest."""
    # The grid meets every stretch of failing lengths that is a quarter of its first length long,
    # and may pass over shorter ones.
    n = start
    while n < longest:
        following = min(n + max(1, n // GROWTH), longest)
        yield from (mark for mark in marks if n < mark < following)
        n = following
        yield n
