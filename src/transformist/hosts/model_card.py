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

## For which inputs the answers are right

| number format | N | in transformist's own evaluation | in transformers |
|---|---|---|---|
| float32 | {facts["max_length"]} | {GRADES[facts["grade"]]} | {_in_host(facts)} |
| float16, bfloat16 | none | not examined | not compared |

{_compared(facts["compared"], versions)}
{_covered(stock, facts)}

Longer inputs and other number formats are not covered, although the class may accept them. Load
the checkpoint in float32, which is the default. `transformist.json` holds these facts, with
the tokens of symbols and answers.

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
        else "No licence is stated: the definition's author decides on that of these weights."
    )


def _in_host(facts: Mapping[str, Any]) -> str:
    """The cell on the evaluation by transformers."""
    return f"{GRADES[facts['host_grade']]}, and compared on the inputs below"


def _covered(stock: Stock, facts: Mapping[str, Any]) -> str:
    """The sentences on what the certificates cover."""
    if facts["host_grade"]:
        return (
            f"The certificate in transformers covers the evaluation by {stock.name} in float32 "
            f"with its norms, for inputs of up to {facts['max_length']} symbols. It assumes: "
            f"{'; '.join((*TAKEN_FOR_GRANTED, *HOST_ASSUMPTIONS))}."
        )
    return (
        "A certificate is a statement about transformist's evaluation of the weights. The "
        "evaluation by transformers has norms and another order of summation. It is not "
        f"certified ({facts['host_stopped']}): the certificate does not cover it."
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
    return (
        f"{said}, appends it to the text, and goes on. Symbols that were generated count as input: "
        f"without `max_new_tokens` a text is continued to {longest + 1} symbols, and with it the "
        "text and its continuation must stay within that."
    )
