"""None as a value of a category: a default, a value of a table, and what functions make of it."""

import itertools

import pytest

import transformist as tf


@tf.program(alphabet="ab")
def before(x):
    return x.predecessor(default=None).tag()


@tf.program(alphabet="ab")
def upper(x):
    return x.predecessor(default=None).map(str.upper).tag()


@tf.program(alphabet="ab")
def paired(x):
    return x.predecessor(default=None).table(x, values=lambda y, z: y + z).tag()


@tf.program(alphabet="ab")
def only_a(x):
    return x.map({"a": "yes", "b": None}).tag()


@tf.program(alphabet="ab")
def last_is_none(x):
    return (x.nearest_left(x == "a", default=None) == None).accept()  # noqa: E711


@tf.program(alphabet="ab")
def matched(x):
    return x.select(x, mask="strict-future").rightmost(x, default=None).tag()


@tf.program(alphabet="ab")
def chosen(x):
    return (x == "a").where(None, x).tag()


@tf.program(alphabet="ab")
def some_counts(x):
    return (x == "a").count("future").map(lambda k: None if k > 2 else "xyz"[k]).tag()


@tf.program(alphabet="ab")
def unlike(x):
    return x.table(x.predecessor(default="a"), values=lambda y, z: None if y == z else z + y).tag()


REFERENCES = {
    some_counts: lambda x: [
        None if (k := x[: i + 1].count("a")) > 2 else "xyz"[k] for i in range(len(x))
    ],
    unlike: lambda x: [None if y == z else z + y for z, y in zip("a" + x, x, strict=False)],
    before: lambda x: [None, *x][: len(x)],
    upper: lambda x: [None, *x.upper()][: len(x)],
    paired: lambda x: [x[i - 1] + x[i] if i else None for i in range(len(x))],
    only_a: lambda x: ["yes" if symbol == "a" else None for symbol in x],
    last_is_none: lambda x: "a" not in x[:-1],
    matched: lambda x: [x[i] if x[i] in x[:i] else None for i in range(len(x))],
    chosen: lambda x: [None if symbol == "a" else symbol for symbol in x],
}


@pytest.mark.parametrize("program", REFERENCES, ids=lambda each: each.name)
def test_none_is_passed_on(program, tmp_path):
    model, path = tf.compile(program, max_length=6), tmp_path / "model.safetensors"
    certificate = tf.certify(model)
    assert certificate.holds and certificate.grade == 1
    tf.save(model, path)
    loaded = tf.load(path)
    for n in range(5):
        for x in map("".join, itertools.product("ab", repeat=n)):
            assert program(x) == loaded(x, "float32") == REFERENCES[program](x), x


def test_none_among_labels_is_compared():
    model = tf.compile(before, max_length=4)
    assert tf.check(model, REFERENCES[before], 3).held
    assert not tf.check(model, lambda x: ["a", *x][: len(x)], 3).held
    with pytest.raises(tf.TransformistError, match="received None on ''"):
        tf.check(model, lambda x: None, 3)


def test_a_default_of_none_is_left_out_for_numbers_and_booleans():
    @tf.program(alphabet="ab")
    def both(x):
        number = x.map({"a": 1, "b": 2}).predecessor(default=None)
        return tf.outputs(number=number.tag(), bit=(x == "a").predecessor(default=None).tag())

    assert both("ab") == {"number": [0, 1], "bit": [False, True]}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: x.predecessor().tag(), "a category must have a default .* received none"),
        (lambda x: x.select(x).rightmost(x).tag(), "a category must have a default"),
        (lambda x: x.map(lambda a: None).tag(), "must return a value other than None"),
        (
            lambda x: x.predecessor(default=None).map(lambda a: a == "a").tag(),
            "of one type; received a Boolean for 'a' and a category for None",
        ),
        (lambda x: (x == "a").accept(), "must have an answer on the empty input"),
    ],
)
def test_refused(make, message):
    with pytest.raises(tf.TransformistError, match=message):
        tf.program(alphabet="ab")(make)
