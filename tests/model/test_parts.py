"""Feed-forward networks, norms, layers, embeddings, read-outs and streams, each by definition."""

import math
from fractions import Fraction

import numpy as np
import pytest

from transformist.arithmetic import FLOAT64
from transformist.errors import (
    InputTooLong,
    InvalidValue,
    NotFinite,
    NotRepresentable,
    ShapeMismatch,
    UndefinedValue,
    UnknownName,
    UnknownSymbol,
)
from transformist.model import (
    BOS,
    CLS,
    EOS,
    Attention,
    Binary,
    Embedding,
    FeedForward,
    FeedForwardStack,
    LanguageModel,
    Layer,
    LayerNorm,
    MultiClass,
    NearestFraction,
    NearZero,
    PositionFunctions,
    PositionTable,
    Sinusoids,
    Stream,
    Sublayer,
    Transformer,
)


class TestFeedForward:
    def test_equals_the_definition(self):
        rng = np.random.default_rng(0)
        W_1, b_1 = rng.integers(-3, 4, (5, 3)), rng.integers(-3, 4, 5)
        W_2, b_2 = rng.integers(-3, 4, (2, 5)), rng.integers(-3, 4, 2)
        network = FeedForward(W_1=W_1, b_1=b_1, W_2=W_2, b_2=b_2)
        x = rng.integers(-3, 4, (7, 3))
        expected = np.maximum(x @ W_1.T + b_1, 0) @ W_2.T + b_2
        for arithmetic in ("exact", "float64", "float32", "float16", "bfloat16"):
            assert (np.array(network(x, arithmetic).tolist(), dtype=float) == expected).all()

    def test_activations_that_are_not_rational(self):
        forms = {
            "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
            "tanh": math.tanh,
            "elu": lambda x: x if x > 0 else math.expm1(x),
            "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
            "gelu-tanh": lambda x: (
                x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
            ),
            "gelu-sigmoid": lambda x: x / (1 + math.exp(-1.702 * x)),
        }
        for name, form in forms.items():
            network = FeedForward(W_1=[[1]], W_2=[[1]], activation=name)
            for x in (-6.0, -1.5, -0.1, 0.0, 0.3, 1.0, 5.0, 30.0):
                assert network([x])[0] == pytest.approx(form(x), rel=1e-9, abs=1e-15)
            with pytest.raises(NotRepresentable):
                network([1], "exact")

    def test_refusals(self):
        with pytest.raises(ShapeMismatch, match="W_2"):
            FeedForward(W_1=[[1], [1]], W_2=[[1]])
        with pytest.raises(ShapeMismatch, match="b_1"):
            FeedForward(W_1=[[1]], b_1=[1, 2], W_2=[[1]])
        with pytest.raises(ShapeMismatch, match="one length"):
            FeedForward(W_1=[[1], [1, 2]], W_2=[[1]])
        with pytest.raises(NotFinite, match=r"FeedForward\.W_1"):
            FeedForward(W_1=[[math.nan]], W_2=[[1]])
        with pytest.raises(NotFinite):
            FeedForward(W_1=[[1]], W_2=[[math.inf]])
        with pytest.raises(UnknownName, match="relu"):
            FeedForward(W_1=[[1]], W_2=[[1]], activation="rellu")
        with pytest.raises(ShapeMismatch, match="stack"):
            one = FeedForward(W_1=[[1]], W_2=[[1]])
            FeedForwardStack((one, FeedForward(W_1=[[1, 1]], W_2=[[1]])))

    def test_weights_too_large_for_a_format_are_refused_there(self):
        network = FeedForward(W_1=[[1e6]], W_2=[[1]])
        assert network([1])[0] == 1e6
        with pytest.raises(NotFinite, match="65504"):
            network([1], "float16")


class TestLayerNorm:
    def test_equals_the_definition(self):
        rng = np.random.default_rng(1)
        x, gain, bias = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=6)
        for epsilon in (0, 1e-5, 0.5):
            mean = x.mean(axis=1, keepdims=True)
            variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
            expected = (x - mean) / np.sqrt(variance + epsilon) * gain + bias
            norm = LayerNorm(gain=gain, bias=bias, epsilon=epsilon)
            assert np.allclose(norm(x), expected, rtol=1e-12)

    def test_the_selecting_matrix_comes_first(self):
        norm = LayerNorm(gain=[1, 1], W_N=[[1, 0, 0], [0, 0, 1]])
        assert norm([5, 77, 1]).tolist() == [1, -1]

    def test_exact_where_the_variance_is_a_square(self):
        assert LayerNorm(gain=[1, 2], bias=[0, 1])([4, 0], "exact").tolist() == [1, -1]
        assert LayerNorm(gain=[1, 1], epsilon=3)([2, 0], "exact").tolist() == [
            Fraction(1, 2),
            Fraction(-1, 2),
        ]
        with pytest.raises(NotRepresentable, match="square"):
            LayerNorm(gain=[1, 1, 1])([1, 0, 0], "exact")

    def test_refusals(self):
        with pytest.raises(UndefinedValue, match="constant|equal"):
            LayerNorm(gain=[1, 1])([3, 3])
        with pytest.raises(InvalidValue, match="ε must be at least 0"):
            LayerNorm(gain=[1, 1], epsilon=-1)
        with pytest.raises(ShapeMismatch, match="W_N"):
            LayerNorm(gain=[1, 1], W_N=[[1, 0]])


class TestLayer:
    double = FeedForward(W_1=[[1, 0], [-1, 0], [0, 1], [0, -1]], W_2=[[1, -1, 0, 0], [0, 0, 1, -1]])
    norm = LayerNorm(gain=[1, 1])

    def test_residual_pre_and_post_norm(self):
        assert Sublayer(self.double)([3, 1]).tolist() == [6, 2]
        assert Sublayer(self.double, pre_norm=self.norm)([3, 1]).tolist() == [4, 0]
        assert Sublayer(self.double, post_norm=self.norm)([3, 1]).tolist() == [1, -1]

    def test_heads_are_summed_into_the_stream(self):
        heads = tuple(
            Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[0, 0], [k, 0]], mask=mask)
            for k, mask in ((1, "none"), (10, "future"))
        )
        z = Layer(heads=heads)([[1, 0], [3, 0]])
        assert z.tolist() == [[1, 2 + 10], [3, 2 + 20]]

    def test_attention_comes_before_the_feed_forward_network(self):
        mean = Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[0, 0], [1, 0]])
        z = Layer(heads=(mean,), feed_forward=self.double)([[2, 0], [4, 0]])
        assert z.tolist() == [[4, 6], [8, 6]]

    def test_each_sublayer_has_norms_of_its_own(self):
        mean = Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[0, 0], [1, 0]])
        norms = [LayerNorm(gain=[k, 1], bias=[0, k], epsilon=k) for k in (1, 2, 3, 4)]
        z = np.array([[2.0, 0.0], [4.0, 1.0]])
        layer = Layer((mean,), self.double, tuple(norms[:2]), tuple(norms[2:]))
        middle = norms[2](mean(norms[0](z)) + z)
        assert np.allclose(layer(z), norms[3](self.double(norms[1](middle)) + middle))

    def test_refusals(self):
        with pytest.raises(ShapeMismatch, match="give"):
            Sublayer(FeedForward(W_1=[[1, 0]], W_2=[[1]]))
        with pytest.raises(ShapeMismatch, match="needs its sublayer"):
            Layer(pre_norms=(self.norm, None))


STREAM = Stream(("sign", "place"))


class TestStream:
    def test_names_are_unique_and_known(self):
        with pytest.raises(InvalidValue, match="no name twice"):
            Stream(("x", "x"))
        with pytest.raises(InvalidValue):
            Stream(())
        with pytest.raises(UnknownName, match="did you mean sign"):
            STREAM.index("sgin")

    def test_forms_are_exact(self):
        assert STREAM.reading({"sign": Fraction(1, 3)})[0, 0] == Fraction(1, 3)


TABLE = PositionTable(vectors=[[5], [7]])


class TestEmbedding:
    def embedding(self, **changes):
        words = {"a": {"sign": 1}, "b": {"sign": -1}, BOS: {}, EOS: {}, CLS: {}}
        return Embedding.of(STREAM, words, **changes)

    def test_word_and_position_are_added(self):
        made = self.embedding(positions={"place": "i/n"}, front=[BOS], back=[EOS])
        z = made(["ab"], FLOAT64)[0]
        assert z.tolist() == [[0, 0], [1, 0.5], [-1, 1], [0, 1.5]]

    def test_positions_are_functions_of_i_and_n(self):
        expected = {
            "i": [1, 2, 3],
            "i^2": [1, 4, 9],
            "i^3": [1, 8, 27],
            "1/i": [1, Fraction(1, 2), Fraction(1, 3)],
            "i/n": [Fraction(1, 3), Fraction(2, 3), 1],
            "(-1)^i": [-1, 1, -1],
        }
        for name, values in expected.items():
            z = self.embedding(positions={"place": name})(["aba"], FLOAT64)[0]
            assert z[:, 1].tolist() == [float(value) for value in values]

    def test_any_encoding_is_added(self):
        words = [[1, 0], [0, 3]]
        for encoding in (
            PositionTable(vectors=[[1, 2], [3, 4], [5, 6]]),
            PositionFunctions((None, "1/i")),
            Sinusoids(2),
        ):
            made = Embedding(symbols=("a", "b"), vectors=words, positions=encoding)
            for n in (1, 2, 3):
                z = made(["abb"[:n], "bba"[:n]], FLOAT64)
                rows = encoding(n, "exact").tolist()
                for got, x in zip(z, ("abb", "bba"), strict=True):
                    for i, symbol in enumerate(x[:n]):
                        word = words["ab".index(symbol)]
                        expected = [
                            Fraction(one) + two for one, two in zip(word, rows[i], strict=True)
                        ]
                        assert got[i].tolist() == [float(value) for value in expected]
            assert made.nonzero == 2 + encoding.nonzero

    def test_refusals(self):
        with pytest.raises(UnknownSymbol, match=r"'x' at position 2; remove it"):
            self.embedding(front=[BOS], back=[EOS, CLS])(["ax"], FLOAT64)
        with pytest.raises(UnknownSymbol, match="BOS"):
            self.embedding(front=[BOS])([[BOS]], FLOAT64)
        with pytest.raises(UndefinedValue, match="1/i"):
            self.embedding(positions={"place": "1/i"}, front=[BOS])(["a"], FLOAT64)
        with pytest.raises(UnknownName, match="position function"):
            self.embedding(positions={"place": "1/n^2"})
        with pytest.raises(UnknownName, match="symbol"):
            Embedding.of(STREAM, {"a": "sign"}, front=[BOS])
        with pytest.raises(InvalidValue, match="position encoding, or None"):
            Embedding(symbols=("a",), vectors=[[1]], positions=((0, "i"),))
        with pytest.raises(
            ShapeMismatch,
            match="width of the word vectors, 1; received PositionFunctions of width 2",
        ):
            Embedding(symbols=("a",), vectors=[[1]], positions=PositionFunctions(("i", None)))
        table = Embedding(symbols=("a", BOS), vectors=[[1], [1]], positions=TABLE, front=(BOS,))
        with pytest.raises(UndefinedValue, match="position 0, of a symbol in front"):
            table(["a"], FLOAT64)
        table = Embedding(symbols=("a", EOS), vectors=[[1], [1]], positions=TABLE, back=(EOS,))
        assert table(["a"], FLOAT64).tolist() == [[[6], [8]]]
        with pytest.raises(InputTooLong, match="n = 2, and a last position of 3"):
            table(["aa"], FLOAT64)
        with pytest.raises(InvalidValue, match="once"):
            Embedding(symbols=("a", "a"), vectors=[[1, 0], [0, 1]])


def model(read_out, **changes):
    words = {"a": {"sign": 1}, "b": {"sign": -1}, BOS: {}, EOS: {}, CLS: {"sign": 5}}
    return Transformer(
        stream=STREAM,
        embedding=Embedding.of(STREAM, words, **changes),
        layers=(),
        read_out=read_out,
    )


class TestReadOut:
    def test_binary_at_the_last_and_at_every_position(self):
        sign = STREAM.reading("sign")
        assert model(Binary(W_out=sign))("ba") is True
        assert model(Binary(W_out=sign))("ab") is False
        assert model(Binary(W_out=sign, at="every"), front=[BOS], back=[EOS])("ab") == [True, False]
        assert model(Binary(W_out=sign, b_out=[-1]))("a") is False  # 0 is not accepted

    def test_cls_in_front_and_at_the_back(self):
        above = Binary(W_out=STREAM.reading("sign"), b_out=[-4], at="cls")
        assert model(above, front=[CLS])("ab") is True
        assert model(above, front=[BOS], back=[CLS, EOS])("ab") is True
        with pytest.raises(InvalidValue, match="CLS"):
            model(above, front=[BOS])

    def test_multi_class_gives_labels_and_the_first_on_a_tie(self):
        rows = STREAM.reading({"sign": 1}, {"sign": -1})
        assert model(MultiClass(W_out=rows, labels=("x", "y"), at="every"))("aba") == "xyx"
        assert model(MultiClass(W_out=rows, labels=("up", "down"), at="every"))("ab") == [
            "up",
            "down",
        ]
        assert model(MultiClass(W_out=rows, labels=("x", "y")), back=[EOS])("a") == "x"
        assert model(MultiClass(W_out=rows, labels=("x", "y")))("b") == "y"

    def test_language_model_gives_distributions(self):
        rows = STREAM.reading({"sign": 1}, {"sign": -1})
        read_out = LanguageModel(W_out=rows, labels=("x", "y"), at="every")
        distribution = model(read_out)("ab")[1]
        assert distribution["x"] == pytest.approx(1 / (1 + math.e**2), rel=1e-12)
        assert sum(distribution.values()) == pytest.approx(1)

    def test_near_zero_is_half_the_least_magnitude(self):
        for power, n, least in ((1, 3, Fraction(1, 8)), (2, 3, Fraction(1, 32))):
            read_out = NearZero(W_out=[[1]], powers=(power,))
            assert read_out(FLOAT64.array([[float(least) * 0.99]]), n, FLOAT64) == [True]
            assert read_out(FLOAT64.array([[float(least)]]), n, FLOAT64) == [False]
            assert read_out(FLOAT64.array([[-float(least)]]), n, FLOAT64) == [False]
        with pytest.raises(InvalidValue):
            NearZero(W_out=[[1]], powers=(-1,))

    def test_fractions_are_of_the_last_positions_up_to_n(self):
        values = FLOAT64.array([[0.26], [0.26], [0.26]])  # at positions 2, 3 and 4
        for mask, expected in (
            ("none", [Fraction(1, 4)] * 3),
            ("future", [0.5, Fraction(1, 3), Fraction(1, 4)]),
            ("strict-future", [0, 0.5, Fraction(1, 3)]),
        ):
            read_out = NearestFraction(W_out=[[1]], at="every", scale=1, mask=mask, with_bos=False)
            assert read_out(values, 4, FLOAT64) == expected, mask
        before = NearestFraction(
            W_out=[[1]], at="every", scale=1, mask="strict-future", with_bos=False
        )
        assert before(FLOAT64.array([[5.0]]), 0, FLOAT64) == [0]  # of BOS, in front of position 1

    def test_refusals(self):
        with pytest.raises(ShapeMismatch, match="one row"):
            Binary(W_out=[[1, 0], [0, 1]])
        with pytest.raises(UnknownName, match="every"):
            Binary(W_out=[[1, 0]], at="evry")
        with pytest.raises(ShapeMismatch):
            MultiClass(W_out=[[1, 0]], labels=("x", "y"))
        with pytest.raises(NotFinite, match="NaN"):
            Binary(W_out=[[1.0, 1.0]])(
                FLOAT64.array([[1.0, 1.0]]) * np.array([np.inf, -np.inf]), 1, FLOAT64
            )
