"""A tensor notation for the original transformer: its formulas as index sums in numpy."""

import math

import numpy as np
import pytest

HEADS, d, WORDS, LENGTH = 2, 4, 7, 5  # n_h, d, L, ℓ, small
D = HEADS * d


def softmax(x):
    """Over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def drawn(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


W_q, W_k, W_v = (drawn(HEADS, d, d, seed=seed) for seed in (1, 2, 3))


def one_hot(tokens):
    """x^{β,α}: a column a word."""
    return np.eye(WORDS)[:, tokens]


def scores(e):
    """(8), (9), (11): B^{ν,α,α'}, the first position being that of the query."""
    Q, K = (np.einsum("hij,ja->hia", W, e) for W in (W_q, W_k))
    return np.einsum("hia,hib->hab", Q, K) / math.sqrt(d)


def attention(e, index="hda,hba->hdb"):
    """(12), V^{ν,δ,α} and B*^{ν,α',α} summed over α, the key; or over another index."""
    V = np.einsum("hij,ja->hia", W_v, e)
    return np.einsum(index, V, softmax(scores(e)))


PRINTED = "hda,hab->hdb"  # V^{ν,δ,α} B*^{ν,α,α'} summed over α, the first index of B*

TOKENS = [3, 0, 6, 6, 1]
EMBEDDED = drawn(d, WORDS) @ one_hot(TOKENS)


def by_hand(e):
    """Attention position by position: each query's weights over keys, then the sum of values."""
    columns = []
    for h in range(HEADS):
        q, k, v = (W[h] @ e for W in (W_q, W_k, W_v))
        rows = [
            sum(w * v[:, j] for j, w in enumerate(softmax(q[:, i] @ k / math.sqrt(d))))
            for i in range(LENGTH)
        ]
        columns.append(np.array(rows).T)
    return np.array(columns)


def test_printed_sum_is_over_queries():
    """The weights that meet at one output do not sum to 1; with the key as index they do."""
    weights = softmax(scores(EMBEDDED))
    assert weights.sum(axis=2) == pytest.approx(np.ones((HEADS, LENGTH)))
    assert np.abs(weights.sum(axis=1) - 1).max() > 0.1
    assert np.abs(attention(EMBEDDED, PRINTED) - by_hand(EMBEDDED)).max() > 0.1
    assert attention(EMBEDDED) == pytest.approx(by_hand(EMBEDDED))
    V = np.einsum("hij,ja->hia", W_v, EMBEDDED)  # (13): V B* is the printed sum, V (B*)ᵀ the other
    assert V @ weights == pytest.approx(attention(EMBEDDED, PRINTED))
    assert V @ weights.transpose(0, 2, 1) == pytest.approx(by_hand(EMBEDDED))


def test_printed_widths_do_not_fit_the_residual_connection():
    """e has d rows, A^{[D],[ℓ]} has D: they cannot be added, nor can A be the next layer's e."""
    A = attention(EMBEDDED).reshape(D, LENGTH)
    with pytest.raises(ValueError, match="broadcast"):
        A + EMBEDDED
    with pytest.raises(ValueError, match="broadcast"):
        scores(A)
    wide = drawn(HEADS, d, D)  # W_q of D × D in all, and an embedding of D rows
    Q = np.einsum("hij,ja->hia", wide, A)
    assert Q.reshape(D, LENGTH).shape == A.shape


def test_printed_embedding_matrix_stands_where_the_embedded_words_are_meant():
    """W_q E has a column for each word of the vocabulary, Q^{[D],[ℓ]} one for each position."""
    E = drawn(d, WORDS)
    assert (W_q.reshape(D, d) @ E).shape == (D, WORDS) != (D, LENGTH)
    e = E @ one_hot(TOKENS)
    Q = np.einsum("hij,ja->hia", W_q, e)
    assert W_q.reshape(D, d) @ e == pytest.approx(Q.reshape(D, LENGTH))


def test_without_an_output_matrix_heads_do_not_meet():
    """As printed, coordinates νd … νd + d − 1 come from head ν alone; W_O mixes the heads."""
    changed = W_v.copy()
    changed[1] += 1
    V = np.einsum("hij,ja->hia", changed, EMBEDDED)
    other = np.einsum("hda,hba->hdb", V, softmax(scores(EMBEDDED))).reshape(D, LENGTH)
    same = attention(EMBEDDED).reshape(D, LENGTH)
    moved = np.abs(other - same).max(axis=1) > 1e-9
    assert not moved[:d].any() and moved[d:].all()
    W_O = drawn(D, D)
    assert (np.abs(W_O @ other - W_O @ same).max(axis=1) > 1e-9).all()


def test_without_a_mask_a_position_sees_what_follows():
    """The decoder of the original transformer masks j > i; the printed scores are of all pairs."""
    E = drawn(d, WORDS)
    first = [attention(E @ one_hot([*TOKENS[:-1], last]))[:, :, 0] for last in range(WORDS)]
    assert np.ptp(first, axis=0).max() > 0.01

    def masked(tokens):
        e = E @ one_hot(tokens)
        seen = np.where(np.tri(LENGTH, dtype=bool), scores(e), -np.inf)
        return np.einsum("hij,ja,hba->hib", W_v, e, softmax(seen))

    first = [masked([*TOKENS[:-1], last])[:, :, 0] for last in range(WORDS)]
    assert np.ptp(first, axis=0).max() < 1e-12


def positional(count, width):
    """(15): sin(β/10^{4δ/d}) for even δ, cos(β/10^{4(δ − 1)/d}) for odd δ."""
    beta = np.arange(count)
    rows = [
        np.sin(beta / 10 ** (4 * k / width)) if k % 2 == 0 else
        np.cos(beta / 10 ** (4 * (k - 1) / width))
        for k in range(width)
    ]  # fmt: skip
    return np.array(rows)


def test_without_positions_the_order_of_words_does_not_matter():
    """(7) gives e = E x; E_pos is defined but enters no equation. Permuted words, permuted A."""
    E, order = drawn(d, WORDS), [4, 2, 0, 1, 3]
    plain = attention(E @ one_hot(TOKENS))
    permuted = attention(E @ one_hot([TOKENS[k] for k in order]))
    assert permuted == pytest.approx(plain[:, :, order])
    P = positional(LENGTH, d)
    plain = attention(E @ one_hot(TOKENS) + P)
    together = attention(E @ one_hot([TOKENS[k] for k in order]) + P[:, order])
    assert together == pytest.approx(plain[:, :, order])
    permuted = attention(E @ one_hot([TOKENS[k] for k in order]) + P)
    assert np.abs(permuted - plain[:, :, order]).max() > 0.01


def test_phase_changes_by_a_quarter_turn_from_even_to_odd_only():
    """Row δ + 1 is row δ a quarter turn on, sin(β/λ + φ + π/2), exactly where δ is even."""
    width, count = 64, 200
    P, beta = positional(count, width), np.arange(count)
    for k in range(width - 1):
        wave, phase = 10 ** (4 * (k - k % 2) / width), k % 2 * np.pi / 2
        assert np.allclose(P[k], np.sin(beta / wave + phase))
        assert np.allclose(P[k + 1], np.sin(beta / wave + phase + np.pi / 2)) == (k % 2 == 0), k


def test_printed_network_acts_across_positions():
    """W₁^{[d],[ℓ]} multiplies the axis of positions, so one word moves the output at the others.

    Its size would change with ℓ. With W₁^{[D'],[D]} on the axis of coordinates none of it is so.
    """
    x = drawn(D, LENGTH)
    moved = x.copy()
    moved[:, 2] += 1
    W_1, b_1, W_2, b_2 = drawn(LENGTH, 8), drawn(1, 8), drawn(8, LENGTH), drawn(1, LENGTH)

    def across(x):  # (17), row by row
        return np.maximum(0, x @ W_1 + b_1) @ W_2 + b_2

    V_1, c_1, V_2, c_2 = drawn(8, D), drawn(8, 1), drawn(D, 8), drawn(D, 1)

    def along(x):
        return V_2 @ np.maximum(0, V_1 @ x + c_1) + c_2

    others = [0, 1, 3, 4]
    assert np.abs(across(moved) - across(x))[:, others].max() > 0.1
    assert not np.abs(along(moved) - along(x))[:, others].any()
    with pytest.raises(ValueError, match="mismatch"):
        across(drawn(D, LENGTH + 1))
    assert along(drawn(D, LENGTH + 1)).shape == (D, LENGTH + 1)


def test_the_second_printed_bias_cannot_be_the_first():
    """b₁ is [1],[d] before and [1],[ℓ] after W₂: one tensor has not both shapes unless d = ℓ."""
    x, W_1, W_2, b_1 = drawn(1, LENGTH), drawn(LENGTH, 8), drawn(8, LENGTH), drawn(1, 8)
    hidden = np.maximum(0, x @ W_1 + b_1)
    with pytest.raises(ValueError, match="broadcast"):
        hidden @ W_2 + b_1
    assert (hidden @ W_2 + drawn(1, LENGTH)).shape == x.shape


def test_the_printed_norm_of_a_softmax_counts():
    """‖exp(x)‖₀ is the number of entries, since none is 0; ‖exp(x)‖₁ is their sum."""
    for x in ([1, 0, 0], [10, 0, 0], [2, 2, 2], [-3, 4]):
        e = np.exp(np.array(x, dtype=float))
        assert np.linalg.norm(e, 0) == len(x)
        assert (e / np.linalg.norm(e, 0)).sum() != pytest.approx(1)
        assert e / np.linalg.norm(e, 1) == pytest.approx(softmax(np.array(x, dtype=float)))
    e = np.exp([1.0, 0, 0])
    assert e / np.linalg.norm(e, 0) == pytest.approx([0.906, 0.333, 0.333], abs=1e-3)
