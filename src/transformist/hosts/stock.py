"""Stock classes of transformers: the facts about a class that its files depend on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Stock:
    """A stock class of transformers that a checkpoint is written for.

    Attributes:
        name: the name of the class.
        auto: the name of the Auto class that loads it.
        task: the task of `pipeline`.
        padding_side: the side on which the tokenizer pads.
        generates: true if the answer is the next token; else it is a label of each token.

    """

    name: str
    auto: str
    task: str
    padding_side: str
    generates: bool


def decoder(name: str) -> Stock:
    """A stock class that predicts the next token."""
    return Stock(
        name=name,
        auto="AutoModelForCausalLM",
        task="text-generation",
        padding_side="left",
        generates=True,
    )


def encoder(name: str) -> Stock:
    """A stock class that gives each token a label."""
    return Stock(
        name=name,
        auto="AutoModelForTokenClassification",
        task="token-classification",
        padding_side="right",
        generates=False,
    )
