"""How large numbers get, by their bits, and how numbers of groups are kept."""

import numpy as np
import pytest

from transformist.engines.structured.groups import marked, translated
from transformist.engines.structured.ranges import TILE, largest_in

SPECIAL = [0.0, -0.0, 5e-324, -1.0, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan, -np.nan]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 2, TILE - 1, TILE, TILE + 1, 3 * TILE])
def test_the_largest_size_of_each_column(n, dtype):
    rng = np.random.default_rng(n)
    for width in (0, 1, 2, 3, 7):
        with np.errstate(over="ignore"):
            x = rng.normal(size=(n, width)).astype(dtype)
        sizes = rng.normal(size=width) ** 2
        expected = [max([was, *np.abs(x[:, m]).tolist()]) for m, was in enumerate(sizes.tolist())]
        largest_in(x, sizes)
        assert sizes.tolist() == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("special", SPECIAL)
def test_what_is_no_number_stays(special, dtype):
    with np.errstate(over="ignore"):
        x = np.array([[-2.0, 1.0]] * (2 * TILE)).astype(dtype)
        x[TILE + 3, 0] = special
    sizes = np.zeros(2)
    largest_in(x, sizes)
    largest_in(x[:1], sizes)
    size = abs(float(x[TILE + 3, 0]))
    expected = size if np.isnan(size) else max(size, 2.0)
    np.testing.assert_array_equal(sizes, [expected, 1.0])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64])
def test_numbers_are_translated(dtype):
    ids = np.array([200, 3, 0, 200, 255], dtype)
    marks, number = marked(ids, 256), np.arange(256, dtype=np.int32)[::-1].copy()
    assert np.flatnonzero(marks).tolist() == [0, 3, 200, 255]
    assert translated(ids, number).tolist() == [55, 252, 255, 55, 0]
    assert not marked(ids[:0], 2).any() and not len(translated(ids[:0], number))
