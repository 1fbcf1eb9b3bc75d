"""From a text back to the tokens that gave it."""

from __future__ import annotations

from collections.abc import Sequence


class NotTokens(ValueError):
    """A text that tokens of the vocabulary do not give, or that several rows of them give."""


def segmented(text: str, vocabulary: Sequence[str], most: int) -> list[int]:
    """Return the tokens, at most `most`, whose texts make up a text.

    Servers give the text of new tokens without spaces at its ends, and without special tokens.

    Raises:
        NotTokens: if no tokens or several rows of as many tokens give the text.

    """
    # `ways` has the rows of some number of tokens by the number of letters that they make up; two
    # rows are as good as many.
    text, tokens = text.strip(), {each: number for number, each in enumerate(vocabulary) if each}
    longest = max(map(len, tokens), default=0)
    ways: dict[int, list[list[int]]] = {0: [[]]}
    whole: list[list[int]] = []
    for _ in range(most + 1):
        # A server gives as many tokens as it may: a longer row is the likelier one.
        whole = ways.get(len(text), []) or whole
        following: dict[int, list[list[int]]] = {}
        for at, rows in ways.items():
            for end in range(at + 1, min(at + longest, len(text)) + 1):
                token = tokens.get(text[at:end])
                if token is not None:
                    longer = [[*row, token] for row in rows]
                    following[end] = (following.get(end, []) + longer)[:2]
        ways = following
    if len(whole) == 1:
        return whole[0]
    if whole:
        raise NotTokens(f"several rows of {len(whole[0])} tokens give the text {text!r:.60}")
    raise NotTokens(f"the text {text!r:.60} is not that of {most} tokens of the vocabulary")
