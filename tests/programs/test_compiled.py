"""The worked programs as transformers, against their definitions, in each weighting they admit."""

import functools
import itertools
import re

import golden
import numpy as np
import pytest
from references import (
    ALPHABETS,
    CASES,
    REFERENCES,
    WEIGHTINGS,
    arithmetics,
    every_string,
    every_string_of,
    given,
    hard_strings,
)

import transformist as tf
from transformist.programs import PROGRAMS
from transformist.report.size import size

SHORT = {2: 6, 3: 4, 4: 3}
LONG = {2: 12, 3: 7, 4: 6}
"""The length to which every string is tried, by the number of symbols."""

LENGTHS = [
    12,
    50,
    pytest.param(100, marks=pytest.mark.slow),
    pytest.param(200, marks=pytest.mark.slow),
]

NAMES = list(REFERENCES)

in_each_weighting = pytest.mark.parametrize(("name", "weighting"), CASES)


@functools.cache
def compiled(name, weighting, N):
    return tf.compile(PROGRAMS[name], max_length=N, weighting=weighting)


def assert_right(model, name, strings, arithmetic):
    answers = model.answers([given(name, x) for x in strings], arithmetic)
    for x, answer in zip(strings, answers, strict=True):
        expected = REFERENCES[name](x)
        assert answer == expected, (model, arithmetic, len(x), x, answer, expected)


def in_its_type(program):
    symbols = list(program.alphabet)
    return "".join(symbols) if isinstance(symbols[0], str) else symbols


def test_each_has_a_reference_and_its_weightings():
    assert list(WEIGHTINGS) == list(REFERENCES) == list(ALPHABETS) == list(PROGRAMS)
    assert all(given(name, ALPHABETS[name]) == in_its_type(PROGRAMS[name]) for name in NAMES)


@pytest.mark.parametrize("lengths", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_on_every_string(name, lengths):
    alphabet = ALPHABETS[name]
    for x in every_string(alphabet, lengths[len(alphabet)]):
        assert PROGRAMS[name](given(name, x)) == REFERENCES[name](x), x


@pytest.mark.parametrize("N", LENGTHS)
@pytest.mark.parametrize("name", NAMES)
def test_the_interpreter_on_hard_strings(name, N):
    for x in hard_strings(name, N):
        assert PROGRAMS[name](given(name, x)) == REFERENCES[name](x), x


@pytest.mark.parametrize("lengths", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
@in_each_weighting
def test_every_string(name, weighting, lengths):
    """Declared for 12, and for the length of the string itself."""
    alphabet = ALPHABETS[name]
    longest = lengths[len(alphabet)]
    for arithmetic in arithmetics(weighting):
        strings = every_string(alphabet, longest)
        assert_right(compiled(name, weighting, 12), name, strings, arithmetic)
        for n in range(longest + 1):
            model = compiled(name, weighting, max(n, 1))
            assert_right(model, name, every_string_of(alphabet, n), arithmetic)


@pytest.mark.parametrize("N", LENGTHS)
@in_each_weighting
def test_hard_strings(name, weighting, N):
    """Constant, short, near-miss and drawn strings in models declared for N."""
    assert_right(compiled(name, weighting, N), name, hard_strings(name, N), "float32")


@pytest.mark.parametrize(
    "N", [12, *(pytest.param(N, marks=pytest.mark.slow) for N in (50, 100, 200))]
)
@in_each_weighting
def test_hard_strings_in_more_bits(name, weighting, N):
    """In float64, or exactly."""
    _, arithmetic = arithmetics(weighting)
    assert_right(compiled(name, weighting, N), name, hard_strings(name, N), arithmetic)


@in_each_weighting
def test_short_and_constant_strings_declared_for_200(name, weighting):
    """What a temperature or a threshold that forgets N gets wrong first."""
    alphabet = ALPHABETS[name]
    strings = [a * n for a in alphabet for n in (*range(1, 13), 199, 200)]
    strings += every_string(alphabet, SHORT[len(alphabet)] - 1)
    assert_right(compiled(name, weighting, 200), name, strings, "float32")


@pytest.mark.parametrize("arithmetic", ["float32", "float64", "exact"])
@pytest.mark.parametrize("N", [10, 12, 50, 100, 200])
def test_ten_equal_tokens_are_ten(N, arithmetic):
    weighting = "average-hard" if arithmetic == "exact" else "softmax"
    assert compiled("histogram", weighting, N)("a" * 10, arithmetic) == [10] * 10


@tf.program(alphabet="abcd")
def reverse_of_four(x):
    return x.lookup(x.position("n") + 1 - x.position("i"), default="a").tag()


@tf.program(alphabet="()ab")
def nested_among_letters(x):
    """Whether the parentheses are well nested, whatever stands between, and as many a as b.

    And in each prefix no more b than a: a for an opening one, b for a closing one.
    """
    round_ = x.map({"(": 1, ")": -1, "a": 0, "b": 0}).prefix_mean()
    letters = x.map({"(": 0, ")": 0, "a": 1, "b": -1}).prefix_mean()
    never_below = ((round_ >= 0) & (letters >= 0)).all_so_far()
    return (never_below & (round_ == 0) & (letters == 0)).accept()


BY_NAME = [
    (reverse_of_four, "abcdabcdab", "badcbadcba"),
    (nested_among_letters, "()ab()ab()", True),
    (nested_among_letters, "()ab()ba()", False),
    (nested_among_letters, "(a)b()ab()", True),
    (nested_among_letters, "()ab()ab)(", False),
    (PROGRAMS["shuffle-dyck-2"], "()[]()[]()", True),
    (PROGRAMS["shuffle-dyck-2"], "()[]()][()", False),
    (
        PROGRAMS["sort"],
        [3, 1, 2, 2, 2, 4, 1, 4, 3, 3, 2, 1, 2],
        [1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4],
    ),
    (PROGRAMS["sort"], [1, 2, 3, 1, 2, 3, 4, 4, 1], [1, 1, 1, 2, 2, 3, 3, 4, 4]),
]
"""Inputs on which compilers of programs were seen to fail, and their neighbours."""


@pytest.mark.parametrize("arithmetic", ["float32", "float64", "exact"])
@pytest.mark.parametrize("N", [13, 50, 100, 200])
@pytest.mark.parametrize(("program", "x", "answer"), BY_NAME)
def test_inputs_by_name(program, x, answer, N, arithmetic):
    weighting = "average-hard" if arithmetic == "exact" else "softmax"
    model = tf.compile(program, max_length=N, weighting=weighting)
    assert program(x) == answer and model(x, arithmetic) == answer


ON_NOTHING = {
    **dict.fromkeys(["dyck-1", "dyck-k-d", "shuffle-dyck-2", "palindrome", "equal-abc"], True),
    **dict.fromkeys(["majority", "parity", "contains-abc"], False),
    **dict.fromkeys(["induction-most-recent", "induction-most-frequent", "reverse"], ""),
    **dict.fromkeys(["most-frequent-token", "binary-increment"], ""),
    **{name: [] for name in ("histogram", "double-histogram", "fraction-of-previous", "sort")},
}


@in_each_weighting
def test_the_empty_string(name, weighting):
    for N, arithmetic in itertools.product((1, 12, 200), arithmetics(weighting)):
        answer = compiled(name, weighting, N)(given(name, ""), arithmetic)
        assert answer == ON_NOTHING[name] and answer is not None, (N, arithmetic, answer)


@in_each_weighting
def test_one_symbol_more_than_declared_is_refused(name, weighting):
    model = compiled(name, weighting, 12)
    with pytest.raises(tf.TransformistError, match=r"length of at most N = 12; received length 13"):
        model(given(name, ALPHABETS[name][0] * 13))


# Margins: what softmax leaves elsewhere, and what rounding does, stay within what is derived


def half_a_mean(N):
    """A threshold that is a power of two parts 0 from 1/(N + 1) so far at least."""
    return 1 / (4 * (N + 1))


@pytest.mark.parametrize("N", LENGTHS)
@pytest.mark.parametrize(("arithmetic", "far"), [("float32", 1 / 16), ("float64", 1 / 16**2)])
@pytest.mark.parametrize(
    "name",
    [
        "induction-most-recent",
        "induction-most-frequent",
        "reverse",
        "most-frequent-token",
        "binary-increment",
    ],
)
def test_labels_are_far_apart(name, arithmetic, far, N):
    """The label's number is near 1, the others near 0.

    A sixteenth of the weight may lie elsewhere where scores are as far off as is allowed for, the
    square of it where they are exact.
    """
    model, strings = compiled(name, "softmax", N), [x for x in hard_strings(name, N) if x]
    labels = model.read_out.labels
    for x, values in zip(strings, model.values(strings, arithmetic), strict=True):
        expected = [[label == symbol for label in labels] for symbol in REFERENCES[name](x)]
        assert np.abs(values - np.array(expected)).max() <= far, (len(x), x)


def a_quarter(_):
    """What accepts is 0 or 1, and less than a quarter off."""
    return 1 / 4


BOOLEAN = [
    "dyck-1",
    "dyck-k-d",
    "shuffle-dyck-2",
    "parity",
    "palindrome",
    "equal-abc",
    "contains-abc",
]


@pytest.mark.parametrize("N", LENGTHS)
@pytest.mark.parametrize("arithmetic", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "least"), [("majority", half_a_mean), *((name, a_quarter) for name in BOOLEAN)]
)
def test_acceptance_is_far_from_rejection(name, least, arithmetic, N):
    """What is compared with 0 is far from it, on either side."""
    model, strings = compiled(name, "softmax", N), hard_strings(name, N)
    for x, values in zip(strings, model.values(strings, arithmetic), strict=True):
        ((value,),) = values
        assert (value > 0) == REFERENCES[name](x) and abs(value) >= least(N), (len(x), x)


# Formats: what is compiled for one is right in it, to the longest that is not refused


MOST = 10**5

FAST = ("dyck-1", "majority", "parity", "reverse", "binary-increment")

NARROW = [
    case if case[0] in FAST else pytest.param(*case, marks=pytest.mark.slow) for case in CASES
]


def longest_in(name, weighting, arithmetic):
    """The largest N up to 10⁵ that is said to fit; 0 where none is."""
    try:
        tf.compile(PROGRAMS[name], max_length=MOST, weighting=weighting, arithmetic=arithmetic)
    except tf.TransformistError as refused:
        assert "compile it for an arithmetic with more bits" in str(refused)
        found = re.search(r"max_length=(\d+) fits", str(refused))
        return int(found[1]) if found else 0
    return MOST


@pytest.mark.parametrize("arithmetic", ["float16", "bfloat16"])
@pytest.mark.parametrize(("name", "weighting"), NARROW)
def test_what_fits_a_narrow_format_is_right_in_it(name, weighting, arithmetic):
    longest = longest_in(name, weighting, arithmetic)
    build = functools.partial(
        tf.compile, PROGRAMS[name], weighting=weighting, arithmetic=arithmetic
    )
    assert longest < MOST or name == "binary-increment" or weighting == "rightmost-hard"
    if longest < MOST:
        message = rf"{arithmetic} must be .* N = {longest + 1};"
        with pytest.raises(tf.TransformistError, match=message):
            build(max_length=longest + 1)
    for N in {longest, min(longest, 40), (longest + 1) // 2} - {0}:
        assert_right(build(max_length=N), name, narrow_strings(name, N), arithmetic)


def narrow_strings(name, N):
    """Of hard strings of lengths up to 80, those that N admits."""
    strings = hard_strings(name, min(max(N, 4), 80), drawn=2)
    return [x for x in strings if len(x) <= N]


# Options


@tf.program(alphabet="ab")
def ahead_of_some(x):
    """More a than b, and some b."""
    lead = x.map({"a": 1, "b": -1}).mean()
    both = (x == "a").any_so_far() & (x == "b").any_so_far()
    return ((lead > 0) & both).accept()


def heads_a_layer(model):
    return [len(layer.heads) for layer in model.layers]


@in_each_weighting
def test_one_head_a_layer(name, weighting):
    model = tf.compile(PROGRAMS[name], max_length=12, weighting=weighting, heads="one")
    assert max(heads_a_layer(model)) == 1
    strings = every_string(ALPHABETS[name], SHORT[len(ALPHABETS[name])])
    for arithmetic in arithmetics(weighting):
        assert_right(model, name, strings, arithmetic)


@pytest.mark.parametrize(("weighting", "heads"), [("softmax", 2), ("average-hard", 3)])
def test_one_head_a_layer_where_there_are_several(weighting, heads):
    """Hard attention looks for each symbol with a head of its own."""
    many, one = (
        tf.compile(ahead_of_some, max_length=12, weighting=weighting, heads=each)
        for each in ("many", "one")
    )
    assert heads_a_layer(many) == [heads] and heads_a_layer(one) == [1] * heads
    strings = every_string("ab", 7)
    expected = [x.count("a") > x.count("b") > 0 for x in strings]
    for arithmetic in arithmetics(weighting):
        assert many.answers(strings, arithmetic) == expected
        assert one.answers(strings, arithmetic) == expected


UNIFORM = [
    ("induction-most-recent", "rightmost-hard"),
    ("reverse", "softmax"),
    ("reverse", "average-hard"),
    ("reverse", "rightmost-hard"),
    ("fraction-of-previous", "softmax"),
    ("fraction-of-previous", "average-hard"),
    ("parity", "average-hard"),
    ("palindrome", "average-hard"),
    ("palindrome", "rightmost-hard"),
    ("sort", "average-hard"),
    ("contains-abc", "average-hard"),
    ("contains-abc", "rightmost-hard"),
    ("binary-increment", "average-hard"),
    ("binary-increment", "rightmost-hard"),
]
"""Where no constant depends on N."""


@pytest.mark.parametrize(("name", "weighting"), UNIFORM)
@pytest.mark.parametrize("N", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_any_length(name, weighting, N):
    model = compiled(name, weighting, None)
    assert model.max_length is None
    assert_right(model, name, every_string(ALPHABETS[name], 3), "float32")
    for arithmetic in arithmetics(weighting):
        assert_right(model, name, hard_strings(name, N, drawn=2), arithmetic)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "weighting"), UNIFORM)
def test_a_thousand_symbols(name, weighting):
    alphabet = ALPHABETS[name]
    strings = [(alphabet * 1000)[:1000], alphabet[0] * 999 + alphabet[1], alphabet[1] * 1000]
    assert_right(compiled(name, weighting, None), name, strings, "float32")


@pytest.mark.parametrize(("name", "weighting"), UNIFORM)
def test_no_constant_depends_on_the_length(name, weighting):
    """The weights for any length are those for 12 and for 200."""
    texts = {golden.weights(compiled(name, weighting, N)) for N in (12, 200, None)}
    assert len(texts) == 1


SUBEXPRESSIONS = {
    "dyck-1": "balance",
    "dyck-k-d": "part of depth + (~opens).where(1, 0) == each [each=1]",
    "shuffle-dyck-2": "x.map({symbol: (symbol == left) - (symbol == right) for symbol in x.a… "
    "[left='(', right=')']",
    "induction-most-recent": 'part of x.select(previous, mask="future").rightmost(x, default=x)',
    "induction-most-frequent": "followed",
    "histogram": "own",
    "double-histogram": "part of count == own",
    "most-frequent-token": "part of counts[k] >= counts[j] [k=0, j=1]",
    "majority": "lead",
    "parity": '(x == "1").count()',
    "palindrome": "part of (opposite == x).all()",
    "sort": "x.isin(range(1, value + 1)).count() [value=1]",
    "equal-abc": "more_a",
    "contains-abc": '(ab & (x == "c")).any()',
    "binary-increment": 'part of (x == "1").all("strict-past")',
    ("equal-abc", "softmax"): 'x.isin("bc").any_so_far()',
}
"""What depends on N first, by the program; where that differs, with its weighting."""


@pytest.mark.parametrize(("name", "weighting"), [case for case in CASES if case not in UNIFORM])
def test_any_length_is_refused_where_a_constant_depends_on_it(name, weighting):
    named = re.escape(SUBEXPRESSIONS.get((name, weighting), SUBEXPRESSIONS.get(name)))
    message = (
        rf"py, line \d+: .*depends on N; received '{named}', max_length = None; give max_length"
    )
    with pytest.raises(tf.TransformistError, match=message):
        tf.compile(PROGRAMS[name], max_length=None, weighting=weighting)


MEANS = {
    "dyck-1": "balance",
    "dyck-k-d": 'opens.count("future")',
    "shuffle-dyck-2": SUBEXPRESSIONS["shuffle-dyck-2"],
    "induction-most-frequent": "((previous == a) & (x == b)).count(\"future\") [b='a', a='a']",
    "histogram": "(x == symbol).count() [symbol='a']",
    "double-histogram": "(x == symbol).count() [symbol='a']",
    "most-frequent-token": "(x == symbol).count() [symbol='a']",
    "majority": "lead",
    "parity": '(x == "1").count()',
    "sort": "x.isin(range(1, value + 1)).count() [value=1]",
    "equal-abc": "more_a",
    "fraction-of-previous": '(x == "a").prefix_mean()',
}


def test_each_has_a_mean_or_is_compiled_without():
    assert set(MEANS) == {name for name in NAMES if "rightmost-hard" not in WEIGHTINGS[name]}


@pytest.mark.parametrize("name", MEANS)
def test_rightmost_hard_attention_has_no_mean(name):
    received = rf"received '{re.escape(MEANS[name])}', a mean or count; compile it with"
    message = rf"attends to several positions; {received}"
    with pytest.raises(tf.TransformistError, match=message):
        tf.compile(PROGRAMS[name], max_length=12, weighting="rightmost-hard")


WITH_POSITIONS = [
    ("induction-most-recent", "softmax"),
    ("induction-most-recent", "average-hard"),
    ("contains-abc", "softmax"),
    ("contains-abc", "average-hard"),
    *(
        (name, weighting)
        for name in (
            "dyck-k-d",
            "induction-most-frequent",
            "parity",
            "reverse",
            "palindrome",
            "sort",
        )
        for weighting in WEIGHTINGS[name]
    ),
]


@in_each_weighting
def test_positions_that_are_not_allowed(name, weighting):
    """Refused by name where they are needed; elsewhere the model has none."""
    if (name, weighting) not in WITH_POSITIONS:
        model = tf.compile(PROGRAMS[name], max_length=12, weighting=weighting, positions=())
        assert model.embedding.positions is None
        return
    message = r"position function i\b.*received .+, positions = none; allow i, or leave positions"
    with pytest.raises(tf.TransformistError, match=message):
        tf.compile(PROGRAMS[name], max_length=12, weighting=weighting, positions=())


@pytest.mark.parametrize("weighting", WEIGHTINGS["reverse"])
def test_the_square_of_the_position_is_asked_for_by_name(weighting):
    with pytest.raises(
        tf.TransformistError,
        match=r"position function i\^2, which .* must be allowed; received .*lookup",
    ):
        tf.compile(PROGRAMS["reverse"], max_length=12, weighting=weighting, positions=("i",))
    model = tf.compile(
        PROGRAMS["reverse"], max_length=12, weighting=weighting, positions=("i", "i^2")
    )
    assert model("abc") == "cba"


# Sizes


BESIDE_RECIPES = [
    ("dyck-1", "softmax", {}),
    ("dyck-1", "average-hard", {}),
    *(
        ("induction-most-recent", weighting, {"weighting": weighting, "alphabet": "abc"})
        for weighting in WEIGHTINGS["induction-most-recent"]
    ),
]


@pytest.mark.parametrize("N", [12, 50, 100, 200])
@pytest.mark.parametrize(("name", "weighting", "settings"), BESIDE_RECIPES)
def test_no_larger_than_the_recipe(name, weighting, settings, N):
    """No more layers, and at most one slot more."""
    by_hand = size(tf.recipe(name).build(max_length=N, **settings))
    ours = size(compiled(name, weighting, N))
    assert ours.layers <= by_hand.layers and ours.width <= by_hand.width + 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_slot_has_a_name_and_a_span(name):
    stream = compiled(name, "softmax", 12).stream
    assert len(set(stream.slots)) == len(stream.slots) and all(stream.slots)
    assert {span.slot for span in stream.spans} == set(range(stream.width))
