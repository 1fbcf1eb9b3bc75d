"""A stream in parts is the vectors it stands for, whatever is added to it."""

import random
import threading

import numpy as np
import pytest

from transformist.arithmetic import FLOAT32, FLOAT64
from transformist.engines.structured import stream_vectors as row_kinds
from transformist.engines.structured import threads
from transformist.engines.structured.groups import Groups
from transformist.engines.structured.once import once
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.row_by_row import Beside, Many
from transformist.engines.structured.sparse import SparseMap
from transformist.engines.structured.stream_vectors import Few

WIDTH = 8


def drawn(rnd, n, width, dtype):
    """Vectors, few of them distinct or none equal, and how the engine has them."""
    numbers = np.random.default_rng(rnd.random().__hash__() % 2**32)
    if rnd.random() < 0.4:
        vectors = numbers.normal(size=(n, width)).astype(dtype)
        return vectors, Many(vectors.copy())
    table = numbers.integers(-2, 3, (rnd.randint(1, 4), width)).astype(dtype) / 3
    ids = numbers.integers(0, len(table), n).astype(np.int32)
    return table[ids], Few.of(table, ids)


def sub(rnd, width):
    """Some coordinates, in order."""
    return sorted(rnd.sample(range(width), rnd.randint(1, width)))


def begun(rnd, n, a):
    """A stream of some coordinates in parts, and the vectors."""
    z, parts, left = np.empty((n, WIDTH), a.dtype), [], list(range(WIDTH))
    if rnd.random() < 0.7:
        rnd.shuffle(left)
    while left:
        size = rnd.choice((1, 2, 6))
        own, left = sorted(left[:size]), left[size:]
        z[:, own], rows = drawn(rnd, n, len(own), a.dtype)
        parts.append((own, rows))
    return z, ResidualStream.of(n, parts)


@pytest.mark.trials(60, 600)
@pytest.mark.parametrize("a", [FLOAT64, FLOAT32], ids=lambda a: a.name)
@pytest.mark.parametrize("much", [0, 2**18], ids=["threads", "one thread"])
def test_what_is_added_is_added(a, much, monkeypatch, trials):
    monkeypatch.setattr(row_kinds, "BLOCK", 16)
    monkeypatch.setattr(row_kinds, "SHARE", 3)
    monkeypatch.setattr(threads, "MUCH", much)
    kinds = set()
    for seed in range(trials):
        rnd = random.Random(seed)
        n = rnd.choice((0, 1, 2, 40, 100))
        z, stream = begun(rnd, n, a)
        for _ in range(4):
            columns = sub(rnd, WIDTH)
            added, rows = drawn(rnd, n, len(columns), a.dtype)
            z[:, columns] = added + z[:, columns]
            stream = stream.plus(columns, rows, a)
            kinds |= {type(part) for part in stream.parts}
            read = sub(rnd, WIDTH)
            assert np.array_equal(stream.whole().whole(), z)
            assert np.array_equal(stream.rows(read).whole(), z[:, read])
            backwards = slice(None, None, -1)
            assert np.array_equal(stream.rows(read).at(backwards), z[backwards][:, read])
            vectors, numbers = stream.rows(read).indexed(backwards)
            assert np.array_equal(vectors[numbers], z[backwards][:, read])
            vectors, numbers = stream.rows(read).by_columns(backwards)
            assert np.array_equal(vectors[numbers], z[backwards][:, read])
            assert (stream.sizes(range(WIDTH)) >= abs(z).max(axis=0, initial=0)).all()
            W = np.zeros((3, WIDTH), a.dtype)
            W[:, read] = rnd.choice((1, 0.5))
            part = SparseMap.of(W, np.arange(3).astype(a.dtype))
            assert np.array_equal(stream.image(part).whole(), part(z))
            assert np.array_equal(stream.image(part.rows([2, 0])).whole(), part(z)[:, [2, 0]])
            assert np.array_equal(part.by_columns(z), part(z))
    assert kinds == {Few, Many}


def test_what_few_decide_is_computed_once_for_each():
    """Two symbols and two neighbours: four vectors, whatever is computed of them."""
    ids, met = np.arange(1000, dtype=np.int32) % 2, []
    few = Few.of(np.eye(2), ids)
    stream = ResidualStream.of(1000, [([0, 1], few), ([2], Few.of(np.zeros((1, 1)), 0 * ids))])
    stream = stream.plus([2], Few.of(np.array([[0.0], [1.0]]), ids // 2), FLOAT64)

    def noted(x):
        met.append(len(x))
        return x

    assert isinstance(stream.whole().through(noted, 3), Few)
    assert met == [2]


def test_columns_of_many_are_beside_each_other_and_not_few():
    n = 100
    stream = ResidualStream.of(
        n,
        [([0], Many(np.arange(n)[:, None] / 1)), ([1], Few.of(np.eye(2)[:, :1], np.arange(n) % 2))],
    )
    assert isinstance(stream.whole(), Beside)
    groups = Groups(2, n, np.dtype(float))
    assert stream.whole().numbered(groups).tolist() == list(range(n))
    assert stream.whole().numbered(Groups(2, n - 1, np.dtype(float))) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 3, 4, 9])
def test_a_number_that_has_overflowed_is_never_missed(bad, row, monkeypatch):
    monkeypatch.setattr(row_kinds, "BLOCK", 4)
    z = np.ones((10, 2))
    z[row, 1] = bad
    assert np.isfinite(Many(z).sizes).tolist() == [True, False]


def test_work_on_all_processors_is_whole_and_raises():
    assert threads.on_all_processors(lambda i: i * i, range(50), numbers=threads.MUCH) == [
        i * i for i in range(50)
    ]
    assert [i * i for i in range(50)] == [
        found for _, found in threads.one_ahead(lambda i: i * i, range(50), numbers=threads.MUCH)
    ]
    for use in (threads.on_all_processors, lambda *given: list(threads.one_ahead(*given))):
        with pytest.raises(ZeroDivisionError):
            use(lambda i: 1 / (i - 30), range(50), threads.MUCH)


def test_properties_of_two_objects_are_computed_at_the_same_time():
    """Neither waits for the other, so that no process that is forked meanwhile waits for ever."""
    both = threading.Barrier(2)

    class Slow:
        @once
        def number(self):
            return both.wait(timeout=60)

    first, second = Slow(), Slow()
    thread = threading.Thread(target=lambda: second.number)
    thread.start()
    own = first.number
    thread.join()
    assert {own, second.number} == {0, 1}
    assert first.number == first.__dict__["number"]


def test_a_table_longer_than_a_block_is_not_gone_through_for_each(monkeypatch):
    monkeypatch.setattr(row_kinds, "BLOCK", 4)
    few = Few.of(np.arange(10.0)[:, None], np.arange(40) % 10)
    vectors, numbers = few.indexed(slice(8, 12))
    assert vectors.tolist() == [[8.0], [9.0], [0.0], [1.0]] and numbers.tolist() == [0, 1, 2, 3]
