"""Alphabets of one symbol, of floats, fractions and tuples: interpreted, compiled, saved, run."""

import itertools
import json
from fractions import Fraction

import pytest

import transformist as tf
from command_line import run
from transformist.texts import Text, TextSource
from transformist.verify import check

ALPHABETS = {
    "one character": "a",
    "one number": [7],
    "floats": [0.5, 1.5],
    "infinite": [float("inf"), -0.0],
    "fractions": [Fraction(1, 3), Fraction(1, 2)],
    "tuples": [("a", 1), ("b", (2.5, "c"))],
    "mixed": [1, 2.5, "long", (Fraction(1, 3),)],
}


def programs(alphabet):
    """Three programs with their references: a neighbour, a verdict, a count by its symbol."""
    first, last = alphabet[0], alphabet[-1]

    @tf.program(alphabet=alphabet)
    def before(x):
        return x.predecessor(default=last).tag()

    @tf.program(alphabet=alphabet)
    def all_first(x):
        return (x == first).all_so_far().accept()

    @tf.program(alphabet=alphabet)
    def places(x):
        return x.map({symbol: k for k, symbol in enumerate(alphabet)}).tag()

    def joined(labels):
        return "".join(labels) if isinstance(alphabet, str) else labels

    yield before, lambda x: joined([last, *x][: len(x)])
    yield all_first, lambda x: all(each == first for each in x)
    yield places, lambda x: [list(alphabet).index(each) for each in x]


def inputs(alphabet, most):
    for n in range(most + 1):
        for x in itertools.product(alphabet, repeat=n):
            yield "".join(x) if isinstance(alphabet, str) else x


@pytest.mark.parametrize("name", ALPHABETS)
def test_programs_are_compiled_certified_and_saved(name, tmp_path):
    alphabet, path = ALPHABETS[name], tmp_path / "model.safetensors"
    for program, reference in programs(alphabet):
        model = tf.compile(program, max_length=6)
        certificate = tf.certify(model)
        assert certificate.holds and certificate.grade == 1
        tf.save(model, path, [certificate])
        loaded = tf.load(path)
        assert loaded == model
        # 1 and 1.0 are equal: the types are compared, too.
        assert [(s, type(s)) for s in loaded.alphabet] == [(s, type(s)) for s in alphabet]
        tf.check_certificate(loaded, certificate)
        for x in inputs(alphabet, 3):
            wanted = reference(x)
            assert program(x) == model(x, "float32") == tf.run(loaded, x) == wanted, x


@pytest.mark.parametrize("name", ALPHABETS)
def test_a_decoder_takes_each_symbol(name):
    alphabet = ALPHABETS[name]
    (before, _), *_ = programs(alphabet)
    decoder = tf.decoder(tf.compile(before, max_length=6))
    assert [decoder.take(each) for each in alphabet] == [alphabet[-1], *alphabet[:-1]]


@pytest.mark.parametrize("name", ["one number", "fractions", "tuples", "mixed"])
def test_every_string_is_checked(name):
    (program, reference), *_ = programs(ALPHABETS[name])
    model = tf.compile(program, max_length=3)
    assert check(model, reference, 2).held
    assert not check(model, lambda x: [*x, 0], 2).held


@pytest.mark.parametrize(
    ("alphabet", "reason"),
    [
        ("", "different strings, numbers and tuples of these; received"),
        ("aa", "'a' and 'a' are equal"),
        ([1, 1.0], "1 and 1.0 are equal"),
        ([0.5, Fraction(1, 2)], "0.5 and Fraction(1, 2) are equal"),
        ([1, True], "1 and True are equal"),
        ([True], "True is none of these"),
        ([None], "None is none of these"),
        ([0.5, float("nan")], "nan is not equal to itself"),
        ([("a", float("nan"))], "nan is not equal to itself"),
        (["a", ("EOS",)], "'EOS' is a symbol that models add"),
        ([["a"]], "different strings, numbers and tuples of these; received"),
    ],
)
def test_refused(alphabet, reason):
    with pytest.raises(tf.TransformistError) as refused:
        tf.program(alphabet=alphabet)
    assert reason in str(refused.value) and "\n" not in str(refused.value)


def symbols(alphabet, text):
    return list(Text.over(alphabet, TextSource.given(text)).symbols)


def test_symbols_of_a_text():
    known = (Fraction(1, 3), ("a", 1), 2.5, "1/2", 4)
    given = ["1/3", ["a", 1], 2.5, "1/2", 4, "z", 0.25, ["b"]]
    wanted = [Fraction(1, 3), ("a", 1), 2.5, "1/2", 4, "z", 0.25, ("b",)]
    assert symbols(known, json.dumps(given)) == wanted  # a model refuses the last three, by place
    assert symbols((Fraction(1, 2), 3), "[0.5, 3]") == [Fraction(1, 2), 3]


@pytest.mark.parametrize("text", ["[1.0]", "[[1]]", "[true]", "[null]", '[{"a": 1}]', "0.5", "["])
def test_values_of_json_that_no_symbol_has(text):
    with pytest.raises(tf.TransformistError, match="the input must be a JSON list of symbols"):
        symbols((1, "long"), text)


def test_on_the_command_line(capsys, tmp_path):
    source = tmp_path / "halves.py"
    source.write_text(
        "import transformist as tf\n\n@tf.program(alphabet=[0.5, ('a', 1)])\n"
        "def before(x):\n    return x.predecessor(default=0.5).tag()\n"
    )
    name = f"{source}:before"
    code, out, _ = run(capsys, "run", name, '[["a", 1], 0.5]', "--json")
    assert code == 0 and json.loads(out)["answer"] == [0.5, ["a", 1]]
    code, out, _ = run(capsys, "show", name, "--json")
    assert code == 0 and json.loads(out)["alphabet"] == [0.5, ["a", 1]]
    code, _, err = run(capsys, "run", name, "[0.5, 0.25]")
    assert code and "received 0.25 at position 2" in err
    code, out, _ = run(capsys, "check", name, "--max-length", "3")
    assert code == 0 and "held" in out


@pytest.mark.parametrize(
    "value", [frozenset("a"), b"a", 1j, ..., str, (float("nan"),), iter("a"), ("a", b"a")]
)
def test_values_that_no_file_keeps_are_no_categories(value):
    with pytest.raises(tf.TransformistError, match="a category is needed here"):
        tf.program(alphabet="ab")(lambda x: x.map({"a": value, "b": "b"}).tag())


def test_infinity_is_a_default_where_it_is_a_symbol():
    inf = float("inf")
    program = tf.program(alphabet=[inf, 1])(lambda x: x.predecessor(default=inf).tag())
    assert program([1, inf]) == [inf, 1]
