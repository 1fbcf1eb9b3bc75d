"""Tokenizer that refuses what others truncate or replace; this module needs transformers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizerFast

from transformist.errors import InputTooLong, UnknownSymbol


class StrictTokenizerFast(PreTrainedTokenizerFast):
    """Tokenizer that refuses a text that is too long, and a text with an unknown symbol.

    TransformerLens has texts truncated to `n_ctx` tokens. The answer on what is left would be taken
    for the answer on the text.
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

        Args:
            text: a string, or a list of strings.
            args: as for `PreTrainedTokenizerFast`.
            truncation: true to refuse a text of more than `max_length` tokens.
            max_length: the largest number of tokens; without truncation, the length of padding.
            settings: as for `PreTrainedTokenizerFast`.

        Raises:
            InputTooLong: for a text that would be truncated.
            UnknownSymbol: for a text with a symbol that has no token.

        """
        if not truncation:
            settings["max_length"] = max_length
        try:
            found: BatchEncoding = super().__call__(text, *args, truncation=False, **settings)
        except Exception as error:  # tokenizers raises no class of its own
            unknown = next(self._unknown(text), None)
            if "Missing [UNK]" not in str(error) or unknown is None:
                raise
            raise UnknownSymbol(
                "every symbol of a text must have a token",
                received=f"{unknown[0]!r:.40} in {unknown[1]!r:.60}",
                where="tokenizer",
                remedy="write the text with the symbols of the model",
            ) from None
        rows = found["input_ids"]
        is_single = len(rows) == 0 or isinstance(rows[0], int)
        length = len(rows) if is_single else max(map(len, rows))
        if truncation and max_length is not None and length > max_length:
            added = self.num_special_tokens_to_add()
            raise InputTooLong(
                f"a text must have at most N = {max_length - added} symbols",
                received=f"{length - added}",
                where="tokenizer",
                remedy=f"give a shorter text, or build the model with max_length={length - added} "
                "or more",
            )
        return found

    def _unknown(self, text: Any) -> Iterator[tuple[str, str]]:
        """Symbols without a token, each with its text."""
        tokens = self.get_vocab()
        for each in [text] if isinstance(text, str) else text:
            plain = each
            for special in self.all_special_tokens:
                plain = plain.replace(special, " ")
            for symbol, _ in self.backend_tokenizer.pre_tokenizer.pre_tokenize_str(plain):
                if symbol not in tokens and not symbol.isspace():
                    yield symbol, each
