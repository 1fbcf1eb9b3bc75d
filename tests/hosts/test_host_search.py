"""The search for the first wrong answer of a host: lengths, counts, and what counts as wrong."""

import numpy as np
import pytest

import transformist as tf
from transformist.hosts.host_comparison import (
    Differs,
    HostSearch,
    NoAnswer,
    compare_host,
    planned_comparison,
    search_logits,
)
from transformist.programs import PROGRAMS


def majority(n):
    return tf.compile(PROGRAMS["majority"], max_length=n)


def host_wrong_at(model, is_wrong, raises=False):
    """A host that gives the reference's numbers, negated on inputs of some lengths."""
    tried = []

    def logits(ids, lengths):
        found = np.zeros((len(ids), len(ids[0]), 1))
        for row, (each, n) in enumerate(zip(ids, lengths, strict=True)):
            front = len(model.embedding.front)
            x = [model.embedding.symbols[k] for k in each[front:n]]
            tried.append(n - front)
            found[row, :n] = model.values([x])[0]
            if is_wrong(n - front):
                if raises:
                    raise NoAnswer("a", received="b", where="c", remedy="d")
                found[row, :n] *= -1
        return found

    return logits, tried


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("first", [2, 8, 9, 13, 14, 20, 33, 40])
def test_the_first_wrong_length_is_found(first, raises):
    model = majority(40)
    logits, tried = host_wrong_at(model, lambda n: n >= first, raises)
    planned = planned_comparison(model, "float32")
    found = search_logits(model, logits, "gpt2", "bfloat16", planned, "float32")
    # After the first wrong length at most 15 lengths are tried, twice.
    assert found.failed == min(n for n in tried if n >= first) <= first + 1
    assert found.right_to == max((n for n in tried if n < first), default=-1)
    assert found.inputs == sum(n < first for n in tried) and found.arithmetic == "bfloat16"


def test_a_wrong_answer_to_deeply_nested_strings_is_found():
    """Well-nested strings of 18 symbols and more, of middling depth, are wrong; none is odd."""
    model = tf.compile(PROGRAMS["dyck-1"], max_length=32)

    def logits(ids, lengths):
        found = np.zeros((len(ids), len(ids[0]), 1))
        for row, (each, n) in enumerate(zip(ids, lengths, strict=True)):
            front = len(model.embedding.front)
            x = "".join(model.embedding.symbols[k] for k in each[front:n])
            found[row, :n] = model.values([x])[0]
            depth = max((x[:i].count("(") - x[:i].count(")") for i in range(n)), default=0)
            if len(x) >= 18 and model(x) and 2 < depth < len(x) // 2:
                found[row, :n] *= -1
        return found

    planned = planned_comparison(model, "float32")
    found = search_logits(model, logits, "gpt2", "bfloat16", planned, "float32")
    assert (found.right_to, found.failed) == (17, 18)


def test_right_inputs_longer_than_the_first_wrong_one_are_not_counted():
    """The lengths 13 and 39 are wrong; 13 is tried after 20, which is right."""
    model = majority(40)
    logits, tried = host_wrong_at(model, lambda n: n in (13, 39))
    planned = planned_comparison(model, "float32")
    found = search_logits(model, logits, "gpt2", "bfloat16", planned, "float32")
    assert {13, 20} <= {*tried} and found.failed == 13
    assert found.inputs == sum(n <= found.right_to for n in tried)


def test_a_host_that_is_always_wrong_has_no_right_length():
    model = majority(12)
    logits, _ = host_wrong_at(model, lambda n: True)
    planned = planned_comparison(model, "float32")
    found = search_logits(model, logits, "gpt2", "float16", planned, "float32")
    assert (found.inputs, found.right_to, found.failed) == (0, -1, planned_shortest(model))


def planned_shortest(model):
    return 0 if model.embedding.front else 1


def test_a_host_that_is_always_right_has_no_wrong_length():
    model = majority(12)
    logits, tried = host_wrong_at(model, lambda n: False)
    planned = planned_comparison(model, "float32")
    found = search_logits(model, logits, "gpt2", "bfloat16", planned, "float32")
    assert (found.inputs, found.right_to, found.failed) == (planned.inputs, 12, None)
    assert len(tried) == planned.inputs


def test_a_search_says_in_words_what_was_tried():
    tried = {"host": "gpt2", "arithmetic": "float32", "every_to": 2, "longest": 9}
    found = HostSearch(**tried, inputs=12, right_to=9)
    assert "every string up to length 2, and hard strings up to length 9; no wrong" in str(found)
    found = HostSearch(**tried, inputs=0, right_to=-1, failed=0)
    assert str(found) == "gpt2 in float32: no input was right; a wrong answer at length 0"
    found = HostSearch(**tried, inputs=1, right_to=0, failed=1)
    assert "1 input was right, up to length 0; a wrong answer at length 1" in str(found)
    found = HostSearch(**tried | {"longest": -1}, inputs=0, right_to=-1, ended="no library")
    assert str(found) == "gpt2 in float32: no input was tried: no library"
    found = HostSearch(**tried, inputs=12, right_to=9, ended="N is 12: it takes too long")
    assert str(found).endswith("(N is 12: it takes too long)")


@pytest.mark.parametrize("several", [False, True])
def test_a_float_that_is_a_label_is_no_approximate_number(several):
    """The host gives 1.0001 for 1.0 and the other way round."""
    alphabet = [1.0, 1.0001, float("inf")]
    body = (lambda x: tf.outputs(same=x.tag())) if several else (lambda x: x.tag())
    model = tf.compile(tf.program(alphabet=alphabet)(body), max_length=4)
    planned = planned_comparison(model, "float32")

    def logits(ids, lengths, order=(0, 1, 2)):
        found = np.zeros((len(ids), len(ids[0]), 3))
        for row, (each, n) in enumerate(zip(ids, lengths, strict=True)):
            front = len(model.embedding.front)
            x = [model.embedding.symbols[k] for k in each[front:n]]
            found[row, n - len(x) : n] = model.values([x])[0][-len(x) or None :][:, order]
        return found

    compare_host(model, logits, "float32", planned)
    with pytest.raises(Differs, match=r"must answer .*1\.0"):
        compare_host(model, lambda *given: logits(*given, (1, 0, 2)), "float32", planned)


@pytest.mark.parametrize("most", [0, 3, 9])
def test_no_planned_input_exceeds_a_given_length(most):
    model = majority(12)
    planned = planned_comparison(model, "float32", most=most)
    logits, tried = host_wrong_at(model, lambda n: False)
    search_logits(model, logits, "gpt2", "float32", planned, "float32")
    assert planned.longest == max(tried) == most
