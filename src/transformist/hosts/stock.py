"""Stock classes of transformers: facts about a class, and the mapping of a model to its arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from transformist.hosts.plain_model import PlainModel
from transformist.hosts.vocabulary import Vocabulary
from transformist.model import Mask, Transformer

Arrays: TypeAlias = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""The settings of a class, beside those that every class has, and its weights by their names."""


def _all_are_held(plain: PlainModel, host: str) -> None:
    """Refuse no plain model: the class has no condition but its masks."""


@dataclass(frozen=True, kw_only=True)
class Stock:
    """A stock class of transformers that a checkpoint is written for.

    Attributes:
        host: the name of the host.
        name: the name of the class.
        auto: the name of the Auto class that loads it.
        task: the task of `pipeline`.
        padding_side: the side on which the tokenizer pads.
        generates: true if the answer is the next token; else it is a label of each token.
        masks: the masks that its heads may have.
        mapping: the function that fits a plain model to the class and returns its arrays.
        require: the function of a plain model and of the name of the host that refuses a model
            which the class does not hold.
        caution: a sentence for the card on what the Auto classes do otherwise; empty if nothing.

    """

    host: str
    name: str
    auto: str
    task: str
    padding_side: str
    generates: bool
    masks: tuple[Mask, ...]
    mapping: Callable[[PlainModel, Transformer, Vocabulary], Arrays]
    require: Callable[[PlainModel, str], None] = _all_are_held
    caution: str = ""


def decoder(
    host: str,
    name: str,
    mapping: Callable[[PlainModel, Transformer, Vocabulary], Arrays],
    require: Callable[[PlainModel, str], None] = _all_are_held,
) -> Stock:
    """A stock class that predicts the next token."""
    return Stock(
        host=host,
        name=name,
        auto="AutoModelForCausalLM",
        task="text-generation",
        padding_side="left",
        generates=True,
        masks=(Mask.FUTURE,),
        mapping=mapping,
        require=require,
    )


def encoder(
    host: str, name: str, mapping: Callable[[PlainModel, Transformer, Vocabulary], Arrays]
) -> Stock:
    """A stock class that gives each token a label."""
    return Stock(
        host=host,
        name=name,
        auto="AutoModelForTokenClassification",
        task="token-classification",
        padding_side="right",
        generates=False,
        masks=(Mask.NONE,),
        mapping=mapping,
    )
