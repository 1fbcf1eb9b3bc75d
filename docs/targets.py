"""Write docs/targets.md: the worked programs for the masks of hosts; python docs/targets.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pages
from transformist import certify
from transformist import compile as compiled
from transformist.compiler import TARGETS, largest_length
from transformist.compiler.compile_options import POSITION_CODES
from transformist.compiler.uncompilable import Uncompilable
from transformist.language import Categories, Program, Tag, program
from transformist.programs import PROGRAMS
from transformist.report.size import size
from transformist.verify.certificate import Certificate

PAGE = Path(__file__).with_name("targets.md")

MOST = 10**5
SMALLER = (1023, 511, 255, 127, 63)
FORMAT = "float32"

HEAD = f"""# Programs for the masks of a host

```python
>>> import transformist as tf
>>> from transformist.programs import PROGRAMS
>>> model = tf.compile(PROGRAMS["contains-abc"], masks="future", reuse=False)
>>> {{str(head.mask) for layer in model.layers for head in layer.heads}}
{{'future'}}
>>> tf.decoder(model).take_all("dabcd")
[False, False, False, True, True]

```

This page lists the size of each worked program for hosts with any masks, for a causal decoder
(`masks="future"`) and for an encoder (`masks="none"`). The page
[language](language.md#for-the-masks-of-a-host) describes how masks are replaced.
`python docs/targets.py` generates this page in some minutes.

- Width: first with slots that are used again, then with a slot for each number (`reuse=False`).
- Largest N: the largest up to {MOST:,} at which {FORMAT} is shown to keep the margins, with a slot
  for each number.
- Certified: the largest of that N and {", ".join(map(str, SMALLER))} for which `certify` holds
  with a slot for each number, and the grade of the certificate.

| program | masks | layers | heads | width | largest N | certified |
|---|---|---|---|---|---|---|
"""

COMPUTED = """
## Without position numbers

With `positions="bos"` a decoder computes positions from the share of BOS in a mean
([language](language.md#for-the-masks-of-a-host)). The worked programs for a decoder that use
positions, with a slot for each number, up to N = 511:

| format | program | layers | heads | width | largest N | certified |
|---|---|---|---|---|---|---|
"""

MOST_COMPUTED = 511
"""The largest N with computed positions that the page tries, which takes N hidden units."""

NARROW = (511, 255, 127, 64, 32, 16, 8, 4, 2)
"""The N that are tried in narrow formats, the largest first."""

CODED = f"""
## In narrow formats

With `position_codes="sinusoidal"` heads find neighbours, and lookups of i + c, c and c − i, by
cosines and sines ([language](language.md#codes-of-positions)). Tried:
N = {", ".join(map(str, NARROW))}. *Certified* is the largest of
them for which `certify` holds in the format. The model is compiled for this N and for
{FORMAT}, with a slot for each number.

| format | program | masks | width, quadratic | certified | width, sinusoidal | certified |
|---|---|---|---|---|---|---|
"""


@program(alphabet="abc")
def third_before(x: Categories) -> Tag:
    """The symbol three positions before."""
    return x.predecessor(3, default="a").tag()


@program(alphabet="abc")
def second_after(x: Categories) -> Tag:
    """The symbol two positions after."""
    return x.successor(2, default="a").tag()


BY_NEIGHBOURS: Mapping[str, tuple[Program, Sequence[str]]] = {
    "x.predecessor(3)": (third_before, ("future", "none")),
    "x.successor(2)": (second_after, ("none",)),
    "contains-abc": (PROGRAMS["contains-abc"], ("future", "none")),
    "induction-most-recent": (PROGRAMS["induction-most-recent"], ("future",)),
}
"""Programs that find neighbours, and the targets that they are compiled for."""

REFUSED = """
## Refused

Programs that a target cannot express: the refused line, and the mask that it needs. A decoder
gives each tag before it reads the rest of the input, so it cannot count the whole input, or read it
from its end, for a tag. In an encoder every row sees all rows, so no head takes a mean, a count or
the last match up to a row.

`tf.answered_after(program)` returns a program that reads the input, then `=`, and then predicts the
tags, one a step ([huggingface](huggingface.md#answers-after-the-input)). Its alphabet also has `=`
and the tags that are no symbols. double-histogram, most-frequent-token, reverse, sort and
binary-increment are compiled in this form with `masks="future"`. Let `=` stand at position p. Then
row m of the answers is computed so:

- it predicts the tag i = m − p + 1, reads values at position i by a lookup, and `successor(k)` by
  one at i + k;
- n is p − 1;
- means, counts and `any` of mask none are taken over the rows before p.

Tags without listed values are refused: each of the N counts of histogram would be a symbol.
palindrome accepts instead of tagging: step i would compare positions i and n + 1 − i, and the last
step would read the results of all.

| program | masks | line | needs |
|---|---|---|---|
"""


def page() -> str:
    """The page."""
    computed = COMPUTED + "".join(map(computed_rows, PROGRAMS))
    return HEAD + "".join(map(rows, PROGRAMS)) + computed + coded() + REFUSED + _refused()


def coded() -> str:
    """The section of narrow formats."""
    return CODED + "".join(
        _row(each, name, masks, *_by_codes(program, masks, each))
        for each in ("float16", "bfloat16")
        for name, (program, targets) in BY_NEIGHBOURS.items()
        for masks in targets
    )


def _by_codes(program: Program, masks: str, arithmetic: str) -> Iterator[str]:
    """Width and largest certified N with each code of positions."""
    for codes in POSITION_CODES:
        given = {"masks": masks, "reuse": False, "position_codes": codes}
        models = (compiled(program, max_length=N, **given) for N in NARROW)
        fits = (each for each in models if certify(each, arithmetic).holds)
        found = next(fits, None)
        yield "" if found is None else f"{found.width}"
        yield "no" if found is None else f"{found.max_length}"


def _refused() -> str:
    return "".join(map(refusals, PROGRAMS))


def rows(name: str) -> str:
    """The rows of the targets that a program is compiled for."""
    program = PROGRAMS[name]
    return "".join(
        _row(name, masks, *_facts(program, MOST, masks=masks, arithmetic=FORMAT))
        for masks in TARGETS
        if _refusal(program, masks) is None
    )


def computed_rows(name: str) -> str:
    """The rows of a program for a decoder without position numbers."""
    program = PROGRAMS[name]
    if _refusal(program, "future") is not None:
        return ""
    if compiled(program, max_length=12, masks="future").embedding.positions is None:
        return ""
    given = {"masks": "future", "positions": "bos"}
    return "".join(
        _row(each, name, *_facts(program, MOST_COMPUTED, arithmetic=each, **given))
        for each in (FORMAT, "float16", "bfloat16")
        if largest_length(program, most=2, arithmetic=each, **given)
    )


def _facts(program: Program, most: int, **given: Any) -> Iterator[str]:
    """Layers, heads, widths, the largest N, and the largest certified one."""
    longest = largest_length(program, most=most, reuse=False, **given)
    narrow, wide = (
        size(compiled(program, max_length=longest, reuse=reuse, **given)) for reuse in (True, False)
    )
    yield str(wide.layers)
    yield str(wide.heads)
    yield f"{narrow.width}, {wide.width}"
    yield f"{longest:,}"
    yield _certified(program, longest, given)


def _certified(program: Program, longest: int, given: Mapping[str, Any]) -> str:
    """The first N that is certified, with its grade."""
    for N in (longest, *(each for each in SMALLER if each < longest)):
        model = compiled(program, max_length=N, reuse=False, **given)
        certificate: Certificate = certify(model, given["arithmetic"], N)
        if certificate.holds:
            return f"{N:,}, grade {certificate.grade}"
    return "no"


def refusals(name: str) -> str:
    """The rows of the targets that a program is refused for."""
    found = ((masks, _refusal(PROGRAMS[name], masks)) for masks in TARGETS)
    return "".join(_row(name, masks, *_said(each)) for masks, each in found if each is not None)


def _refusal(program: Program, masks: str) -> Uncompilable | None:
    try:
        compiled(program, max_length=12, masks=masks)
    except Uncompilable as refusal:
        return refusal
    return None


def _said(refusal: Uncompilable) -> tuple[str, str]:
    """The text of the line, and the mask."""
    _, _, line = str(refusal.where).partition(": ")
    return f"`{line.replace('|', chr(92) + '|')}`", refusal.received.rpartition(" ")[2]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    pages.write(PAGE, page)
