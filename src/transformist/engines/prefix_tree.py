"""Evaluation of every string to a length, in which strings share what their prefixes computed.

In a model whose masks all look back, and whose positions do not know n, the vectors of the rows up
to row i depend on the symbols up to row i alone. So a string that is one symbol longer takes one
more row: its query meets the keys and values that the prefix left in every head. The strings of one
length that have a prefix in common are evaluated together, and all strings with one prefix before
those with the next, which bounds the memory.

The numbers are those of the reference, bit for bit. For a row i the reference also adds 0 · vⱼ for
each later row j, and requires the scores of these rows to be finite. Neither changes anything where
every vⱼ is finite and no product of a query and a key overflows. Where this is not certain the tree
raises `NotShared`, and the strings are left to the reference.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, Array, Floating, Interval
from transformist.domains import String, Strings
from transformist.model import Attention, Heads, NearestFraction, Outputs, ReadOut, Transformer

MOST_NUMBERS = 2**23
"""Most cached numbers of strings that are evaluated together: 64 MiB in float64.

Extending the strings takes twice as much again.
"""

SCORES = 6
"""Numbers for each score in memory while the weights of a row are computed."""


class NotShared(Exception):
    """Raised where a number may overflow, so that rows might differ from the reference."""


def shares_prefixes(model: Transformer) -> bool:
    """True if every row depends on the symbols up to it alone, and so does every answer.

    Example:
        >>> import transformist as tf
        >>> shares_prefixes(tf.recipe("dyck-1").build())
        True

    """
    # Symbols at the back, CLS and functions of n would make a row depend on the end of the string,
    # and a fraction of the symbols ahead would do so in the read-out.
    positions, read_out = model.embedding.positions, model.read_out
    return (
        all(head.mask.is_causal for layer in model.layers for head in layer.heads)
        and not (positions is not None and positions.knows_n)
        and not model.embedding.back
        and read_out.at != "cls"
        and all(map(_looks_back, _parts(read_out)))
    )


def _parts(read_out: ReadOut) -> tuple[ReadOut, ...]:
    return read_out.parts if isinstance(read_out, Outputs) else (read_out,)


def _looks_back(read_out: ReadOut) -> bool:
    return not isinstance(read_out, NearestFraction) or read_out.mask.is_causal


@dataclass(frozen=True)
class Level:
    """Strings of one length in the order of their symbols, and the answers of the model.

    Attributes:
        length: the length.
        first: the place of the first string among all strings of this length, from 0.
        strings: consecutive strings.
        answers: the answer on each.

    """

    length: int
    first: int
    strings: list[String]
    answers: list[Any]


@dataclass(frozen=True)
class _Cache:
    """Keys and values of the rows of some strings in one head.

    Attributes:
        keys: shape (strings, rows, d_key).
        values: shape (strings, rows, d_value).
        largest_query: the largest magnitude in a query so far.

    """

    keys: Array
    values: Array
    largest_query: float

    def of(self, strings: NDArray[np.int64]) -> _Cache:
        return _Cache(self.keys[strings], self.values[strings], self.largest_query)


@dataclass(frozen=True)
class _Node:
    """Strings of one length, all with one prefix.

    Attributes:
        length: the length.
        first: the place of the first string among all strings of this length.
        strings: the strings, in the order of their symbols.
        caches: keys and values in each head; empty before the first row.
        last: the final vectors of the last row, shape (strings, 1, d); `None` before the first row.
        answers: for each string, the answers at its positions; empty if there is a single answer.

    """

    length: int
    first: int
    strings: list[String]
    caches: tuple[_Cache, ...]
    last: Array | None
    answers: list[tuple[Any, ...]]

    def only(self, k: int) -> _Node:
        """The string with index k alone."""
        # An array as index copies the rows: a slice would keep the caches of all strings in memory.
        one = np.array([k])
        return _Node(
            self.length,
            self.first + k,
            [self.strings[k]],
            tuple(cache.of(one) for cache in self.caches),
            None if self.last is None else self.last[one],
            [self.answers[k]],
        )


def branches(
    model: Transformer,
    domain: Strings,
    length: int,
    a: Arithmetic,
    most_numbers: int = MOST_NUMBERS,
    *,
    prefix: Sequence[Any] = (),
) -> Iterator[Iterator[Level]]:
    """Yield the answers on every string of at most `length` symbols that begins with a prefix.

    Args:
        model: a model whose strings share prefixes (`shares_prefixes`).
        domain: the strings; the model has all symbols of its alphabet.
        length: length of the longest strings, at most N.
        a: the number system.
        most_numbers: largest number of numbers that strings evaluated together keep.
        prefix: at most `length` symbols with which the strings begin; empty for all strings.

    Raises:
        NotShared: while a branch is evaluated, if a number may overflow.

    Returns:
        Branches, each to be gone through before the next. The first has all strings from the length
        of the prefix to a length p. Each of the others has the longer strings that begin with one
        string of length p; these come in their order. A branch has its levels by increasing length;
        a model without BOS has no answer on the empty string, and so no level for it.

    Example:
        >>> import transformist as tf
        >>> from transformist.arithmetic import number_system
        >>> from transformist.domains import Strings
        >>> model = tf.recipe("dyck-1").build(max_length=4)
        >>> brackets = Strings(("(", ")"), lambda _: ())
        >>> for branch in branches(model, brackets, 2, number_system("float64")):
        ...     for level in branch:
        ...         print(level.first, level.strings, level.answers)
        0 [''] [True]
        0 ['(', ')'] [False, False]
        0 ['((', '()', ')(', '))'] [False, True, False, False]

    """
    tree = _Tree(model, domain, a)
    root = tree.at(prefix)
    trunk = _Branch(tree, root, tree.split(length, most_numbers, root.length))
    yield itertools.chain([] if root.last is None else [tree.level(root)], trunk)
    if trunk.length < length:
        for k in range(len(trunk.node.strings)):
            yield iter(_Branch(tree, trunk.node.only(k), length))


class _Branch:
    """The strings that begin with one of a node's, level by level, up to a length."""

    def __init__(self, tree: _Tree, node: _Node, length: int) -> None:
        self.tree, self.node, self.length = tree, node, length

    def __iter__(self) -> Iterator[Level]:
        while self.node.length < self.length:
            self.node = self.tree.extended(self.node)
            yield self.tree.level(self.node)


class _Tree:
    """The strings of a domain, as prefixes of each other."""

    def __init__(self, model: Transformer, domain: Strings, a: Arithmetic) -> None:
        self.model, self.a = model, a
        self.sublayers = [each for layer in model.layers for _, each in layer.sublayers()]
        embedding = model.embedding
        rows = {symbol: row for row, symbol in enumerate(embedding.symbols)}
        self.front = [rows[symbol] for symbol in embedding.front]
        self.alphabet = np.array([rows[symbol] for symbol in domain.alphabet], dtype=np.int64)
        self.symbols = domain.alphabet
        (self.empty,) = domain.every(0)
        self.of_one = list(domain.every(1, 1))

    def split(self, length: int, most_numbers: int, least: int) -> int:
        """The least p for which strings that share a prefix of length p fit in `most_numbers`."""
        # The strings with one prefix of length p number |Σ|^(length − p) at the most. Each keeps
        # the keys and values of all rows, and needs some numbers for each score of the next row.
        heads = [head for layer in self.model.layers for head in layer.heads]
        row = SCORES + sum(head.W_K.shape[0] + head.W_V.shape[0] for head in heads)
        fit = max(1, most_numbers // (row * (length + len(self.front) + 1) + self.model.width))
        return next(
            p for p in range(least, length + 1) if len(self.alphabet) ** (length - p) <= fit
        )

    def root(self) -> _Node:
        """The empty string, with the rows of the symbols in front."""
        node = _Node(0, 0, [self.empty], (), None, [()])
        for place, row in enumerate(self.front, start=1 - len(self.front)):
            caches, last = self._with_row(node.caches, np.array([[row]]), place)
            node = _Node(0, 0, node.strings, caches, last, node.answers)
        return node

    def at(self, prefix: Sequence[Any]) -> _Node:
        """A string, with the rows of its symbols and of those in front."""
        node = self.root()
        for symbol in prefix:
            node = self.extended(node).only(self.symbols.index(symbol))
        return node

    def extended(self, node: _Node) -> _Node:
        """The strings with one more symbol."""
        count, symbols = len(node.strings), len(self.alphabet)
        # String k has the children k |Σ| to k |Σ| + |Σ| − 1, one for each symbol: the order of the
        # domain, in which the place of a string is its number in base |Σ|.
        parents = np.repeat(np.arange(count), symbols)
        caches = tuple(cache.of(parents) for cache in node.caches)
        rows = np.tile(self.alphabet, count)[:, None]
        caches, last = self._with_row(caches, rows, node.length + 1)
        strings: list[Any] = [x + s for x in node.strings for s in self.of_one]  # type: ignore[operator]
        return _Node(
            node.length + 1,
            node.first * symbols,
            strings,
            caches,
            last,
            self._extended_answers(node, last, parents),
        )

    def level(self, node: _Node) -> Level:
        """The answers on the strings of a node."""
        read_out, n = self.model.read_out, node.length
        # Without BOS the empty string has no row. With it, a read-out of the last position reads
        # BOS.
        if n == 0 and node.last is not None and read_out.at != "every":
            answers = self._read(node.last, 0)
            if read_out.reads_several:
                answers = [read_out.join([each], 0) for each in answers]
        elif read_out.reads_several:
            answers = [read_out.join(list(each), n) for each in node.answers]
        else:
            answers = self._read(node.last, n)
        return Level(n, node.first, node.strings, answers)

    def _extended_answers(
        self, node: _Node, last: Array, parents: NDArray[np.int64]
    ) -> list[tuple[Any, ...]]:
        """The answers at all positions of the strings with one more symbol."""
        if not self.model.read_out.reads_several:
            return [()] * len(parents)
        new = self._read(last, node.length + 1)
        return [(*node.answers[k], each) for k, each in zip(parents.tolist(), new, strict=True)]

    def _read(self, last: Array, n: int) -> list[Any]:
        """The answers from the final vectors of the last row of strings of length n."""
        read_out, a = self.model.read_out, self.a
        if not any(isinstance(each, NearestFraction) for each in _parts(read_out)):
            return read_out(last[:, 0], n, a)
        # `NearestFraction` takes several rows for consecutive positions: here each is position n.
        y = read_out.values(last, a)
        return [read_out.answers(y[k], n, a)[0] for k in range(y.shape[0])]

    def _with_row(
        self, caches: tuple[_Cache, ...], rows: NDArray[np.int64], place: int
    ) -> tuple[tuple[_Cache, ...], Array]:
        """Caches with one row more, and the final vectors of this row.

        Args:
            caches: of the rows before; empty before the first.
            rows: for each string the row of its symbol in the embedding, shape (strings, 1).
            place: the position of the row; symbols in front have 0, −1, ….

        """
        a, model, before, after = self.a, self.model, iter(caches), list[_Cache]()
        z = model.embedding.rounded(a).vectors[rows]
        if model.embedding.positions is not None:
            # The positions do not know n (`shares_prefixes`), so any n serves that the table
            # covers.
            places = range(place, place + 1)
            z = a.add(z, model.embedding.positions.at(places, max(place, 0), a))
        for sublayer in self.sublayers:
            if isinstance(sublayer.function, Heads):
                x = sublayer.read(z, a)
                outputs = []
                for head in sublayer.function.heads:
                    cache, c = self._attended(head, x, next(before, None))
                    after.append(cache)
                    outputs.append(head.output(c, a))
                z = sublayer.added(sublayer.function.total(outputs, a), z, a)
            else:
                z = sublayer.on(z, a)
        if model.final_norm is not None:
            z = model.final_norm.on(z, a)
        return tuple(after), z

    def _attended(self, head: Attention, x: Array, before: _Cache | None) -> tuple[_Cache, Array]:
        """The cache with the row x of each string, and Σ weight · value for the query of x."""
        a = self.a
        q, k, v = head.queries(x, a), head.keys(x, a), head.values(x, a)
        cache = self._cached(q, k, v, before)
        j = np.arange(cache.keys.shape[-2])
        admissible = head.mask.admissible(j[-1:, None], j[None, :])
        weights = head.weighting(a.scores(q, cache.keys), admissible, a)
        return cache, a.matmul(weights, cache.values)

    def _cached(self, q: Array, k: Array, v: Array, before: _Cache | None) -> _Cache:
        """The cache with one row more.

        Raises:
            NotShared: if a value is not finite, or the score of an earlier query may overflow.

        """
        a = self.a
        # The reference computes every score, also those that the mask leaves out, and refuses an
        # overflow. A later query with an earlier key is computed here as well, so what is left to
        # check is this key with the queries before it.
        largest_query, largest_key = self._largest(q), self._largest(k)
        is_finite = self._largest(v) < np.inf
        if before is not None:
            largest_query = max(largest_query, before.largest_query)
            k = a.concatenate([before.keys, k], axis=-2)
            v = a.concatenate([before.values, v], axis=-2)
        # The scores of this key with earlier queries, which the mask leaves out, are not computed.
        # |q · k| ≤ d_key · max |q| · max |k|; the factor 2 covers the rounding of the sum.
        most = 2.0 * q.shape[-1] * largest_query * largest_key
        if not (is_finite and (a.saturates or a.largest is None or most < a.largest)):
            raise NotShared
        return _Cache(k, v, largest_query)

    def _largest(self, x: Array) -> float:
        """The largest magnitude, where numbers can overflow; NaN counts as infinite."""
        if not isinstance(self.a, Floating | Interval):
            return 0.0
        numbers = np.abs(self.a.numbers(x).astype(np.float64)) + self.a.radius(x).astype(np.float64)
        largest = float(numbers.max(initial=0.0))
        return largest if largest < np.inf else np.inf
