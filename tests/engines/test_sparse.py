"""Affine maps by their entries that are not 0: the numbers of a sum from left to right."""

import numpy as np
import pytest

from transformist.engines.structured.sparse import TILE, SparseMap


def applied(W, b, x):
    """W x + b for each row, a product after the other, each rounded."""
    images = []
    for row in x:
        image = []
        for weights, shift in zip(W, b, strict=True):
            total = W.dtype.type(0)
            for weight, number in zip(weights, row, strict=True):
                if weight != 0:
                    total = W.dtype.type(total + W.dtype.type(number * weight))
            image.append(W.dtype.type(total + shift))
        images.append(image)
    return np.array(images, W.dtype).reshape(len(x), len(W))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 2, TILE - 1, TILE, TILE + 1])
def test_rows_with_any_number_of_entries(n, dtype):
    """Also those that are only one of several, and 0 with either sign."""
    rng = np.random.default_rng(n)
    W = rng.normal(size=(9, 8))
    for row, entries in enumerate([0, 1, 2, 3, 4, 5, 8, 1, 2]):
        W[row, rng.choice(8, 8 - entries, replace=False)] = 0
    W, b = W.astype(dtype), rng.normal(size=9).astype(dtype)
    b[-2:] = -0.0
    x = (rng.normal(size=(n, 8)) * 10.0 ** rng.integers(-9, 9, size=(n, 8))).astype(dtype)
    x[::3] = 0 * x[::3]
    own, expected = SparseMap.of(W, b), applied(W, b, x)
    bits = np.dtype(f"u{expected.itemsize}")
    for found in (own(x), np.ascontiguousarray(own.by_columns(x))):
        assert found.dtype == dtype
        assert (found.view(bits) == expected.view(bits)).all()
    z = rng.normal(size=(n, 12)).astype(dtype)
    into = rng.permutation(12)[:9]
    more = z.copy()
    more[:, into] += expected
    own.add(x, z, into)
    assert (z.view(bits) == more.view(bits)).all()
