"""Write docs/targets.md: the worked programs for the masks of hosts; python docs/targets.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pages
from transformist import certify
from transformist import compile as compiled
from transformist.compiler import TARGETS, largest_length
from transformist.compiler.uncompilable import Uncompilable
from transformist.language import Program
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

REFUSED = """
## Refused

Programs that a target cannot express: the refused line, and the mask that it needs.

| program | masks | line | needs |
|---|---|---|---|
"""


def page() -> str:
    """The page."""
    return HEAD + "".join(map(rows, PROGRAMS)) + REFUSED + "".join(map(refusals, PROGRAMS))


def rows(name: str) -> str:
    """The rows of the targets that a program is compiled for."""
    program = PROGRAMS[name]
    return "".join(
        _row(name, masks, *_facts(program, masks))
        for masks in TARGETS
        if _refusal(program, masks) is None
    )


def _facts(program: Program, masks: str) -> Iterator[str]:
    longest = largest_length(program, most=MOST, masks=masks, arithmetic=FORMAT, reuse=False)
    narrow, wide = (
        size(compiled(program, max_length=longest, masks=masks, reuse=reuse))
        for reuse in (True, False)
    )
    yield str(wide.layers)
    yield str(wide.heads)
    yield f"{narrow.width}, {wide.width}"
    yield f"{longest:,}"
    yield _certified(program, masks, longest)


def _certified(program: Program, masks: str, longest: int) -> str:
    """The first N that is certified, with its grade."""
    for N in (longest, *(each for each in SMALLER if each < longest)):
        model = compiled(program, max_length=N, masks=masks, reuse=False)
        certificate: Certificate = certify(model, FORMAT, N)
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
