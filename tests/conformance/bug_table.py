"""What known answers and the usual tests find of the planted bugs, as `docs/conformance-proof.md`.

`python tests/conformance/bug_table.py` writes the page anew, in a minute of processor time.
"""

import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from eager_engines import ENGINES, random_model
from judging import CHUNK, MODES, instruments, padded, wrong_tokens
from planted_bugs import BUGS, WINDOW

from transformist.conformance import write

PAGE = Path(__file__).parents[2] / "docs" / "conformance-proof.md"

FAMILIES = {"gpt2": "GPT-2", "llama": "Llama"}

NAMES = (
    "count",
    "marker",
    "place",
    "recall",
    "sort",
    "norm",
    "activation",
    "depth",
    "heads",
)
"""The instruments of the page."""

LENGTH = 64
"""The longest prompts of the suites: longer than a window and several chunks."""

TOLERANCE, TOKENS = 1e-3, 32
"""The usual tests: logits within this of the right ones, and as many equal greedy tokens."""


@cache
def suite(family):
    """The instruments of a family, written to a directory that stays until the process ends."""
    directory = tempfile.TemporaryDirectory()
    HELD.append(directory)
    write(Path(directory.name) / "suite", family, length=LENGTH)
    found = {each.name: each for each in instruments(Path(directory.name) / "suite")}
    return [found[name] for name in NAMES if name in found]


HELD = []


def finds(engine, instrument):
    """The first mode in which an instrument finds the engine wrong; an error counts as found."""
    try:
        made = engine.read(instrument.directory)
        return next((each for each in MODES if found_in(made, instrument, each)), None)
    except (ValueError, IndexError):
        return "error"


def found_in(engine, instrument, mode):
    return bool(wrong_tokens(engine, instrument.prompts, [mode])[mode])


def caught(bug):
    """The instruments that find a bug, in their order."""
    return [each.name for each in suite(bug.family) if finds(bug.engine, each)]


# The usual tests: the same modes, on a model of random weights.


def batches():
    source = np.random.default_rng(0)
    rows = [source.integers(1, 96, n).tolist() for n in (LENGTH, LENGTH - 7, 33, 12)]
    for side in ("left", "right"):
        yield padded(rows, side)


def outputs(engine):
    """Logits at tokens in each mode, and greedy tokens after a left-padded batch."""
    logits = []
    for ids, mask in batches():
        for engine.chunk in (None, CHUNK):
            logits.append(engine.logits(ids, mask)[mask])
    engine.chunk = None
    (ids, mask), _ = batches()
    return np.concatenate(logits), engine.generate(ids, mask, TOKENS)


@cache
def right(family):
    return outputs(ENGINES[family](*random_model(family)))


def usual(bug):
    """True for each of the two usual tests that finds a bug: logits, greedy tokens."""
    try:
        with np.errstate(all="ignore"):
            logits, tokens = outputs(bug.engine(*random_model(bug.family)))
    except (ValueError, IndexError):
        return True, True
    wanted, continued = right(bug.family)
    close = np.allclose(logits[:, : wanted.shape[1]], wanted, atol=TOLERANCE, rtol=TOLERANCE)
    return not close, bool((tokens != continued).any())


def alarms(family):
    """Of the right engine in bfloat16: does allclose refuse it, and how many prompts differ."""
    logits, tokens = outputs(ENGINES[family](*random_model(family), "bfloat16"))
    wanted, continued = right(family)
    close = np.allclose(logits, wanted, atol=TOLERANCE, rtol=TOLERANCE)
    return not close, int((tokens != continued).any(1).sum()), len(continued)


@cache
def results():
    """For each bug the instruments that find it, and whether each usual test does."""
    return {bug.id: (caught(bug), *usual(bug)) for bug in BUGS}


# The page

REASONS = {
    "mask-is-minus-10000": "no score is below -10⁴ where it would matter",
    "weights-in-float16": "the answers leave room for this rounding; needs `number`",
    "positions-reversed-in-a-batch": "distances change only in a prompt that is longer than a "
    "chunk and shorter than another of its batch; `heads` has none",
    "empty-rows-of-the-head-can-win": "the right logit is at least 0; needs `vocabulary`",
    "repeated-tokens-punished": "the right token leads by more than the punishment",
}
"""Why no instrument of `NAMES` finds a bug."""


def reason(bug):
    return REASONS[bug.name]


def mark(is_found):
    return "yes" if is_found else "no"


def rows(found):
    """A row of the table for each bug and family, as cells."""
    for bug in BUGS:
        names, logits, tokens = found[bug.id]
        report = f"[{bug.report}](https://github.com/{bug.report.replace('#', '/issues/')})"
        yield (
            bug.name,
            FAMILIES[bug.family],
            bug.kind,
            ", ".join(names) or "**none**",
            mark(logits),
            mark(tokens),
            report if bug.report else "",
        )


def table(header, rows):
    lines = [f"| {' | '.join(map(str, each))} |" for each in rows]
    return "\n".join([f"| {' | '.join(header)} |", "|" + "---|" * len(header), *lines])


def counts(found):
    for family, title in FAMILIES.items():
        own = [found[bug.id] for bug in BUGS if bug.family == family]
        usual_tests = [any(each[1:]) for each in own]
        either = [bool(names) or test for (names, *_), test in zip(own, usual_tests, strict=True)]
        yield (
            title,
            len(own),
            sum(bool(each[0]) for each in own),
            sum(each[1] for each in own),
            sum(each[2] for each in own),
            sum(usual_tests),
            sum(either),
        )


def page(found, false_alarms):
    missed = [bug for bug in BUGS if not found[bug.id][0]]
    alarmed = [
        f"{FAMILIES[family]}: {changed} of {prompts} prompts"
        for family, (_, changed, prompts) in false_alarms.items()
    ]
    header = ("family", "bugs", "instruments", "logits", "greedy tokens", "both", "all three")
    return TEXT.format(
        names=", ".join(f"`{each}`" for each in NAMES),
        length=LENGTH,
        window=WINDOW,
        tolerance=TOLERANCE,
        tokens=TOKENS,
        refused=", ".join(FAMILIES[each] for each, alarm in false_alarms.items() if alarm[0]),
        alarmed="; ".join(alarmed),
        counts=table(header, counts(found)),
        missed=table(
            ("bug", "family", "usual tests", "reason"),
            [
                (bug.name, FAMILIES[bug.family], mark(any(found[bug.id][1:])), reason(bug))
                for bug in missed
            ],
        ),
        rows=table(
            ("bug", "family", "kind", "instruments", "logits", "greedy", "report"), rows(found)
        ),
    )


TEXT = """# What known answers find

Bugs of inference engines were planted in two eager engines, for GPT-2 and for Llama, which agree
with transformers (`tests/conformance/`). The right engines answer every prompt of the suites
rightly in every mode. Each bug was given to instruments of [conformance.md](conformance.md) and to
the two usual tests. `python tests/conformance/bug_table.py` generates this page in a minute of
processor time, and a test compares it.

- Instruments: {names},
  with prompts up to {length} tokens, in six modes:
  each prompt alone, batches padded on the left and on the right, prefill in chunks, decoding, and
  generation. A bug counts as found if one token is wrong or the engine stops with an error.
- Logits: `allclose` with a tolerance of {tolerance} on the logits of a model with random weights,
  N(0, 0.02), in batches padded on each side, whole and in chunks.
- Greedy: the {tokens} tokens after a left-padded batch of four prompts, with the same model.

{counts}

*Both* counts the bugs that at least one usual test finds, and *all three* those that anything
finds. The usual tests need a reference in the same format. Against a reference in float32, they
refuse the right engine in bfloat16: its logits ({refused}) and its greedy tokens
({alarmed}).
Known answers need no reference.

## Bugs that no instrument finds

An instrument cannot find a bug that changes nothing in its checkpoint. An instrument after *needs*
does not exist yet.

{missed}

## Every bug

A report is a public one of a fault in the same step of a real engine. Windows have {window}
tokens.

{rows}
"""


def check():
    """The page as it would be written now."""
    return page(results(), {family: alarms(family) for family in FAMILIES})


if __name__ == "__main__":
    made = check()
    if "--print" in sys.argv:
        print(made, end="")
    else:
        PAGE.write_text(made, encoding="utf-8")
