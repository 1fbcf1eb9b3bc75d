"""Words and answers of a decoder that predicts the next token."""

from __future__ import annotations

import numpy as np

from transformist.hosts.plain_model import Matrix, PlainModel
from transformist.hosts.vocabulary import Vocabulary

# Beside an answer with 0 or more, softmax gives such a token the weight exp(−2¹⁰), 0 in float32.
NEVER = -(2.0**10)
"""The logit of a token that is no answer, where the first answer has 0."""


def word_vectors(plain: PlainModel, tokens: Vocabulary) -> Matrix:
    """The word embedding: a row for each token, zeros for tokens that are no symbol."""
    words = np.zeros((len(tokens.texts), plain.width))
    words[[*tokens.symbols]] = plain.words
    return words


def answer_logits(plain: PlainModel, tokens: Vocabulary, constant: int) -> Matrix:
    """The map from the stream to logits of all tokens, without a bias.

    Args:
        plain: the model.
        tokens: its tokens.
        constant: the slot that holds 1, from which the bias is read.

    """
    # Logits count up to a common summand. Less those of the first answer, the largest of the
    # answers' logits is at least 0, which no other token has.
    logits = np.zeros((len(tokens.texts), plain.width))
    # Rows of answers are written over these below; all other tokens keep `NEVER`.
    logits[:, constant] = NEVER
    rows = plain.W_out.copy()
    rows[:, constant] += plain.b_out
    logits[[*tokens.answers]] = rows - rows[0]
    return logits
