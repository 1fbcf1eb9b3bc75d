"""The table of weights: it has every parameter, once, under the names of its row and column."""

import json
from fractions import Fraction

import numpy as np
import pytest
from rich.console import Console

import transformist as tf
from transformist.cli import main
from transformist.model import (
    Attention,
    Embedding,
    FeedForward,
    Layer,
    LayerNorm,
    MultiClass,
    Outputs,
    PositionEncoding,
    PositionTable,
    Span,
    Stream,
    Sublayer,
    Transformer,
)
from transformist.report.weights_report import weights_facts, weights_text


def built(name):
    return tf.recipe(name).build()


@pytest.mark.parametrize("name", [each.name for each in tf.recipes()])
def test_every_parameter_is_there_once(name):
    model = built(name)
    numbers = [
        value
        for _, matrix in model.weights_table()
        for value in matrix.values.ravel().tolist()
        if not isinstance(value, str)
    ]
    epsilons = sum(
        norm is not None and norm.epsilon != 0
        for layer in getattr(model, "layers", ())
        for norm in (*layer.pre_norms, *layer.post_norms)
    )
    epsilons += getattr(model, "epsilon", 0) != 0
    assert np.count_nonzero(numbers) + epsilons == model.nonzero


def by_name(matrix):
    """The entries that are not 0, by the names of their row and column."""
    return {
        (row, column): Fraction(value)
        for row, values in zip(matrix.rows, matrix.values.tolist(), strict=True)
        for column, value in zip(matrix.columns, values, strict=True)
        if value
    }


def test_slots_hidden_units_and_symbols_name_rows_and_columns():
    table = built("dyck-1").weights_table()
    assert by_name(table["embedding", "vectors"]) == {("(", "sign"): 1, (")", "sign"): -1}
    assert by_name(table["layer 0 attention, head 0", "W_V"]) == {("value 0", "sign"): 1}
    assert by_name(table["layer 0 attention, head 0", "W_O"]) == {("balance", "value 0"): 1}
    assert by_name(table["layer 0 feed-forward", "W_2"])["imbalance", "hidden 2"] == 1
    assert by_name(table["layer 0 feed-forward", "W_1"])["hidden 2", "balance"] == 1
    assert table["read-out", "W_out"].columns == table["embedding", "vectors"].columns


def test_a_head_has_each_of_its_eight_parameters():
    given = {
        **{name: [[number, 0]] for number, name in enumerate(("W_Q", "W_K", "W_V"), start=1)},
        "W_O": [[4], [5]],
        **{name: [number] for number, name in enumerate(("b_Q", "b_K", "b_V"), start=6)},
        "b_O": [9, "1/9"],
    }
    table = Attention(**given).weights_table()
    assert [matrix.name for _, matrix in table] == [
        "W_Q",
        "b_Q",
        "W_K",
        "b_K",
        "W_V",
        "b_V",
        "W_O",
        "b_O",
    ]
    for name, values in given.items():
        flat = [Fraction(value) for value in np.ravel(np.array(values, dtype=object))]
        assert [Fraction(each) for each in table["attention", name].values.ravel()] == flat


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(KeyError):
        built("dyck-1").weights_table()["embedding", "W_Q"]


NETWORK = FeedForward(W_1=[[1, 0], [0, 1]], b_1=[0, "1/3"], W_2=[[0, 0], [1, -2]])


def test_a_slot_has_the_name_of_what_it_holds_then():
    stream = Stream(
        ("x", "slot"), (Span("first", 1, 0, 0), Span("second", 1, 1, 1), Span("x", 0, 0, 9))
    )
    model = Transformer(
        stream=stream,
        embedding=Embedding(symbols="ab", vectors=[[1, 0], [0, 1]]),
        layers=(Layer(feed_forward=NETWORK), Layer(feed_forward=NETWORK)),
        read_out=MultiClass(W_out=[[1, 0], [0, 1]], labels="pq"),
    )
    table = model.weights_table()
    assert table["embedding", "vectors"].columns == ("x", "first")
    assert table["layer 0 feed-forward", "W_1"].columns == ("x", "first")
    assert table["layer 0 feed-forward", "W_2"].rows == ("x", "second")
    assert table["layer 1 feed-forward", "W_1"].columns == ("x", "second")
    assert table["layer 1 feed-forward", "W_2"].rows == ("x", "slot")
    assert table["read-out", "W_out"].rows == ("p", "q")


def test_norms_stand_where_they_are_applied():
    norm = LayerNorm(gain=[1, 1], W_N=[[1, 0, 0], [0, 1, 0]], epsilon="1/8")
    network = FeedForward(W_1=[[1, 0]], W_2=[[0], [0], [1]])
    parts = Sublayer(network, norm, LayerNorm(gain=[1, 1, 1])).weights_table().parts
    assert [each.name for each in parts] == [
        "sublayer, norm before",
        "sublayer",
        "sublayer, norm after",
    ]
    assert parts[0].kind == "epsilon 1/8" and parts[0].matrices[0].columns[2] == "input 2"
    assert parts[1].matrices[0].columns == ("normed 0", "normed 1")


def test_rows_of_several_outputs_have_the_names_of_their_outputs():
    parts = [MultiClass(W_out=[[1], [2]], labels="ab"), MultiClass(W_out=[[3]], labels=[None])]
    table = Outputs(names=["one", "other"], parts=parts).weights_table()
    assert table["read-out", "W_out"].rows == ("one: a", "one: b", "other: None")


def test_positions_are_formulas_or_numbers():
    assert "i/n" in built("dyck-1-2").weights_table()["positions", "pe"].values
    table = PositionTable(vectors=[[1, 0], [0, "1/3"]]).weights_table()
    assert by_name(table["positions", "vectors"])["position 2", "output 1"] == Fraction(1, 3)

    class Own(PositionEncoding):
        width, nonzero = 1, 0

        def at(self, places, n, a):
            return a.array([[0]] * len(places))

    assert str(Own().weights_table()) == "positions: Own"


def test_of_a_large_matrix_rows_and_columns_of_zeros_are_left_out():
    large = np.zeros((15, 20))
    large[3, 4], large[3, 5], large[9, 4] = 0.5, -2, 0.1
    head = Attention(W_Q=large, W_K=large * 0, W_V=np.eye(20))
    text = str(head.weights_table())
    assert text.splitlines()[1:5] == [
        "  W_Q (15 × 20): 13 rows and 18 columns of zeros left out",
        "             input 4  input 5",
        "    query 3      1/2       -2",
        "    query 9     ≈0.1        0",
    ]
    assert "  W_K (15 × 20): all zero\n  b_K (15): all zero\n" in text
    assert "  W_V (20 × 20)\n    output 0   input 0: 1\n" in text
    facts = weights_facts("it", head.weights_table())["parts"][0]["matrices"]
    assert facts[0]["shape"] == [15, 20] and facts[0]["rows"] == ["query 3", "query 9"]
    assert facts[0]["values"] == [["1/2", -2], [str(Fraction(0.1)), 0]]
    assert (facts[0]["zero_rows_left_out"], facts[0]["zero_columns_left_out"]) == (13, 18)


def test_a_name_stays_on_its_line():
    model = Transformer(
        stream=Stream(("a\nb",)),
        embedding=Embedding(symbols="\n", vectors=[[1]]),
        layers=(),
        read_out=MultiClass(W_out=[[1]], labels=["\x1b"]),
    )
    assert "       a\\nb\n    \\n     1\n" in str(model.weights_table())


def test_zeros_are_dim_on_a_terminal():
    console = Console(force_terminal=True, color_system="standard", width=80)
    with console.capture() as captured:
        console.print(weights_text(NETWORK.weights_table()))
    shown = captured.get()
    assert "\x1b[2m         0\x1b[0m" in shown and "         1" in shown
    assert shown.count("\x1b[2m") == 5  # W_1 and W_2 have two each, b_1 one


class TestCommand:
    def test_text_is_that_of_the_table(self, capsys):
        assert main(["show", "min", "--weights"]) == 0
        assert capsys.readouterr().out == f"{built('min').weights_table()}\n"

    def test_settings_count_and_json_has_rationals(self, capsys):
        assert main(["show", "scale", "--set", "factor=1/3", "--weights", "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["name"] == "scale" and ["1/3", "-1/3"] in [
            row for each in facts["parts"][0]["matrices"] for row in each["values"]
        ]

    def test_a_program_has_the_names_of_its_source(self, capsys):
        assert main(["show", "programs/dyck-1", "--weights", "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        vectors = facts["parts"][0]["matrices"][0]
        assert "balance" in vectors["columns"] and vectors["rows"] == ["(", ")", "BOS"]
