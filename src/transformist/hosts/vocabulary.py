"""Tokens of a checkpoint: answers, symbols and special tokens, with a tokenizer that splits texts.

Tokens are texts, so that different symbols need different texts. A text is split into characters if
every symbol is one, and else at white space. The tokenizer has no token for other symbols and
refuses a text that holds one.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from transformist.errors import InvalidValue
from transformist.model import Transformer

ENDS = ("<>", "[]", "{}", "⟨⟩", "«»", "⟦⟧")
"""Brackets around the names of special tokens, in the order of choice."""

PRIVATE = (range(0xE000, 0xF900, 2), range(0xF0000, 0x10FFFE, 2))
"""Characters of private use, which serve as brackets where texts have all of these."""

UNUSED = 8
"""The number of tokens is a multiple of this one, which some kernels require."""


def text_of(value: Any) -> str:
    """The text of a symbol or a label; a Boolean is `yes` or `no`."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a checkpoint.

    Attributes:
        texts: the text of each token. The first tokens are the answers, in the order of the labels,
            so that of several largest logits the first belongs to the first label.
        symbols: the token of each row of the word embedding.
        answers: the token of each label.
        front, back: the special tokens that the tokenizer adds to a text.
        pad, bos, eos: the special tokens that every checkpoint has.
        by_character: true if a text is split into characters.

    Example:
        >>> import transformist as tf
        >>> tokens = vocabulary_of(tf.recipe("dyck-1").build(max_length=9), (False, True))
        >>> tokens.texts
        ('no', 'yes', '(', ')', '<bos>', '<pad>', '<eos>', '<unused0>')
        >>> tokens.symbols, tokens.answers
        ((2, 3, 4), (0, 1))

    """

    texts: tuple[str, ...]
    symbols: tuple[int, ...]
    answers: tuple[int, ...]
    front: tuple[int, ...]
    back: tuple[int, ...]
    pad: int
    bos: int
    eos: int
    by_character: bool

    @property
    def answer_texts(self) -> tuple[str, ...]:
        """The text of each label."""
        return tuple(self.texts[each] for each in self.answers)

    @property
    def continues(self) -> bool:
        """True if every answer is a symbol of the input, or ends the text: it can be continued."""
        return {*self.answers} - {self.eos} <= {*self.symbols}

    @property
    def specials(self) -> tuple[int, ...]:
        """The special tokens, each once."""
        return tuple(dict.fromkeys((self.pad, self.bos, self.eos, *self.front, *self.back)))

    def text(self, tokens: Iterable[int]) -> str:
        """The text that the tokenizer splits into these tokens."""
        return ("" if self.by_character else " ").join(self.texts[each] for each in tokens)

    def tokenizer(self) -> bytes:
        """The file `tokenizer.json`."""
        # Without the entry of `unk_token` in the vocabulary, another symbol is an error.
        pattern = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}}
        by_character = {**pattern, "behavior": "Isolated", "invert": False}
        specials = [
            {
                "id": each,
                "content": self.texts[each],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for each in sorted(self.specials)
        ]
        around = {self.texts[each]: each for each in (*self.front, *self.back)}
        return as_json(
            {
                "version": "1.0",
                "truncation": None,
                "padding": None,
                "added_tokens": specials,
                "normalizer": None,
                "pre_tokenizer": by_character if self.by_character else {"type": "WhitespaceSplit"},
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": self._template("A"),
                    "pair": [*self._template("A"), *self._template("B")],
                    "special_tokens": {
                        name: {"id": name, "ids": [each], "tokens": [name]}
                        for name, each in around.items()
                    },
                },
                "decoder": {"type": "Fuse"} if self.by_character else None,
                "model": {
                    "type": "WordLevel",
                    "vocab": {text: number for number, text in enumerate(self.texts)},
                    "unk_token": "",
                },
            }
        )

    def _template(self, sequence: str) -> list[dict[str, Any]]:
        def special(token: int) -> dict[str, Any]:
            return {"SpecialToken": {"id": self.texts[token], "type_id": 0}}

        return [
            *map(special, self.front),
            {"Sequence": {"id": sequence, "type_id": 0}},
            *map(special, self.back),
        ]

    def settings(self, rows: int, padding_side: str) -> bytes:
        """The file `tokenizer_config.json`."""
        return as_json(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "pad_token": self.texts[self.pad],
                "bos_token": self.texts[self.bos],
                "eos_token": self.texts[self.eos],
                # CTranslate2 needs a name. No text becomes this token: `tokenizer.json` has none.
                "unk_token": self.texts[self.eos],
                "padding_side": padding_side,
                "model_max_length": rows,
                "model_input_names": ["input_ids", "attention_mask"],
                "clean_up_tokenization_spaces": False,
            }
        )


def as_json(value: Any) -> bytes:
    """Return a value as the bytes of a file of JSON."""
    return as_utf8(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def as_utf8(text: str) -> bytes:
    """Return a text as the bytes of a file.

    Raises:
        InvalidValue: for half of a surrogate pair, which UTF-8 does not have.

    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(
            "texts of a checkpoint must be Unicode",
            received=f"{error.object[error.start]!a}, half of a surrogate pair",
            where="export",
            remedy="build the model with other symbols or labels, and correct the claim",
        ) from None


def vocabulary_of(model: Transformer, answers: Sequence[Any]) -> Vocabulary:
    """Return the tokens for the symbols of a model and for answers.

    Raises:
        InvalidValue: for symbols or labels that have no text of their own.

    """
    embedding = model.embedding
    added = (*embedding.front, *embedding.back)
    names = [each.lower() for each in ("PAD", *dict.fromkeys(added))]
    if len({*names}) < len(names):
        raise InvalidValue(
            "symbols that a model adds must differ in lower case, and none may be PAD",
            received=f"{', '.join(map(repr, added))}"[:60],
            where="export",
            remedy="name them otherwise, such as BOS and EOS",
        )
    by_character = all(isinstance(each, str) and len(each) == 1 for each in model.alphabet)
    symbols = {each: text_of(each) for each in model.alphabet}
    _require_texts([*symbols.values()], by_character)
    # The label EOS of a language model is the special token, unless it is a symbol.
    named = [text_of(each) for each in answers if each != "EOS" or each in symbols]
    characters = {*"".join([*symbols.values(), *named])}
    # The tokenizer finds special tokens inside of a text: one of their characters must be in none,
    # and in no label, which would become a special token.
    private = (chr(k) + chr(k + 1) for k in itertools.chain(*PRIVATE))
    ends = next(each for each in itertools.chain(ENDS, private) if each[0] not in characters)
    special: dict[Any, str] = {
        each: f"{ends[0]}{each.lower()}{ends[1]}" for each in ("PAD", "BOS", "EOS", *added)
    }
    labels = [
        special["EOS"] if each == "EOS" and each not in symbols else text_of(each)
        for each in answers
    ]
    if len({*labels}) < len(labels):
        _refuse("labels", labels)
    # The empty text stands for a token that does not exist (`tokenizer`).
    if "" in labels:
        raise InvalidValue(
            "a label of a checkpoint must have a text that is not empty",
            received="''",
            where="export",
            remedy="name the label otherwise, or export it with host='onnx'",
        )
    # Labels come first, in their order: `argmax` takes the first of equal logits, as the read-out
    # does.
    every = dict.fromkeys([*labels, *symbols.values(), *(special[each] for each in added)])
    every |= dict.fromkeys(special.values())
    texts = [*every]
    # −n mod 8 tokens are missing to a multiple of 8.
    texts += [f"{ends[0]}unused{k}{ends[1]}" for k in range(-len(texts) % UNUSED)]
    number: dict[Any, int] = {text: k for k, text in enumerate(texts)}
    return Vocabulary(
        texts=tuple(texts),
        symbols=tuple(
            number[special[each] if each in added else symbols[each]] for each in embedding.symbols
        ),
        answers=tuple(number[each] for each in labels),
        front=tuple(number[special[each]] for each in embedding.front),
        back=tuple(number[special[each]] for each in embedding.back),
        pad=number[special["PAD"]],
        bos=number[special["BOS"]],
        eos=number[special["EOS"]],
        by_character=by_character,
    )


def label_texts(answers: Sequence[Any]) -> tuple[str, ...]:
    """Return the texts of labels that are no tokens.

    Raises:
        InvalidValue: for labels that have no text of their own.

    Example:
        >>> label_texts((False, True)), label_texts((0, 1, 2))
        (('no', 'yes'), ('0', '1', '2'))

    """
    labels = [text_of(each) for each in answers]
    if len({*labels}) < len(labels):
        _refuse("labels", labels)
    return tuple(labels)


def _require_texts(texts: Sequence[str], by_character: bool) -> None:
    is_split = any(len(each.split()) != 1 or each != each.strip() for each in texts)
    if len({*texts}) < len(texts) or (is_split and not by_character):
        _refuse("symbols", texts)


def _refuse(kind: str, texts: Sequence[str]) -> None:
    raise InvalidValue(
        f"{kind} of a checkpoint must have different texts without white space",
        received=f"{', '.join(map(repr, texts))[:60]}",
        where="export",
        remedy="build the model with other symbols, or export it with host='onnx'",
    )
