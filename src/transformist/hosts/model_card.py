"""Card of a checkpoint: the file README.md, with what the model computes and for which inputs."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import Any

from transformist.host_evaluation import HOST_ASSUMPTIONS
from transformist.hosts.stock import Stock
from transformist.hosts.vocabulary import Vocabulary
from transformist.verify import TAKEN_FOR_GRANTED

SHOWN = 12
"""The most symbols or answers that a card lists."""

EXAMPLE = 4
"""Symbols in the text of a card's example, where N is not smaller."""

SEARCHED: Mapping[str, tuple[str, ...]] = {
    "float32": ("bfloat16", "float16"),
    "float16": ("float32", "bfloat16"),
}
"""By the format of a checkpoint, the other formats that an export searches for wrong answers."""

FORMATS = ("float32", "bfloat16", "float16", "float64")
"""The formats in a card's table."""

UNTRIED = "| {} | none | untried | nothing |"
"""The row of a format in which nothing was tried."""

GRADES = (
    "not certified",
    "certified for every input (grade 1: proved from the weights)",
    "certified for every input (grade 2: rests on the laws of the compiler's circuits)",
)
"""The words for each grade of a certificate."""


def card(stock: Stock, tokens: Vocabulary, facts: Mapping[str, Any]) -> str:
    """Return the text of a card.

    Args:
        stock: the class of the checkpoint.
        tokens: its tokens.
        facts: the facts about the model, as the checkpoint has them.

    """
    versions = ", ".join(f"{each} {_version(each)}" for each in ("transformers", "torch"))
    symbols = [
        tokens.texts[each] for each in tokens.symbols if each not in (*tokens.front, *tokens.back)
    ]
    caution = f"{stock.caution}\n\n" if stock.caution else ""
    return f"""---
library_name: transformers
pipeline_tag: {stock.task}
{_head(facts["license"])}tags:
- transformist
---

# A compiled transformer

The weights of this {stock.name} were computed from a definition by transformist, without training.

- **Computes**: {facts["claim"] or "not stated"}
- **Input**: {_listed(symbols)}, {_split(tokens)}; at most {facts["max_length"]} symbols
- **Answer**: {_place(stock, facts["at"])}: {_listed(facts["answers"])}

```python
{_example(stock, tokens, symbols, facts)}
```

{_beyond(stock, tokens, facts["at"], facts["max_length"])}

{caution}## For which inputs the answers are right

{table(stock, facts)}
{_compared(facts["compared"], versions)}
{_covered(stock, facts)}

N is the length of the longest input that the row covers. A search covers the inputs that it tried,
and no other; the right answer is that of transformist's reference in float32. Longer inputs and
other number formats are not covered, although the class may accept them. Load the checkpoint in
{facts["arithmetic"]}, which is the default. `transformist.json` holds these facts, with the tokens
of symbols and answers.

## Licence and citation

{_licence(facts["license"])} The constructions follow
*The Transformer Cookbook*, [arXiv:2510.00368](https://arxiv.org/abs/2510.00368).
"""


def _head(license: str) -> str:
    """The line of the licence in the head of a card, if one is given."""
    return f"license: {license}\n" if license else ""


def _licence(license: str) -> str:
    return (
        f"These weights have the licence `{license}`."
        if license
        else "No licence is stated: the author of the definition decides on it."
    )


def table(stock: Stock, facts: Mapping[str, Any]) -> str:
    """The table of N by the number format in which transformers evaluates the checkpoint."""
    rows = [
        f"| number format | N in {stock.name} | shown by | what was tried |",
        "|---|---|---|---|",
        _own_row(facts),
    ]
    searched = {each["arithmetic"]: each for each in facts["searched"]}
    others = [name for name in FORMATS if name != facts["arithmetic"]]
    rows += [_row(name, searched.get(name)) for name in others]
    return "".join(f"{each}\n" for each in rows)


def _own_row(facts: Mapping[str, Any]) -> str:
    """The row of the checkpoint's own format."""
    compared, grade, name = facts["compared"], facts["host_grade"], facts["arithmetic"]
    if grade:
        inputs = "the inputs below were compared, too" if compared else "no input was compared"
        return f"| {name} | {facts['max_length']} | {GRADES[grade]} | {inputs} |"
    if compared is None:
        return UNTRIED.format(name)
    tried = f"{compared['inputs']:,} inputs, no wrong answer"
    return f"| {name} | {compared['longest']} | searched | {tried} |"


def _row(name: str, searched: Mapping[str, Any] | None) -> str:
    """The row of another format."""
    if searched is None:
        return UNTRIED.format(name)
    right, failed = searched["right_to"], searched["failed"]
    inputs = searched["inputs"]
    tried = "1 input was right" if inputs == 1 else f"{inputs:,} inputs were right"
    found = "no wrong answer" if failed is None else f"a wrong answer at length {failed}"
    return f"| {name} | {right if right >= 0 else 'none'} | searched | {tried}; {found} |"


def _covered(stock: Stock, facts: Mapping[str, Any]) -> str:
    """The sentences on what the certificates cover."""
    own = f"In transformist's own evaluation, in {facts['arithmetic']}: {GRADES[facts['grade']]}."
    if facts["host_grade"]:
        return (
            f"{own} The certificate in transformers covers the evaluation by {stock.name} in "
            f"float32 with its norms, for inputs of up to {facts['max_length']} symbols. It "
            f"assumes: {'; '.join((*TAKEN_FOR_GRANTED, *HOST_ASSUMPTIONS))}."
        )
    return (
        f"{own} The evaluation by transformers has norms and another order of summation. It is not "
        f"certified ({facts['host_stopped']}): other inputs than those compared may be wrong there."
    )


def _compared(compared: Mapping[str, Any] | None, versions: str) -> str:
    """The sentences on the inputs of the comparison."""
    if compared is None:
        return "The checkpoint was not compared with transformist's reference."
    ended = f" Longer inputs were not compared: {compared['ended']}." if compared["ended"] else ""
    return (
        f"Compared with transformist's reference in float32 ({versions}): {compared['inputs']:,} "
        "inputs, at every position that is read, all answers equal: every string up to length "
        f"{compared['every_to']}, and hard strings up to length {compared['longest']}.{ended}"
    )


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "of an unknown version"


def _listed(texts: list[str]) -> str:
    shown = ", ".join(f"`{each}`" for each in texts[:SHOWN])
    return shown if len(texts) <= SHOWN else f"{shown}, … ({len(texts)} in all)"


def _split(tokens: Vocabulary) -> str:
    return "one character each" if tokens.by_character else "separated by white space"


def _place(stock: Stock, at: str) -> str:
    if not stock.generates:
        return "the label of " + ("each token of the input" if at == "every" else "the last token")
    after = "each symbol of the input" if at == "every" else "the input"
    return f"the most probable token after {after}"


def _example(stock: Stock, tokens: Vocabulary, symbols: list[str], facts: Mapping[str, Any]) -> str:
    at, size = facts["at"], min(EXAMPLE, facts["max_length"])
    text = ("" if tokens.by_character else " ").join((symbols * size)[:size])
    # A pipeline leaves tokens with the label O out, unless it is told otherwise.
    has_o = not stock.generates and "O" in facts["answers"]
    settings = ", ignore_labels=[]" if has_o else ""
    pipeline = f"""from transformers import pipeline
ask = pipeline("{stock.task}", model="."{settings})  # this directory
"""
    if stock.generates:
        return f"{pipeline}ask({text!r}, return_full_text=False)"
    if at == "every":
        return f'{pipeline}[each["entity"] for each in ask({text!r})]'
    return f'{pipeline}ask({text!r})[-1]["entity"]'


def _beyond(stock: Stock, tokens: Vocabulary, at: str, longest: int) -> str:
    """The paragraph on what the class gives beside an answer."""
    if not stock.generates:
        return (
            "Symbols that the tokenizer adds have labels too, which mean nothing."
            if at == "every"
            else "The labels of all tokens but the last mean nothing."
        )
    if at != "every":
        return "The logits of earlier tokens mean nothing."
    said = (
        "The logits at each token of the input give the answer for the input up to this token. "
        "`generate` gives the answer at the last token"
    )
    if not tokens.continues:
        return f"{said}."
    ends = tokens.eos in tokens.answers
    until = f", until the answer is `{tokens.texts[tokens.eos]}`" if ends else ""
    return (
        f"{said}, appends it to the text, and goes on{until}. Symbols that were generated count as "
        f"input: without `max_new_tokens` a text is continued to {longest + 1} symbols, and with "
        "it the text and its continuation must stay within that."
    )
