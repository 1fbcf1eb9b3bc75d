"""What `transformist bench` measures is what it says, and a wrong answer does not go unnoticed."""

import itertools
import json
import random
from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from command_line import answer, run
from transformist.arithmetic import number_system
from transformist.bench import (
    by_numpy,
    by_torch,
    every_string,
    measured_processes,
    measurement,
    workloads,
)
from transformist.cli import bench
from transformist.engines.structured import decoder

MASKS = ("none", "future", "strict-future", "past", "strict-past")
WEIGHTINGS = ("softmax", "average-hard", "leftmost-hard", "rightmost-hard")


def drawn_model(weighting, mask, d=3):
    """Two heads of different widths, one without W_O, whose scores often tie; and a network."""
    rnd = np.random.default_rng(7)

    def whole(*shape):
        return rnd.integers(-2, 3, shape)

    heads = tuple(
        tf.Attention(
            W_Q=whole(key, d), b_Q=whole(key), W_K=whole(key, d), b_K=whole(key),
            W_V=whole(value, d), b_V=whole(value), W_O=W_O, weighting=weighting, mask=mask,
        )
        for key, value, W_O in ((1, 2, whole(d, 2)), (3, d, None))
    )  # fmt: skip
    network = tf.FeedForward(W_1=whole(4, d), b_1=whole(4), W_2=whole(d, 4), b_2=whole(d))
    return tf.Transformer(
        stream=tf.Stream(("a", "b", "c")),
        embedding=tf.Embedding(symbols=("x", "y", "z"), vectors=whole(3, d)),
        layers=(tf.Layer(heads=heads, feed_forward=network),),
        read_out=tf.Binary(W_out=whole(1, d)),
    )


def embedded(model, x):
    return model.embedding([x], number_system("float64"))[0]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_dense_in_numpy_is_the_model(weighting, mask, monkeypatch):
    monkeypatch.setattr(by_numpy, "BLOCK", 4)
    model, x = drawn_model(weighting, mask), "".join(random.Random(1).choices("xyz", k=10))
    expected = model.run(x).streams[-1][1]
    assert np.allclose(by_numpy.dense(model, embedded(model, x)), expected, rtol=0, atol=1e-9)


@pytest.mark.hosts
@pytest.mark.parametrize("mask", MASKS)
def test_dense_in_torch_is_the_model(mask):
    pytest.importorskip("torch", reason="torch is not installed (extra `hosts`)")
    model, x = drawn_model("softmax", mask), "".join(random.Random(1).choices("xyz", k=10))
    in_torch = by_torch.TorchModel(model)
    expected = model.run(x).streams[-1][1]
    assert in_torch.is_exact
    assert np.allclose(in_torch(embedded(model, x)), expected, rtol=0, atol=1e-9)
    assert not by_torch.TorchModel(drawn_model("average-hard", mask)).is_exact


def last(answer):
    return answer[-1] if isinstance(answer, str | list) else answer


@pytest.mark.parametrize("name", [*workloads.WHOLE, *workloads.DECODED])
def test_what_is_called_right_is_what_the_reference_says(name):
    model, x, expected = (workloads.DECODED.get(name) or workloads.WHOLE[name])(24)
    if name in workloads.DECODED:
        assert [last(model(x[: i + 1])) for i in range(24)] == list(expected)
    else:
        assert model(x) == expected


def test_a_wrong_answer_is_found(monkeypatch):
    monkeypatch.setattr(measurement, "TAKEN", 5)
    for table, name in ((workloads.WHOLE, "induction"), (workloads.DECODED, "decode-induction")):
        model, x, expected = table[name](9 + 5 * (table is workloads.DECODED))
        wrong = expected[:-1] + ("a" if expected[-1] == "b" else "b")
        assert measurement.measured(name, 9)["right"] is True
        monkeypatch.setitem(table, name, lambda _, found=(model, x, wrong): found)
        assert measurement.measured(name, 9)["right"] is False


@pytest.mark.parametrize("name", every_string.EVERY)
def test_a_check_of_every_string_counts_and_finds_wrong_answers(name, monkeypatch):
    case = every_string.EVERY[name]
    symbols = len(case.build(4).alphabet)
    found = measurement.measured(name, 4)
    assert found["right"] is True and found["strings"] == sum(symbols**k for k in range(5))
    assert found["sampled"] == -(-found["strings"] // 100) and found["peak_mib"] > 1
    assert found["one_at_a_time_seconds"] >= 0 and found["processor_seconds"] >= 0

    def wrong(x):
        return case.reference(x) != (x == "((()")

    monkeypatch.setitem(every_string.EVERY, name, replace(case, reference=wrong))
    assert measurement.measured(name, 4)["right"] is False


def test_brackets_match():
    """By taking out pairs, which shares nothing with the scan."""
    for n in range(6):
        for x in map("".join, itertools.product("()[]", repeat=n)):
            y, depth = x, 0
            while (shorter := y.replace("()", "").replace("[]", "")) != y:
                y = shorter
            depth = max(sum(+1 if s in "([" else -1 for s in x[:k]) for k in range(n + 1))
            assert every_string.is_nested(x) == (y == "")
            assert every_string.is_nested(x, 1) == (y == "" and depth <= 1)


def test_what_a_decoder_compiles_is_compiled_before_it_is_measured(monkeypatch):
    """Long inputs take other functions than those of the first calls."""
    monkeypatch.setattr(measurement, "TAKEN", 5)
    monkeypatch.setattr(measurement, "FIRST", 4)
    read = []

    class Reader:
        def __init__(self, model):
            self.begun = decoder(model)

        def take_all(self, x):
            read.append((self, len(x)))
            return self.begun.take_all(x)

        def take(self, symbol):
            return self.begun.take(symbol)

    monkeypatch.setattr(measurement, "decoder", Reader)
    assert measurement.measured("decode-dyck-1", 40)["right"] is True
    (*before, (measured, n)) = read
    assert n == 40 and any(n == 40 and each is not measured for each, n in before)


def test_vectors_that_differ_are_found(monkeypatch):
    monkeypatch.setattr(measurement, "DENSE", 12)
    monkeypatch.setattr(measurement, "is_there", lambda: False)
    found = measurement.measured("dyck-1", 12)
    assert found["right"] is True and found["ratio_to_numpy"] > 0
    monkeypatch.setattr(measurement, "dense", lambda model, z: z)
    assert measurement.measured("dyck-1", 12)["right"] is False


@pytest.mark.parametrize(
    ("case", "measure", "lengths"),
    [
        ("dyck-1", "processor_seconds", (16_384, 10**5, 10**6)),
        ("decode-dyck-1", "take_microseconds", (10**4, 10**6)),
    ],
)
def test_growth_is_between_the_last_two_lengths(monkeypatch, case, measure, lengths):
    def row(case, n):
        return {
            **measured_processes.NOT_MEASURED,
            "n": n,
            "processor_seconds": 1.0,
            measure: n**1.5,
        }

    monkeypatch.setattr(measured_processes, "_in_a_process", row)
    found = list(measured_processes.measurements([case]))
    assert tuple(each["n"] for each in found) == lengths
    assert [each["exponent"] for each in found] == [None] * (len(lengths) - 1) + [1.5]
    assert [each["n"] for each in measured_processes.measurements([case], quick=True)] == [
        lengths[0]
    ]


@pytest.mark.slow
def test_a_length_that_is_refused_is_a_row_that_says_so(monkeypatch):
    monkeypatch.setattr(measured_processes, "LENGTHS", (10**15, 2 * 10**15))
    for row in measured_processes.measurements(["dyck-1"]):
        assert row["refused"] == "MemoryError" and row["right"] is None
        assert row["seconds"] is None and row["exponent"] is None


@pytest.fixture
def measured(monkeypatch):
    """Rows that the command is given for measured, or what comes instead of one."""
    rows = []

    def measurements(cases, quick, begins):
        for row in rows:
            if row["n"] is KeyboardInterrupt:
                raise KeyboardInterrupt
            begins(row["case"], row["n"])
            yield row

    monkeypatch.setattr(bench, "measurements", measurements)
    return lambda case, n, **found: rows.append(
        {**measured_processes.NOT_MEASURED, "case": case, "n": n, **found}
    )


class TestCommand:
    @pytest.mark.slow
    def test_json(self, capsys, monkeypatch):
        monkeypatch.setattr(measured_processes, "LENGTHS", (40, 50))
        monkeypatch.setattr(measured_processes, "DECODED_LENGTHS", (30, 50))
        got = answer(capsys, "bench", "dyck-1", "decode-dyck-1", "--quick")
        assert "numpy" in got["machine"]
        whole, decoded = got["results"]
        for key in ("case", "n", "seconds", "peak_mib", "ratio_to_torch", "ratio_to_numpy"):
            assert key in whole and key in decoded
        assert (whole["case"], whole["n"], whole["right"]) == ("dyck-1", 40, True)
        assert whole["seconds"] > 0 and whole["peak_mib"] > 1 and whole["ratio_to_numpy"] is None
        assert decoded["take_per_second"] > 0 and decoded["right"] is True

    def test_a_check_of_every_string_in_words(self, capsys, measured):
        found = {
            "strings": 2097151,
            "one_at_a_time_seconds": 1234.5,
            "ratio_to_one_at_a_time": 98.7,
        }
        measured("every-dyck-1", 20, seconds=13.5, right=True, **found)
        code, out, _ = run(capsys, "bench", "every-dyck-1")
        assert code == 0 and "2,097,151" in out and "1,234.5" in out and "99 ×" in out
        assert "first call, s" not in out and "tokens/s, take " not in out

    def test_in_words(self, capsys, measured):
        measured("dyck-1", 16384, seconds=0.25, right=True, ratio_to_numpy=1234.5)
        code, out, err = run(capsys, "bench", "dyck-1")
        assert (code, err) == (0, "measuring dyck-1, n = 16384\n")
        assert "16,384    0.250" in out and "1,234 ×" in out and "yes" in out

    @pytest.mark.parametrize(
        ("last", "told"),
        [({"seconds": 1.0, "right": False}, "NO"), ({"refused": "too large"}, "n = 8: too large")],
    )
    def test_a_row_that_is_wrong_or_refused_is_told(self, capsys, measured, last, told):
        measured("dyck-1", 16384, seconds=0.25, right=True)
        measured("dyck-1", 8, **last)
        code, out, _ = run(capsys, "bench", "dyck-1")
        assert code == 1 and told in out and "16,384    0.250" in out
        code, out, _ = run(capsys, "bench", "dyck-1", "--json")
        first, second = json.loads(out)["results"]
        assert code == 1 and first["seconds"] == 0.25 and last.items() <= second.items()

    def test_what_is_measured_is_named_before_it_begins(self, capsys, monkeypatch):
        err = []

        def row(case, n):
            err.append(capsys.readouterr().err)
            return {
                **measured_processes.NOT_MEASURED,
                "case": case,
                "n": n,
                "seconds": 1.0,
                "right": True,
            }

        monkeypatch.setattr(measured_processes, "_in_a_process", row)
        assert run(capsys, "bench", "dyck-1", "dyck-2-8", "--quick")[0] == 0
        assert err == [f"measuring {case}, n = 16384\n" for case in ("dyck-1", "dyck-2-8")]

    @pytest.mark.parametrize("rows", [0, 1])
    def test_an_interruption_keeps_what_was_measured(self, capsys, measured, rows):
        for _ in range(rows):
            measured("dyck-1", 16384, seconds=0.25, right=True)
        measured("dyck-1", KeyboardInterrupt)
        code, out, err = run(capsys, "bench", "dyck-1")
        assert code == 130 and err.endswith("error: interrupted\n")
        assert out.count("16,384    0.250") == rows
        code, out, _ = run(capsys, "bench", "dyck-1", "--json")
        assert (
            code == 130 and [row["seconds"] for row in json.loads(out)["results"]] == [0.25] * rows
        )

    def test_another_case_is_refused(self, capsys):
        code, out, err = run(capsys, "bench", "dyck-1", "dyck-two")
        assert (code, out) == (2, "")
        assert err.startswith("error: bench: no case has this name; received 'dyck-two'; did you")
