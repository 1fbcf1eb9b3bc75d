"""A tokenizer that refuses what others cut or replace; this module needs transformers."""

from __future__ import annotations

from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizerFast

from transformist.errors import InputTooLong, UnknownSymbol


class WholeTexts(PreTrainedTokenizerFast):
    """A tokenizer that gives the tokens of whole texts.

    TransformerLens asks for texts to be cut to the rows of its table of positions; the answer on
    what is left would be taken for that on the text.
    """

    def __call__(
        self,
        text: Any = None,
        *args: Any,
        truncation: Any = None,
        max_length: int | None = None,
        **settings: Any,
    ) -> BatchEncoding:
        """Return the tokens of a text, or of several texts.

        Raises:
            InputTooLong: for a text with more tokens than `max_length`, if it should be cut.
            UnknownSymbol: for a text with a symbol that has no token.

        """
        if not truncation:
            settings["max_length"] = max_length  # as the length of padding
        try:
            found: BatchEncoding = super().__call__(text, *args, truncation=False, **settings)
        except Exception as error:  # tokenizers raises no class of its own
            if "Missing [UNK]" not in str(error):
                raise
            tokens = self.convert_ids_to_tokens([*range(len(self))])
            raise UnknownSymbol(
                "a text must consist of the model's symbols",
                received=f"{text!r:.60}",
                where="tokenizer",
                remedy=f"its tokens are {', '.join(map(repr, tokens))}"[:200],
            ) from None
        rows = found["input_ids"]
        several = len(rows) and not isinstance(rows[0], int)
        length = max(map(len, rows), default=0) if several else len(rows)
        if truncation and max_length is not None and length > max_length:
            raise InputTooLong(
                f"a text must have at most {max_length} tokens, with those that the tokenizer adds",
                received=f"{length}",
                where="tokenizer",
                remedy="give a shorter text, or build the model for a larger N",
            )
        return found
