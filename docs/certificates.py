"""Write docs/certificates.md: certified lengths beside the first that fails.

python docs/certificates.py                                  from what is recorded, in two minutes
python docs/certificates.py --search [--to N] [NAME | FORMAT]...   searches what is not recorded yet

What a search found is kept in certificates.json, with its seed and effort; what is there is not
searched again. The certified lengths are computed anew each time.
"""

from __future__ import annotations

import functools
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import failing
import pages
from failing import Searched, built
from transformist.arithmetic import number_system
from transformist.programs import PROGRAMS
from transformist.verify.certificate import Certificate, grade_of
from transformist.verify.certificate.certification import Certification
from transformist.verify.proof import prove

PAGE = Path(__file__).with_name("certificates.md")
RECORDED = PAGE.with_suffix(".json")

FORMATS = ("bfloat16", "float16", "float32")
LONGEST = 6000
MOST = 2**17
FIRST = 8
"""Lengths up to this are tried until one is certified, before longer ones."""
LOOSE = 4
"""The page gives a reason where the failing length is more than this many times the certified."""

HEAD = f"""# Certificates

A certificate says that a model decides in a number format as it does in exact arithmetic. For every
input of length up to N, the evaluation in the format gives the same acceptance, the same labels or
the same nearest fractions as rational arithmetic with average-hard attention in place of softmax. A
certificate is made from the weights alone, and its error bounds are composed over all layers.
`TAKEN_FOR_GRANTED` lists what a certificate assumes of the platform: +, −, ×, ÷ and √ are correctly
rounded, exp is within 2 units in the last place, and exp(0) is 1.

A certificate does not say that the weights compute what their author meant: `tf.check` compares
weights with a function or a program. A certificate gives no error bound for numbers on which no
decision depends. A model without a certificate may still answer rightly: bounds are sufficient, not
necessary.

**Grades.** The first grade is a proof. `verify/proof` goes through the model operation by operation
and bounds the error of every coordinate, for every kind of row (a symbol, or BOS). The proof starts
from the exact weights and their rounding to the format; it uses none of the laws by which a program
is compiled. `tf.check_certificate` makes the proof again. The second grade rests on those laws, and
a second reading of the weights confirms that the laws apply; or it rests on ranges that were
observed on every input up to its N. A certificate of the second grade says where the proof of the
first grade stopped (`stopped`).

**Orders.** A certificate is for one way of evaluating.

- `any`: every order and grouping of every sum, as linear algebra libraries choose them; softmax is
  normalised before it is applied to the values.
- `reference`: every sum from left to right. `any` contains this order.
- `structured`: the engine for long inputs. Its heads sum in another way, which neither `any` nor
  `reference` contains.
- `flash`: what GPU kernels do. Keys come in blocks, with a running maximum and rescaling;
  probabilities are rounded to the format before they are applied; the division comes last; and
  exponentials are off by up to 2⁻²⁰. `any` does not contain this order.

**Hosts.** `tf.certify(model, host="gpt2")`, or `"llama"`, certifies the checkpoint that
`tf.export` writes, as transformers evaluates it in float32. The proof also bounds the other
operations of the class: its norms, which divide by the root of eps plus a small variance; the
mean, which is 0 but for rounding; biases that are weights of a constant slot; silu in place of
ReLU; rotations; the underflow of the shrunken stream. There is one proof for eager attention and
one for the kernels of sdpa; the certificate holds only if both do. It assumes that products take
and add up float32 (no TF32), and that padding is masked. For Llama it assumes as well that 1/√x is
a division by √x, as on processors: the network that rounds positions to whole numbers needs the
constant 1 exactly, and the approximate 1/√ of a GPU may not give it. `HOST_ASSUMPTIONS` has the
whole list. Where there is no certificate, `certify` searches for the first wrong answer in the
class, and says what was tried ([huggingface](huggingface.md#a-certificate-for-what-runs)).

**Tests that try to refute certificates.** `tests/attack` draws small adversarial models of these
kinds: constants, cancelling paths, subnormal weights, huge and tiny scales, ties, many heads, slots
that are written twice, BOS with values of its own, norms, steps, lookups, matches, comparisons of
means. Formats have 3 to 6 bits of precision and 3 to 5 of exponent, with and without subnormals,
saturating and not.
Where a certificate holds, the test evaluates every input of length up to N by the reference, and
again with every sum in drawn orders. It compares the answers with the ideal in rational numbers.
The suite draws 20,085 models. Runs (`python tests/attack/run.py`) of 18,000, 21,400, 22,000,
27,600, 102,800, 120,200, 132,600, 191,400 and 345,000 models on earlier states of the code, and of
1,000,500 on the state that `tests/attack/record.json` names, all in 2026-11, found no false
certificate; of each kind at least 37 % hold. Reviewers built models by hand whose certificates
were false, most with numbers in extreme ranges; these defects are closed
(`tests/verify/test_proofs_that_were_false.py`).
`tests/verify/test_proofs.py` compares every range, grid and error bound of the proof with computed
values, slot by slot.

**Defects of earlier versions.** Certificates of version 1 (up to 0.1.0 of 2026-11) could be false
for hand-made weights. No false one was found for a model that `tf.compile` emits. A saved
certificate of version 1 is refused.

| defect | what the bound left out or got wrong |
|---|---|
| D1 | a constant in a slot, and the weight that reads it, were taken as their exact product |
| D2 | the sum of heads was taken to round once for each kind of head, not once for each head |
| D3 | constant summands were left out |
| D4 | the slots that a query sums were left out |
| D5 | weights that are subnormal in the format, or underflow to 0, were left out |
| D6 | ranges that were observed on short inputs were assumed for long ones |
| D7 | a relative rounding of 1 or more, in formats of 8 bits, made a bound negative |
| D8 | a bound that overflowed, times 0, was taken as 0 (version 2, before its release) |
| D9 | `flash` took the weight of a single key as exactly 1 (version 2, before its release) |
| D10 | the scores of a head whose output weights are all 0 were not required to fit the format |
| D11 | the rounding of exponentials was left out among best scores that differ by rounding |
| D12 | `structured` took an error relative to the largest value as relative to the mean (as D9) |

# Certified lengths, and lengths that fail

For each program of `transformist.programs.PROGRAMS`, compiled for N with softmax attention and for
exact arithmetic (so that no format refuses it), and for each number format:

- *first grade*: an N up to {MOST:,} with a proof for the order `any`, while N + 1 has
  none, found by bisection; *flash*: the same for the order `flash`.
- *any order*, *the reference's order*: an N for which `tf.certify` holds, in either grade, while it
  does not for N + 1.
- *fails*: the least N found at which the reference evaluation in the format gives some input of
  length up to N another answer than the program's definition, or none because a number overflows.
  "none to L" says that a search up to N = L found no failure; this proves nothing.
- *ratio*: *fails* divided by *the reference's order*; "> r" if no failure was found, L divided by
  it, rounded down. Where the ratio is above {LOOSE}, or nothing is certified, or nothing fails,
  *what ends the certificate* names the margin that is exceeded at the N after the certified one.
  If a bound is loose, it is the bound of this margin.
- *failing input*, *its kind and answer*: an input that fails, how the search made it, and the
  answer in the format.

The search tries every N up to {failing.EACH}, then lengths that grow by a factor of
{failing.GROWTH}, and powers of two. Between the last length that was right and the first that
fails, it tries every N, or bisects if there are many. Then it tries smaller N, on shortened forms
of the input that failed. Inputs are all short strings, constants, repeated words and blocks, the
strings on which the program is most likely to fail, drawn strings, and variations of the inputs
that came nearest to another answer. *Known* failures were found before the search had inputs of
their kind (`failing.KNOWN`); the script evaluates each.

`python docs/certificates.py` writes this page from `docs/certificates.json`. With `--search` it
first adds to that file the failures that it finds, with the seed and the effort: the number of
attention scores computed for an N, {min(failing.EFFORT.values()):,} or more, and at least those
of about five strings.
"""

COLUMNS = (
    "format",
    "first grade",
    "flash",
    "any order",
    "the reference's order",
    "fails",
    "ratio",
    "failing input",
    "its kind and answer",
    "what ends the certificate",
)


# What is certified


@functools.cache
def certified(name: str, arithmetic: str, order: str = "any") -> tuple[int, Certificate]:
    """The largest N that is certified, 0 for none, and the certificate that is refused next."""
    a: Any = number_system(arithmetic)
    first = recorded().get((name, arithmetic))

    def holds(N: int) -> bool:
        return grade_of(built(name, N), a, N, order)[0] > 0

    N = largest(holds, first.certified if first is not None else 0)
    refused = min(N + 1, MOST)
    return N, Certification(built(name, refused), a, refused, order).certificate(refused)


@functools.cache
def proved(name: str, arithmetic: str, order: str) -> int:
    """The largest N with a certificate of the first grade."""
    a: Any = number_system(arithmetic)
    return largest(lambda N: prove(built(name, N), a, N, order).holds)


def largest(holds: Callable[[int], bool], known: int = 0) -> int:
    """The largest N up to MOST for which something holds, by doubling and bisection.

    Doubling begins at the least N up to FIRST for which it holds: for N = 1 a count has two labels,
    too few to be seen as one.
    """
    first = next((N for N in range(1, FIRST + 1) if holds(N)), 0)
    held = known if known > first and holds(known) else first
    if not held:
        return 0
    refused = held + 1
    while refused <= MOST and holds(refused):
        held, refused = refused, 2 * refused
    refused = min(refused, MOST + 1)
    while refused - held > 1:
        middle = (held + refused) // 2
        held, refused = (middle, refused) if holds(middle) else (held, middle)
    return held


# What fails


def recorded() -> Mapping[tuple[str, str], Searched]:
    """What searches found, by program and format."""
    if not RECORDED.exists():
        return {}
    entries = json.loads(RECORDED.read_text("utf-8"))
    found = [
        Searched(**{**entry, "input": tuple((word, count) for word, count in entry["input"])})
        for entry in entries
    ]
    return {(each.program, each.arithmetic): each for each in found}


def search(name: str, arithmetic: str, longest: int) -> None:
    """Search for a failing length, on from where a search with the same effort ended."""
    before = recorded().get((name, arithmetic))
    seed, effort = failing.SEED, failing.EFFORT[arithmetic]
    after = strings = 0
    if before is not None and before.seed == seed and before.effort >= effort:
        if before.max_length is not None or before.tried >= longest:
            return
        after, strings, effort = before.tried, before.strings, before.effort
    found = failing.Search(name, arithmetic, seed, effort, strings=strings).run(longest, after)
    longest_certified, _ = certified(name, arithmetic, "reference")
    if found.max_length is not None and found.max_length <= longest_certified:
        sys.exit(f"THE CERTIFICATE IS WRONG for N = {longest_certified}: {found}")
    keep({**recorded(), (name, arithmetic): found})


def keep(kept: Mapping[tuple[str, str], Searched]) -> None:
    """Write what is recorded."""
    order = [(program, each) for program in PROGRAMS for each in FORMATS if (program, each) in kept]
    lines = [json.dumps(kept[key].record(), ensure_ascii=False) for key in order]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


# The page


def page() -> str:
    """The page."""
    return HEAD + tally() + "".join(section(name) for name in PROGRAMS)


def tally() -> str:
    """Return how many programs have a ratio of at most LOOSE, of those that are known to fail."""
    counts = []
    for arithmetic in FORMATS:
        failing_lengths = {name: recorded()[name, arithmetic].max_length for name in PROGRAMS}
        fails = {name: n for name, n in failing_lengths.items() if n is not None}
        near = [
            n <= LOOSE * certified(name, arithmetic, "reference")[0] for name, n in fails.items()
        ]
        if fails:
            counts.append(f"{sum(near)} of {len(fails)} programs in {arithmetic}")
    return f"""
The ratio is at most {LOOSE} for {" and for ".join(counts)}, among those for which a length that
fails is known.
"""


def section(name: str) -> str:
    """A program: its rows."""
    rows = "".join(_row(*cells(name, arithmetic)) for arithmetic in FORMATS)
    return f"\n## {name}\n\n{_row(*COLUMNS)}{'|---' * len(COLUMNS)}|\n{rows}"


def cells(name: str, arithmetic: str) -> Iterator[str]:
    """A row: a format."""
    in_any, _ = certified(name, arithmetic)
    N, refused = certified(name, arithmetic, "reference")
    found = recorded()[name, arithmetic]
    fails = found.max_length
    first, flash = (proved(name, arithmetic, order) for order in ("any", "flash"))
    yield arithmetic
    lengths = (first, flash, in_any, N)
    yield from (f"≥ {each}" if each >= MOST else str(each) for each in lengths)
    yield f"none to {found.tried}" if fails is None else str(fails)
    ratio = (fails or found.tried) / N if N else None
    if ratio is None or (fails is None and ratio < 1):
        yield ""
    else:  # a lower bound is rounded down
        yield f"{ratio:.1f}" if fails is not None else f"> {math.floor(10 * ratio) / 10:.1f}"
    yield "" if fails is None else shown(found)
    yield "" if fails is None else f"{found.made}: {_answer(found)}"
    limit = refused.limiting
    tight = N >= MOST or (ratio is not None and fails is not None and ratio <= LOOSE)
    yield "" if tight else f"{limit.place}, {limit.what}: {limit.error:.2g} of {limit.allowed:.2g}"


def shown(found: Searched) -> str:
    """A failing input, in short."""
    parts = [word if count == 1 else f"{word}×{count}" for word, count in found.input]
    text = " ".join(f"`{part}`" for part in parts)
    n = len(found.text)
    length = "" if n == found.max_length else f"length {n}: "
    return length + (text if len(text) <= 60 else f"{text[:40].rpartition(' ')[0]} …")


def _answer(found: Searched) -> str:
    return found.answer if len(found.answer) <= 60 else f"{found.answer[:24]}…"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |\n"


def main(given: list[str]) -> None:
    """Write the page, or search first."""
    if given[:1] != ["--search"]:
        keep({key: failing.with_known(each) for key, each in recorded().items()})
        pages.write(PAGE, page)
        found = recorded().items()
        keep({key: replace(each, certified=certified(*key)[0]) for key, each in found})
        return
    longest = int(given[given.index("--to") + 1]) if "--to" in given else LONGEST
    for arithmetic in FORMATS:
        for name in PROGRAMS:
            named = [{*given} & {*each} or {*each} for each in (PROGRAMS, FORMATS)]
            if name in named[0] and arithmetic in named[1]:
                print(f"{name} in {arithmetic}", file=sys.stderr, flush=True)
                search(name, arithmetic, longest)


if __name__ == "__main__":
    main(sys.argv[1:])
