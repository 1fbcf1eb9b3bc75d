"""Representations (3.1 to 3.3): Table 4, and what takes one representation to another."""

import itertools
import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import SYSTEMS, Floating
from transformist.domains import BooleanRepresentation, Multiples, RealInterval
from transformist.errors import InvalidValue, NotFinite, UnknownName
from transformist.model import FeedForward

TABLE = {each.name: each for each in tf.boolean_representations()}

# Table 4, as in the paper: name, false, true, and its four columns
PRINTED = """
    nonpositive-positive (−∞,0] (0,∞)  no  no  no  no
    zero-one             0      1      yes yes no  no
    minus-one-one        -1     1      yes yes no  no
    negative-positive    (−∞,0) (0,∞)  yes no  no  no
    zero-at-least-one    0      [1,∞)  yes yes no  no
    pair                 [1,-1] [-1,1] yes yes yes yes
    scaled-pair          [1,-1]·(0,∞) [-1,1]·(0,∞) yes no yes no
"""

# The same sets, by hand
FALSE = {
    "nonpositive-positive": lambda x: x[0] <= 0,
    "zero-one": lambda x: x[0] == 0,
    "minus-one-one": lambda x: x[0] == -1,
    "negative-positive": lambda x: x[0] < 0,
    "zero-at-least-one": lambda x: x[0] == 0,
    "pair": lambda x: tuple(x) == (1, -1),
    "scaled-pair": lambda x: x[0] == -x[1] > 0,
}
TRUE = {
    "nonpositive-positive": lambda x: x[0] > 0,
    "zero-one": lambda x: x[0] == 1,
    "minus-one-one": lambda x: x[0] == 1,
    "negative-positive": lambda x: x[0] > 0,
    "zero-at-least-one": lambda x: x[0] >= 1,
    "pair": lambda x: tuple(x) == (-1, 1),
    "scaled-pair": lambda x: x[1] == -x[0] > 0,
}
SIZES = [Fraction(0), *[Fraction(m) * Fraction(2) ** e for m in (1, 3) for e in range(-40, 41, 4)]]


def members(name):
    """Members of false and of true among vectors of many sizes, the two coordinates opposite."""
    width = 2 if "pair" in name else 1
    vectors = [(x, -x)[:width] for size in SIZES for x in (size, -size)]
    return tuple([x for x in vectors if side[name](x)] for side in (FALSE, TRUE))


def rows():
    return [line.split() for line in PRINTED.strip().splitlines()]


def test_table_4_is_the_printed_one():
    got = [
        [each.name, str(each.false).replace(" ", ""), str(each.true).replace(" ", "")]
        + ["yes" if has else "no" for has in each.properties.values()]
        for each in tf.boolean_representations()
    ]
    assert got == rows()
    assert list(TABLE["pair"].properties) == [
        "continuous operations", "minimum gap", "fixed mean", "fixed variance",
    ]  # fmt: skip


def test_one_representation_has_all_properties_whatever_the_text_says():
    assert [name for name, each in TABLE.items() if all(each.properties.values())] == ["pair"]


@pytest.mark.parametrize("name", TABLE)
def test_the_sets_are_those_of_the_table(name):
    width = TABLE[name].dimension
    for x in itertools.product([s * size for size in SIZES for s in (1, -1)], repeat=width):
        assert (x in TABLE[name].false) == bool(FALSE[name](x)), x
        assert (x in TABLE[name].true) == bool(TRUE[name](x)), x
        assert (x in TABLE[name]) == bool(FALSE[name](x) or TRUE[name](x))


def squared(x, y):
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("name", TABLE)
def test_the_gap_is_the_least_distance_of_members(name):
    least = min(squared(x, y) for x, y in itertools.product(*members(name)))
    if TABLE[name].minimum_gap:
        assert least == TABLE[name].squared_gap
    else:
        assert 0 < least < Fraction(1, 2**70) and TABLE[name].squared_gap == 0
    assert TABLE[name].gap == math.sqrt(TABLE[name].squared_gap)


@pytest.mark.parametrize("name", TABLE)
def test_negation_is_continuous_iff_the_operations_are(name):
    """A jump at x: members of the other set come as near to x as one likes."""
    for one, other in (members(name), members(name)[::-1]):
        jumps = [x for x in one if min(squared(x, y) for y in other) <= Fraction(1, 2**70)]
        near = [x for x in jumps if not any(x)]  # all others are at a distance of their own
        if near:
            assert not TABLE[name].continuous_operations
            break
    else:
        assert TABLE[name].continuous_operations


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("count", [2, 3])
def test_mean_and_variance_are_fixed_iff_they_are_said_to_be(name, count):
    false, true = (side[:4] for side in members(name))
    means, variances = set(), set()
    for chosen in itertools.product(false + true, repeat=count):
        vector = [entry for x in chosen for entry in x]
        mean = sum(vector) / len(vector)
        means.add(mean)
        variances.add(sum((entry - mean) ** 2 for entry in vector) / len(vector))
    assert (len(means) == 1) == TABLE[name].fixed_mean
    assert (len(variances) == 1) == TABLE[name].fixed_variance


half_open = RealInterval(Fraction(0), Fraction(2), with_most=False)


def test_other_sets_have_the_properties_they_have():
    """Sets off the table, so that no property is a matter of names."""
    beside = BooleanRepresentation(
        "beside", Multiples(half_open), Multiples(RealInterval(Fraction(2), Fraction(3)))
    )
    assert (beside.meeting, beside.squared_gap) == ((2,), 0)
    assert not any(beside.properties.values())
    across = BooleanRepresentation(
        "across",
        Multiples(RealInterval(Fraction(1), Fraction(2)), (1, 0)),
        Multiples(RealInterval(Fraction(1)), (1, 1)),
    )
    assert across.squared_gap == 1  # (1, 0) or (2, 0) from (1, 1)
    slanted = BooleanRepresentation(
        "slanted",
        Multiples(RealInterval(Fraction(4), Fraction(4)), (1, 0)),
        Multiples(RealInterval(Fraction(1)), (1, 1)),
    )
    assert slanted.squared_gap == 8  # (4, 0) from (2, 2), inside
    same_length = BooleanRepresentation(
        "same length",
        Multiples(RealInterval(Fraction(5), Fraction(5)), (1, 0)),
        Multiples(RealInterval(Fraction(1), Fraction(1)), (3, 4)),
    )
    assert not same_length.fixed_mean and not same_length.fixed_variance
    swapped = BooleanRepresentation(
        "swapped",
        Multiples(RealInterval(Fraction(1), Fraction(1)), (3, 4)),
        Multiples(RealInterval(Fraction(1), Fraction(1)), (4, 3)),
    )
    assert all(swapped.properties.values())


def test_false_and_true_are_disjoint_and_of_one_width():
    zero = Multiples(RealInterval(Fraction(0), Fraction(0)))
    for other in (Multiples(half_open), Multiples(half_open, (1, 1)), zero):
        with pytest.raises(InvalidValue, match="disjoint sets of vectors of one width"):
            BooleanRepresentation("both", zero, other)
    with pytest.raises(InvalidValue, match="disjoint"):
        BooleanRepresentation(
            "crossing", Multiples(half_open, (1, 0)), Multiples(half_open, (0, 1))
        )
    with pytest.raises(InvalidValue, match="vector of multiples must not be 0"):
        Multiples(half_open, (0, 0))
    with pytest.raises(InvalidValue, match="the interval of factors not empty"):
        Multiples(RealInterval(Fraction(1), Fraction(0)))
    with pytest.raises(InvalidValue, match="must have the size"):
        Multiples(half_open).of_size(Fraction(2))


# convert-boolean

# To sets with a gap from sets without, the images would have to come together and cannot; from a
# set that has the common limit to one that has not, the image of that limit is missing.
APART = ("zero-one", "minus-one-one", "zero-at-least-one", "pair")
TOUCHING = ("nonpositive-positive", "negative-positive", "scaled-pair")
REFUSED = {
    **dict.fromkeys(itertools.product(TOUCHING, APART), "apart"),
    ("nonpositive-positive", "negative-positive"): "0 is false",
    ("nonpositive-positive", "scaled-pair"): "0 is false",
}


def separates(name):
    """A linear form and the most it has on false and the least on true, where they differ."""
    forms = {"zero-one": (1, 0, 1), "minus-one-one": (1, -1, 1), "zero-at-least-one": (1, 0, 1)}
    return forms.get(name, (-1, -1, 1))  # of the first coordinate of a pair, −x₁


@pytest.mark.parametrize(("source", "target"), REFUSED)
def test_what_is_refused_is_impossible(source, target):
    """Sequences of false and of true with one limit, whose images cannot have one limit."""
    false, true = members(source)
    pairs = [(x, y) for x in false for y in true if squared(x, y) <= Fraction(1, 2**70)]
    assert pairs
    new_false, new_true = members(target)
    if REFUSED[source, target] == "apart":
        sign, most, least = separates(target)
        assert all(sign * x[0] <= most for x in new_false) and most < least
        assert all(sign * y[0] >= least for y in new_true)
        return
    # 0 is false, and a limit of true: its image is a false of the target, but those are at a
    # positive distance from all of true, each at its own
    assert (0,) in false and (0,) not in [y for _, y in pairs]
    for x in new_false:
        assert x[0] and all(squared(x, y) >= x[0] ** 2 for y in new_true)


BUILT = [pair for pair in itertools.product(TABLE, TABLE) if pair not in REFUSED]


def test_all_49_pairs_are_decided():
    assert len(TABLE) ** 2 == 49 and (len(BUILT), len(REFUSED)) == (35, 14)


@pytest.mark.parametrize(("source", "target"), BUILT)
def test_what_is_built_takes_false_to_false_and_true_to_true(source, target):
    network = tf.recipe("convert-boolean").build(source=source, target=target)
    sides = zip(members(source), (FALSE, TRUE), strict=True)
    for (side, sets), (name, system) in itertools.product(sides, SYSTEMS.items()):
        chosen = [*side, *extreme(system, TABLE[source].dimension, sets[source])]
        held = [x for x in chosen if stored(system, x)]
        numbers = system.numbers(network(system.array(held), system)).tolist()
        assert held and all(sets[target](list(map(Fraction, y))) for y in numbers), name


def extreme(system, width, belongs):
    """The smallest and the largest numbers of a format, where they belong to a set."""
    if not isinstance(system, Floating):
        return []
    sizes = [Fraction(system.smallest), Fraction(system.largest)]
    vectors = [(s * size, -s * size)[:width] for size in sizes for s in (1, -1)]
    return [x for x in vectors if belongs(x)]


def stored(system, x):
    """Whether the arithmetic holds these numbers as they are."""
    try:
        return system.numbers(system.array([x])).tolist() == [list(x)]
    except NotFinite:
        return False


def test_which_member_comes_out():
    def converted(source, target, x):
        return tf.recipe("convert-boolean").build(source=source, target=target)([x]).tolist()

    assert converted("zero-one", "pair", [0]) == [[1, -1]]
    assert converted("zero-one", "nonpositive-positive", [0]) == [[-1]]
    assert converted("zero-at-least-one", "zero-at-least-one", [1000]) == [[1]]
    assert converted("pair", "zero-one", [1, -1]) == [[0]]
    assert converted("negative-positive", "scaled-pair", [-5]) == [[5, -5]]
    assert converted("scaled-pair", "negative-positive", [-0.25, 0.25]) == [[0.25]]
    assert converted("nonpositive-positive", "nonpositive-positive", [0]) == [[0]]


@pytest.mark.parametrize(("source", "target"), REFUSED)
def test_the_refusal_names_both_the_reason_and_what_would_do(source, target):
    with pytest.raises(InvalidValue) as refused:
        tf.recipe("convert-boolean").build(source=source, target=target)
    text = str(refused.value)
    assert f"source = {source}, target = {target}" in text and "must have a continuous map" in text
    reason = {
        "apart": f"as near to each other as one likes, those of {target} do not",
        "0 is false": f"0 is false in {source} and a limit of the other set, and no false of",
    }[REFUSED[source, target]]
    assert reason in text
    targets = ", ".join(name for name in TABLE if (source, name) not in REFUSED)
    sources = ", ".join(name for name in TABLE if (name, target) not in REFUSED)
    assert f"for this source choose the target from {targets};" in text
    assert text.endswith(f"for this target the source from {sources}")


@pytest.mark.parametrize("recipe", ["convert-boolean", "convert-category"])
@pytest.mark.parametrize("setting", ["source", "target"])
def test_an_unknown_representation_is_refused_with_the_nearest(recipe, setting):
    with pytest.raises(UnknownName, match="representation has this name; received 'one-hit'"):
        tf.recipe(recipe).build(**{setting: "one-hit"})
    with pytest.raises(InvalidValue, match=f"{setting} must be the name of one"):
        tf.recipe(recipe).build(**{setting: 3})


# convert-category

SMALL = {"categories": 6, "epsilon": "2/5", "width": 24, "seed": 1}


def codes(name, **given):
    if name == "one-hot":
        return np.eye(given["categories"])
    given = {"max_length": given.pop("categories"), **given}
    return tf.recipe("position-almost-orthogonal").build(**given)(given["max_length"])


def threshold(m, epsilon):
    """m less the largest power of two that is at most (1 − ε) m."""
    return m - 2 ** int(math.log2(m * (1 - epsilon)))


CATEGORICAL = list(itertools.product(("one-hot", "almost-orthogonal"), repeat=2))


@pytest.mark.parametrize("arithmetic", SYSTEMS)
@pytest.mark.parametrize(("source", "target"), CATEGORICAL)
def test_every_category_arrives_exactly(arithmetic, source, target):
    system, tried = SYSTEMS[arithmetic], 0
    for given in (SMALL, {"categories": 2}, {"categories": 40, "seed": 5}):
        x, y = (codes(name, **given) for name in (source, target))
        limit = threshold(x.shape[1], float(Fraction(given.get("epsilon", "1/4"))))
        if source == "one-hot" or stored(system, (limit, x.shape[1])):
            network = tf.recipe("convert-category").build(source=source, target=target, **given)
            got = system.numbers(network(system.array(x), system))
            assert (np.array(got, dtype=float) == y).all()
            assert network.b_1.shape == (len(x),)
            tried += 1
    assert tried


def test_where_a_format_rounds_the_threshold_it_is_not_called_exact():
    claim = tf.recipe("convert-category").claim
    held = claim.exact_on
    for m, p, exact in ((40, 8, True), (151, 8, True), (681, 8, False), (2000, 11, True)):
        vectors = tf.domains.Listed(((1,) * m,), "one")
        got = held(p=p, domain=vectors, source="almost-orthogonal", epsilon=Fraction(1, 4))
        system = {8: SYSTEMS["bfloat16"], 11: SYSTEMS["float16"]}[p]
        if got:
            assert stored(system, (threshold(m, 0.25),))
        assert bool(got) == exact, m
    assert held(p=3, domain=vectors, source="one-hot", epsilon=Fraction(1, 4)) == (vectors,)


def test_a_fault_in_the_way_back_is_caught():
    """Each weight, moved by its eighth (a 0 by 1), changes the vector of some category."""
    given = {"categories": 3, "width": 8}
    x, y = codes("almost-orthogonal", **given), np.eye(3)
    built = tf.recipe("convert-category").build(
        source="almost-orthogonal", target="one-hot", **given
    )
    weights = {name: np.array(getattr(built, name)) for name in ("W_1", "b_1", "W_2")}
    for name, right in weights.items():
        for place in np.ndindex(right.shape):
            differ = []
            for step in (1, -1):
                moved = right.copy()
                moved[place] += step * (moved[place] / 8 or 1)
                differ.append((FeedForward(**{**weights, name: moved})(x) != y).any())
            assert any(differ), (name, place)


# convert-integer

INTEGERS = ("count", "fraction-of-n", "fraction-of-i", "layernorm-hash")
CONVERTED = [
    (source, target)
    for source, target in itertools.product(INTEGERS, INTEGERS)
    if source != target and target != "fraction-of-i"
]


def holding(source, C, i, n):
    """The numbers that hold C at position i of n, in float64."""
    if source == "layernorm-hash":
        root = math.sqrt(2 / (C * C + 1))
        return [root * C, root, -root * C, -root]
    divisor = {"count": 1, "fraction-of-n": n, "fraction-of-i": i}[source]
    return [C / divisor, 1 / divisor]


def list_of(source, target, asked):
    """The vectors of a list whose position i holds asked[i − 1]."""
    n = len(asked)
    lookup = {"count": [[i, i * i] for i in range(1, n + 1)], "layernorm-hash": [[]] * n}
    lookup["fraction-of-n"] = [[i, i * i, i / n] for i in range(1, n + 1)]
    return [holding(source, C, i, n) + lookup[target][i - 1] for i, C in enumerate(asked, start=1)]


def wanted(target, C, n):
    """What stands for C in the target."""
    numbers = holding(target, C, None, n)
    return numbers if target == "layernorm-hash" else numbers[:1]


@pytest.mark.parametrize(("source", "target"), CONVERTED)
def test_every_integer_is_converted_at_every_position(source, target):
    model = tf.recipe("convert-integer").build(source=source, target=target)
    for n in (1, 2, 3, 7, 20):
        for shift in range(n):
            asked = [(i + shift) % n + 1 for i in range(n)]
            got = model(list_of(source, target, asked))
            expected = [wanted(target, C, n) for C in asked]
            assert np.abs(got - expected).max() <= (1e-14 if target == "layernorm-hash" else 0)


@pytest.mark.parametrize(("source", "target"), CONVERTED)
def test_each_weight_of_a_conversion_matters(source, target):
    model = tf.recipe("convert-integer").build(source=source, target=target)
    asked = [2, 3, 1, 5, 4]
    x = list_of(source, target, asked)
    right = model(x)
    names = ("gain", "W_N") if target == "layernorm-hash" else ("W_Q", "W_K", "W_V")
    for name in names:
        for place in np.argwhere(getattr(model, name)).tolist():
            weights = np.array(getattr(model, name))
            weights[tuple(place)] = 0
            assert np.abs(changed(model, **{name: weights})(x) - right).max() > 1e-3, (name, place)
    if target == "layernorm-hash":
        assert np.abs(changed(model, epsilon=1)(x) - right).max() > 1e-3


def changed(model, **given):
    kept = {each.name: getattr(model, each.name) for each in fields(model) if each.init}
    return type(model)(**{**kept, **given})


def test_a_query_may_be_scaled_as_a_whole_only():
    head = tf.recipe("convert-integer").build()
    asked = [2, 3, 1, 5, 4]
    x = np.array(list_of("fraction-of-n", "count", asked))
    for scale, both in itertools.product((0.25, 3), (True, False)):
        scaled = x.copy()
        scaled[:, : 2 if both else 1] *= scale
        assert (head(scaled)[:, 0].tolist() == asked) == both


REFUSED_INTEGERS = [
    ({"target": "fraction-of-i"}, "no ReLU network multiplies C by 1/i; received"),
    ({"target": "fraction-of-i"}, "from count, layernorm-hash; or compute C/i where"),
    ({"source": "count"}, "received source = target = count; choose the target from fraction"),
    ({"source": "fraction-of-i", "target": "fraction-of-i"}, "must be another representation"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED_INTEGERS)
def test_what_is_no_conversion_of_an_integer_is_refused(given, words):
    recipe = tf.recipe("convert-integer")
    for ask in (recipe.build, recipe.safe_lengths, lambda **given: recipe.gap(4, **given)):
        with pytest.raises(InvalidValue) as refused:
            ask(**given)
        assert words in str(refused.value)


@pytest.mark.parametrize("setting", ["source", "target"])
def test_an_unknown_representation_of_an_integer_is_refused(setting):
    with pytest.raises(UnknownName, match="representation of an integer has this name"):
        tf.recipe("convert-integer").build(**{setting: "counts"})


def test_no_head_gives_all_fractions_of_i():
    """A list of n positions stores n numbers; there are more fractions C/i."""
    for n in range(2, 9):
        fractions = {Fraction(C, i) for C in range(1, n + 1) for i in range(1, n + 1)}
        assert len(fractions) > n


def test_where_irrational_numbers_take_part_exact_is_not_claimed():
    recipe = tf.recipe("convert-integer")
    for source, target in CONVERTED:
        safe = recipe.safe_lengths(source=source, target=target)
        assert ("exact" in safe) == ("layernorm-hash" not in (source, target))
        assert set(SYSTEMS) - set(safe) <= {"exact"}
    assert "irrational" in recipe.claim.why_safe
