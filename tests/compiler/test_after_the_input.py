"""Programs that answer after their input: the same tags, and models that predict them."""

import itertools
import random

import pytest

import transformist as tf
from transformist.compiler import answered_after
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import InvalidValue
from transformist.programs import PROGRAMS

ANSWERED = ("double-histogram", "most-frequent-token", "reverse", "sort", "binary-increment")


@tf.program(alphabet="ab")
def mean_of_all(x):
    """True where the whole input has more a than b."""
    return (x.map({"a": 1, "b": -1}).mean() > 0).tag()


@tf.program(alphabet="abc")
def last_equal(x):
    """The successor of the last equal symbol."""
    return x.select(x).rightmost(x.predecessor(default="a"), default="c").tag()


@tf.program(alphabet="abc")
def first_of_boolean(x):
    """A selection by Booleans as keys and queries."""
    return (x == "b").select(x == "a").leftmost(x, default="c").tag()


@tf.program(alphabet="abc")
def share_of_equal(x):
    """True where at least half of the successors of equal symbols are a."""
    before = x.predecessor(default="none")
    share = x.select(before).mean((x == "a").where(1, 0))
    return ((share >= "1/2") & (x != "c")).tag()


@tf.program(alphabet="ab")
def beyond_the_end(x):
    """The symbol two places behind, or the default beyond the end."""
    return x.lookup(x.position("i") + 2, default="b").tag()


@tf.program(alphabet="ab")
def any_later(x):
    """True where an a comes later."""
    return (x == "a").any("strict-past").tag()


@tf.program(alphabet="ab")
def by_count(x):
    """Selection by a count up to here, equal to the count of all."""
    up_to = (x == "a").count("future")
    return (x == "a").count().select(up_to).leftmost(x, default="b").tag()


@tf.program(alphabet="ab")
def parity_of_place(x):
    """Functions of positions and the length of the input."""
    even = x.position("(-1)^i") > 0
    return (even & (x.position("n") > 2)).tag()


@tf.program(alphabet="abc")
def two_after(x):
    return x.successor(2, default="c").tag()


OTHERS = (
    two_after,
    mean_of_all,
    first_of_boolean,
    share_of_equal,
    beyond_the_end,
    any_later,
    by_count,
    parity_of_place,
    last_equal,
)

PROGRAMS_AFTER = {**{name: PROGRAMS[name] for name in ANSWERED}, **{p.name: p for p in OTHERS}}


def as_symbols(tags):
    return [{True: "yes", False: "no"}[each] if each in (True, False) and type(each) is bool
            else each for each in tags]  # fmt: skip


def after(x, tags):
    """What is predicted on the input, `=` and its tags."""
    return [*"=" * len(x), *as_symbols(tags), "EOS"]


@pytest.mark.parametrize("name", PROGRAMS_AFTER)
def test_the_tags_follow_the_separator(name):
    program = PROGRAMS_AFTER[name]
    rewritten = answered_after(program)
    for n in range(6):
        for x in itertools.product(program.alphabet, repeat=n):
            tags = program(x) if n else []
            assert rewritten([*x, "=", *as_symbols(tags)]) == after(x, tags), x


@pytest.mark.parametrize("name", PROGRAMS_AFTER)
def test_a_model_predicts_the_tags(name):
    program = PROGRAMS_AFTER[name]
    rewritten, n = answered_after(program), 9
    model = tf.compile(rewritten, max_length=2 * n + 1, masks="future", reuse=False)
    source = random.Random(name)
    for _ in range(25):
        x = source.choices(program.alphabet, k=source.randint(0, n))
        tags = program(x) if x else []
        given = [*x, "=", *as_symbols(tags)]
        assert list(model.run(given, arithmetic="float32").answer) == after(x, tags), x
        # Strings that are no input, a separator and its tags are answered as the program says.
        other = source.choices(rewritten.alphabet, k=source.randint(0, 2 * n + 1))
        assert list(model(other)) == list(rewritten(other)), other


def test_greedy_generation_continues_an_input_by_its_tags():
    program = PROGRAMS["sort"]
    model = tf.compile(answered_after(program), max_length=13, masks="future")
    text = [3, 1, 4, 1]
    while (symbol := model(text)[-1]) != "EOS":
        text.append(symbol)
    assert text == [3, 1, 4, 1, "=", 1, 1, 3, 4]


def test_places_and_words_are_those_of_the_program():
    rewritten = answered_after(PROGRAMS["sort"], "|")
    assert rewritten.alphabet == (1, 2, 3, 4, "|")
    assert "after the input and |" in rewritten.description
    assert len(rewritten.places) == len(rewritten.nodes)
    with pytest.raises(Uncompilable, match="ordering.py, line"):
        tf.compile(rewritten, max_length=10**5, arithmetic="float16", masks="future")


@tf.program(alphabet="ab")
def accepts(x):
    return (x == "a").any().accept()


@tf.program(alphabet="ab")
def unlisted(x):
    return (x == "a").count().tag()


@tf.program(alphabet="ab")
def whole_after_whole(x):
    return ((x == "a").count() > (x == "b").any().where(1, 0).mean()).tag()


@tf.program(alphabet="ab=")
def has_the_separator(x):
    return x.tag()


def named_as_added(tag):
    """A program with a tag that the alphabet of its decoder may not have."""
    return tf.program(alphabet="ab")(lambda x: x.map({"a": tag, "b": "PAD"}).tag())


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (accepts, "a program that tags"),
        (5, "a program that tags"),
        (unlisted, "line .*the tags of a program that answers after its input must be listed"),
        (whole_after_whole, "line .*values of the positions so far"),
        (has_the_separator, "give another separator, such as separator='=='$"),
        (named_as_added("BOS"), "a tag must be none of BOS, CLS, EOS.*received 'BOS'"),
        (named_as_added("CLS"), "received 'CLS'; give the tag another name"),
        (named_as_added("EOS"), "received 'EOS'; give the tag another name"),
    ],
)
def test_what_cannot_be_answered_after_is_refused(program, error):
    with pytest.raises(InvalidValue, match=error):
        answered_after(program)


@pytest.mark.parametrize("separator", ["", "BOS", "CLS", "EOS", 1, "a", ["="]])
def test_a_separator_must_be_a_new_symbol(separator):
    with pytest.raises(InvalidValue, match="the separator must be"):
        answered_after(mean_of_all, separator)
