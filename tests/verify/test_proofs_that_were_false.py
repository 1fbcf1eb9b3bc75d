"""Models of which a proof once held, and a format decided otherwise, or refused the input."""

import itertools
from fractions import Fraction as F

import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.verify.certificate.observing import hardened
from transformist.verify.proof import EVALUATIONS, prove
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.upwards import Unfollowed
from transformist.verify.proof.walking import Walk


def model(words, *layers, read_out, positions=None, final_norm=None):
    width = len(next(iter(words.values())))
    return tf.Transformer(
        stream=tf.Stream(tuple(f"s{k}" for k in range(width))),
        embedding=tf.Embedding(
            symbols=tuple(words),
            vectors=list(words.values()),
            positions=tf.PositionFunctions(positions) if positions else None,
        ),
        layers=layers,
        read_out=read_out,
        final_norm=final_norm,
    )


def accept(*W, b=0):
    return tf.Binary(W_out=[W], b_out=[b])


def head(keys, *, W_O=((0,), (1,)), **given):
    return tf.Layer((tf.Attention(W_K=keys, W_O=W_O, **given),))


def network(**given):
    return tf.Layer((), tf.FeedForward(**given))


NONE = [[0, 0]]


def a_step_of_a_fine_height():
    """h is finer than the grid of x, so that x − h is not on that grid."""
    units = network(
        W_1=[[1, 0, 0], [1, 0, 0], [0, 1, 0]],
        b_1=[-F(1, 2), -F(3, 4), 0],
        W_2=[[0, 0, 0], [0, 0, 0], [1, -1, 1]],
    )
    words = {"a": [1, 100, 0], "b": [0, 100, 0]}
    return model(words, units, read_out=accept(0, -1, 1, b=-F(1, 8))), "bfloat16", 1


def a_shift_that_rounds_to_0():
    units = network(
        W_1=[[1, 0], [1, 0]], b_1=[-F(1, 2), -F(3, 2)], W_2=[[0, 0], [1, -1]], b_2=[0, 1e-30]
    )
    return model({"a": [0, 0], "b": [2, 0]}, units, read_out=accept(0, 1)), "float16", 1


def more_keys_than_the_largest_number():
    keys = NONE * 8
    even = head(keys, W_Q=keys, W_V=[[1, 0]])
    return model({"a": [1, 0], "b": [-1, 0]}, even, read_out=accept(1, 0)), "float32:4", 2


def scores_of_the_smallest_number():
    """Divided by √2 the smallest number and twice it are equal."""
    lookup = head(
        [[2.0**-12, 0], [0, 0]],
        W_Q=NONE * 2,
        b_Q=[2.0**-12, 0],
        W_V=[[1, 0]],
        weighting="leftmost-hard",
    )
    words = {"a": [1, 0], "b": [2, 0]}
    return model(words, lookup, read_out=accept(0, 1, b=-1.5)), "float16", 2


def an_epsilon_that_overflows_beside_the_variance():
    norm = tf.LayerNorm(gain=[1, 1], epsilon=65500)
    words = {"a": [30, 0], "b": [-30, 0]}
    return model(words, read_out=accept(1, 0), final_norm=norm), "float16", 1


def a_weight_that_float64_does_not_hold():
    return model({"a": [1], "b": [-1]}, read_out=accept("1e-400")), "float64", 1


def more_rows_than_the_largest_number():
    mean = head(
        [[1, 0, 0]],
        W_Q=[[0, 0, 0]],
        b_Q=[F(1, 64)],
        W_V=[[0, 0, 0]],
        b_V=[1],
        W_O=[[0], [1], [0]],
    )
    words, places = {"a": [0, 0, 0]}, ("1/i", None, None)
    return model(words, mean, read_out=accept(0, -1, 0, b=1.5), positions=places), "float32:2", 4


def a_count_whose_shifts_round():
    read_out = tf.MultiClass(
        W_out=[[0, 0], [F(2, 3), -F(2, 3)], [F(4, 3), -F(4, 3)]],
        b_out=[0, -F(1, 3), -F(4, 3)],
        labels=("0", "1", "2"),
    )
    words = {"a": [257, 256], "b": [256, 256], "c": [255, 255]}
    return model(words, read_out=read_out), "bfloat16", 1


def a_mean_of_places_without_bos():
    """The mean of 1 to n is (n + 1)/2: beside a constant that is brought, 1/2 was lost."""
    mean = head(NONE, W_Q=NONE, W_V=[[-1, 1]])
    words = {"a": [0, 5], "b": [0, 5]}
    return (
        model(words, mean, read_out=accept(0, 1, b=-F(33, 4)), positions=("i", None)),
        "float32",
        3,
    )


def weight_that_strays_to_a_row_that_is_never_the_best():
    """BOS, whose value is large, is never attended to in the ideal."""
    stray = head([[1, 0]], W_Q=NONE, b_Q=[1], W_V=[[0, 1]], mask="future", W_O=[[0], [1]])
    embedding = tf.Embedding(
        symbols=("a", "BOS"),
        vectors=[[0, 0], [0, 64]],
        positions=tf.PositionFunctions(("i", None)),
        front=("BOS",),
    )
    return (
        tf.Transformer(
            stream=tf.Stream(("i", "v")),
            embedding=embedding,
            layers=(stray,),
            read_out=tf.Binary(W_out=[[0, 1]], b_out=[-1]),
        ),
        "float32",
        2,
    )


def a_bound_times_the_rows_that_overflows_beside_a_weight_of_0():
    """41 times the last slot is more than the largest float64; 0 times that was NaN, then 0."""

    def times(factor, slot, b):
        row, column = [0] * 5, [[0] for _ in range(5)]
        row[slot], column[slot + 1] = factor, [1]
        return network(W_1=[row], b_1=[b], W_2=column)

    mean = head([[0] * 5], W_Q=[[0] * 5], W_V=[[0] * 5], W_O=[[0]] * 5)
    layers = (mean, times(2.0**400, 1, 0), times(2.0**400, 2, -1), times(2.0**220, 3, -1))
    read_out = tf.NearestFraction(
        W_out=[[2**60 + 1, 0, 0, 0, 0]], at="every", scale=1, mask="none", with_bos=False
    )
    words = {"a": [1, 1, 0, 0, 0], "b": [0, -1, 0, 0, 0]}
    return model(words, *layers, read_out=read_out), "float64", 40


FALSE = (
    a_bound_times_the_rows_that_overflows_beside_a_weight_of_0,
    a_step_of_a_fine_height,
    a_shift_that_rounds_to_0,
    more_keys_than_the_largest_number,
    scores_of_the_smallest_number,
    an_epsilon_that_overflows_beside_the_variance,
    a_weight_that_float64_does_not_hold,
    more_rows_than_the_largest_number,
    a_count_whose_shifts_round,
    weight_that_strays_to_a_row_that_is_never_the_best,
)


def decides(built, arithmetic, x):
    try:
        return built(x, arithmetic)
    except tf.TransformistError:
        return "refused"


@pytest.mark.parametrize("made", FALSE, ids=lambda made: made.__name__)
def test_what_a_format_decides_otherwise_is_not_proved(made):
    built, arithmetic, n = made()
    lengths = range(1, min(n, 4) + 1)
    inputs = [x for k in lengths for x in itertools.product(built.alphabet, repeat=k)]
    has_root = built.final_norm is not None  # irrational, and far from a threshold in float64
    exact, system = (built, "float64") if has_root else (hardened(built), "exact")
    ideal = {x: exact(x, system) for x in inputs}
    assert any(decides(built, arithmetic, x) != ideal[x] for x in inputs)
    assert not prove(built, number_system(arithmetic), n, "any").holds


def test_sums_of_more_terms_than_the_allowance_of_bounds_are_refused():
    wide = [[0]] * 2049
    layer = head(wide, W_Q=wide, b_Q=[1] * 2049, b_K=[1] * 2049, W_V=[[0]], W_O=[[0]])
    built, float32 = model({"a": [1]}, layer, read_out=accept(1)), number_system("float32")
    assert "more than 2048 coordinates" in prove(built, float32, 1, "any").stopped
    walk = Walk(built, float32, 1, EVALUATIONS["any"], Ledger())
    with pytest.raises(Unfollowed, match="more than 2048 vectors"):
        walk.rounding.added([walk.embedded()] * 2049, "layer 0")


def test_a_mean_of_places_is_the_mean():
    built, arithmetic, n = a_mean_of_places_without_bos()
    found = prove(built, number_system(arithmetic), n, "any")
    inputs = ["a" * k for k in range(1, n + 1)]
    assert [built(x, arithmetic) for x in inputs] == [hardened(built)(x, "exact") for x in inputs]
    assert found.holds


def test_sums_that_are_divided_last_must_fit():
    """Values of 2·10³⁸ add up to more than the largest float32."""
    mean = head(NONE, W_Q=NONE, W_V=[[1, 0]], W_O=[[0], [2.0**-100]])
    words = {"a": [2e38, 0], "b": [1.9e38, 0]}
    built = model(words, mean, read_out=accept(0, -1, b=1e10))
    assert prove(built, number_system("float32"), 3, "any").holds
    assert not prove(built, number_system("float32"), 3, "flash").holds


def test_an_epsilon_may_be_any_rational():
    norm = tf.LayerNorm(gain=[1, 1], epsilon=F(1, 3))
    built = model({"a": [30, 0], "b": [-30, 0]}, read_out=accept(1, 0), final_norm=norm)
    assert prove(built, number_system("float32"), 3, "any").holds


def test_a_certificate_of_what_cannot_be_followed_does_not_hold():
    """All margins up to there are kept; scores of the second head overflow."""
    stream = tf.Stream(("u", "v", "p", "o"))
    words = {"a": {"u": -1, "v": 100}, "b": {"u": 100}, "BOS": {"u": F(1, 2), "v": -2}}
    embedding = tf.Embedding.of(stream, words, positions={"p": "(-1)^i"}, front=["BOS"])
    first = tf.Attention(
        W_Q=[[0, 0, 1, 0]],
        W_K=[[0, 0, -300, 0]],
        W_V=[[0, 0, 1, 0]],
        W_O=[[0], [0], [0], [1]],
        weighting="leftmost-hard",
        mask="future",
    )
    second = tf.Attention(
        W_Q=[[-1, 0, 0, 0]],
        W_K=[[0, 0, 1000, 0]],
        W_V=[[0, 1, 0, 0]],
        W_O=[[0], [0], [0], [1]],
        weighting="average-hard",
        mask="strict-future",
    )
    built = tf.Transformer(
        stream=stream,
        embedding=embedding,
        layers=(tf.Layer((first, second)),),
        read_out=accept(0, 0, 0, 1, b=F(8, 3)),
        max_length=4,
    )
    found = tf.certify(built, "float16")
    assert not found.holds and not found.grade and not found.largest_length
    assert "numbers may be larger than 6.55e+04" in str(found)


@pytest.mark.parametrize("weighting", ["softmax", "leftmost-hard", "average-hard"])
def test_the_first_symbol_sees_bos_alone_under_a_strict_mask(weighting):
    """Its own row has a larger score than BOS, and is not admissible."""
    lookup = tf.Attention(
        W_Q=[[0, 0, 0]],
        b_Q=[64],
        W_K=[[1, 0, 0]],
        W_V=[[0, 1, 0]],
        W_O=[[0], [0], [1]],
        mask="strict-future",
        weighting=weighting,
    )
    built = tf.Transformer(
        stream=tf.Stream(("i", "v", "o")),
        embedding=tf.Embedding(
            symbols=("a", "BOS"),
            vectors=[[0, 0, F(1, 2)], [0, 4096, 0]],
            positions=tf.PositionFunctions(("i", None, None)),
            front=("BOS",),
        ),
        layers=(tf.Layer((lookup,)),),
        read_out=accept(0, 0, 1, b=-4096),
        max_length=4,
    )
    assert hardened(built)("a", "exact") and not built("a", "float16")
    for order in ("any", "reference", "flash"):
        assert not prove(built, number_system("float16"), 4, order).holds


@pytest.mark.parametrize("order", ["any", "reference"])
def test_a_bias_that_rounds_to_0_is_no_part_of_a_common_factor(order):
    """Three means of one mask have one factor; a bias of 2⁻²⁶ is 0 in float16, and decides."""

    def unit(k, size=1):
        return [size if j == k else 0 for j in range(6)]

    def mean(into, b):
        return tf.Attention(
            W_Q=[[0] * 6],
            W_K=[[0] * 6],
            W_V=[unit(1)],
            W_O=[[int(k == into)] for k in range(6)],
            b_O=unit(into, b),
            mask="future",
            weighting="average-hard",
        )

    row = [-64, 0, 1024, -512, -512, 0]
    step = tf.FeedForward(
        W_1=[row, row], b_1=[0, -F(1, 2**17)], W_2=[[0, 0]] * 5 + [[2**14, -(2**14)]]
    )
    built = tf.Transformer(
        stream=tf.Stream(tuple("sxabcy")),
        embedding=tf.Embedding(
            symbols=("a", "b", "BOS"),
            vectors=[[1, F(1, 512), 0, 0, 0, 0], unit(0), [0] * 6],
            front=("BOS",),
        ),
        layers=(tf.Layer((mean(2, F(1, 2**26)), mean(3, 0), mean(4, 0)), step),),
        read_out=accept(*unit(5), b=-F(1, 16)),
        max_length=3,
    )
    assert built("", "exact") and not built("", "float16")
    assert not prove(built, number_system("float16"), 3, order).holds
