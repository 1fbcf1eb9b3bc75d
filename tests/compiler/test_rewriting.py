"""Rewritings: the same answers under other masks; nodes without a rule stay as they are."""

import itertools

import pytest

import transformist as tf
from transformist.compiler.rewriting import PASSES, rewritten
from transformist.compiler.rewriting.before import before_by_shifting
from transformist.compiler.rewriting.first_match import cut_off_by_places
from transformist.compiler.rewriting.last_position import causal_at_the_last, whole_at_the_last
from transformist.compiler.rewriting.neighbours import neighbours_by_number
from transformist.compiler.rewriting.past_at_the_last import past_at_the_last
from transformist.language.across import Lookup, Mean, Shift
from transformist.language.leaves import Position
from transformist.programs import PROGRAMS

STRINGS = ["".join(x) for n in range(7) for x in itertools.product("ab", repeat=n)]


def made(function):
    return tf.program(alphabet="ab")(function)


def is_a(x):
    return x == "a"


def signs(x):
    return x.map({"a": 1, "b": -2})


def halves(x):
    """A category, of which the key and the query at one position are often equal."""
    return x.table(is_a(x).predecessor(), values=["p", "q", "q", "r"])


STRICT = {
    "any": lambda x: is_a(x).any("strict-future"),
    "all": lambda x: is_a(x).all("strict-future"),
    "count": lambda x: is_a(x).count("strict-future"),
    "mean": lambda x: signs(x).mean("strict-future"),
    "mean of a Boolean": lambda x: is_a(x).mean("strict-future"),
    "nearest": lambda x: x.nearest_left(is_a(x).predecessor(), default="-"),
    "nearest of all": lambda x: x.nearest_left(True, default="-"),
    "rightmost": lambda x: halves(x).select(x.map({"a": "q", "b": "p"}), mask="strict-future")
    .rightmost(x, default="-"),
    "leftmost": lambda x: halves(x).select(halves(x), mask="strict-future")
    .leftmost(x, default="-"),
    "mean of matches": lambda x: x.select(x, mask="strict-future").mean(x.position("i"), default=3),
    "matches of all": lambda x: is_a(x).select(True, mask="strict-future").mean(signs(x)),
    "Boolean keys": lambda x: is_a(x).select(is_a(x).predecessor(), mask="strict-future")
    .rightmost(signs(x), default=7),
    "numbers": lambda x: signs(x).select(signs(x), mask="strict-future")
    .rightmost(is_a(x.predecessor(default="a")), default=True),
    "default here": lambda x: x.select(x, mask="strict-future")
    .rightmost(x.predecessor(default="b"), default=x),
    "last of whole numbers": lambda x: is_a(x).count("future")
    .select(is_a(x).count("strict-future"), mask="strict-future").rightmost(x, default="-"),
    "match of whole numbers": lambda x: (is_a(x).count("future") - (x == "b").count("future"))
    .select(x.position("i") - 2, mask="strict-future").any(),
    "whole numbers and listed ones": lambda x: signs(x).max(0)
    .select(is_a(x).count("future") - 1, mask="strict-future").rightmost(signs(x), default=9),
    "a table of a listed number": lambda x: signs(x).nearest_left(True, default=1)
    .table(values={1: "p", -2: "q"}),
    "a table of a match": lambda x: signs(x).nearest_left(is_a(x).predecessor(), default=1)
    .table(values={1: "p", -2: "q"}),
    "a map of a count": lambda x: is_a(x).count("strict-future").map(lambda k: k % 3),
    "last less": lambda x: signs(x).select(x.map({"a": 0, "b": 2}), mask="strict-future",
    relation="<").rightmost(x, default="-"),
    "other symbol": lambda x: x.select(x, mask="strict-future", relation="!=")
    .rightmost(x.position("i"), default=-1),
    "any other": lambda x: x.select(x, mask="strict-future", relation="!=").any(),
    "never at itself": lambda x: x.select(x.map({"a": "b", "b": "a"}), mask="strict-future")
    .rightmost(x.position("i"), default=0),
}  # fmt: skip

CUT = {
    f"{name}, {mask}": (lambda x, each=each, mask=mask: each(x, mask))
    for mask in ("future", "strict-future", "past", "strict-past")
    for name, each in {
        "any": lambda x, mask: is_a(x).any(mask),
        "all": lambda x, mask: is_a(x).all(mask),
        "match": lambda x, mask: halves(x).select(halves(x), mask=mask).any(),
        "number": lambda x, mask: _first(halves(x).select(x.map({"a": "q", "b": "p"}), mask=mask))(
            x.position("i"), default=-3
        ),
        "category": lambda x, mask: _first(is_a(x).select(True, mask=mask))(x, default="-"),
        "Boolean": lambda x, mask: _first(x.select(x, mask=mask))(is_a(x), default=True),
        "end": lambda x, mask: _first(is_a(x).select(is_a(x), mask=mask))(signs(x), default=5),
        "at the ends": lambda x, mask: x._nearest(True, _side(mask), mask, "-"),
        "relation": lambda x, mask: _first(
            signs(x).select(x.map({"a": 0, "b": 2}), mask=mask, relation="<=")
        )(x.position("i"), default=-3),
        "any other": lambda x, mask: x.select(x, mask=mask, relation="!=").any(),
        "of all": lambda x, mask: _first((x == x).select(True, mask=mask))(x, default="-"),
    }.items()
}


def _first(matches):
    """The choice that is the first or last of all on its side, by the mask."""
    return getattr(matches, _side(matches._how[0]))


def _side(mask):
    return "leftmost" if "future" in mask else "rightmost"


def assert_same_tags(rule, body):
    program = made(lambda x: body(x).tag())
    changed = rule(program)
    assert changed != program
    assert len(changed.places) == len(changed.nodes)
    for x in STRINGS:
        assert list(changed(x)) == list(program(x)), x
    return masks(changed)


def masks(program):
    return {node.mask for node in program.nodes if hasattr(node, "mask")}


@pytest.mark.parametrize("name", STRICT)
def test_strict_future_is_future_of_what_is_moved(name):
    assert "strict-future" not in assert_same_tags(before_by_shifting, STRICT[name])


@pytest.mark.parametrize("name", CUT)
def test_the_first_match_of_all_tells_of_one_side(name):
    assert assert_same_tags(cut_off_by_places, CUT[name]) <= {"none"}


@pytest.mark.parametrize("k", [-3, -1, 1, 2])
@pytest.mark.parametrize("of", [is_a, signs, lambda x: x])
def test_a_neighbour_is_looked_up(k, of):
    default = {"Booleans": True, "Numbers": 4, "Categories": "-"}

    def moved(x):
        values = of(x)
        how = {"default": default[type(values).__name__]}
        return values.predecessor(k, **how) if k > 0 else values.successor(-k, **how)

    assert_same_tags(neighbours_by_number, moved)
    program = neighbours_by_number(made(lambda x: moved(x).tag()))
    assert Shift not in map(type, program.nodes)


def test_a_key_that_never_matches_its_own_query_is_not_moved():
    program = before_by_shifting(made(lambda x: STRICT["never at itself"](x).tag()))
    assert Lookup not in map(type, program.nodes)
    moved = before_by_shifting(made(lambda x: STRICT["rightmost"](x).tag()))
    assert Lookup in map(type, moved.nodes)


LAST = {
    "mean": lambda x, mask: signs(x).mean(mask) > 0,
    "count": lambda x, mask: is_a(x).count(mask) - x.position("i") * "1/2" == 0,
    "any": lambda x, mask: is_a(x).any(mask) | (x == "b"),
    "select": lambda x, mask: x.select(x.predecessor(default="b"), mask=mask).leftmost(
        is_a(x).successor(), default=True
    ),
    "relation": lambda x, mask: x.select(x, mask=mask, relation="!=").any(),
    "two": lambda x, mask: is_a(x).any(mask) & ~(x == "b").any(mask),
}


@pytest.mark.parametrize("name", LAST)
@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [(causal_at_the_last, "none", "future"), (whole_at_the_last, "future", "none")],
)
def test_none_and_future_are_alike_at_the_last_position(rule, old, new, name):
    program = made(lambda x: LAST[name](x, old).accept(empty=True))
    changed = rule(program)
    assert old in masks(program) and new in masks(changed)
    for x in STRINGS:
        assert changed(x) == program(x), x


@pytest.mark.parametrize("mask", ["past", "strict-past"])
def test_past_masks_at_the_last_position(mask):
    bodies = [
        lambda x: signs(x).mean(mask) > 0,
        lambda x: is_a(x).count(mask) == 1,
        lambda x: is_a(x).any(mask),
        lambda x: is_a(x).all(mask),
        lambda x: halves(x).select(x.map({"a": "q", "b": "p"}), mask=mask).any(),
        lambda x: signs(x).select(x.position("i") - 3, mask=mask).rightmost(is_a(x), default=True),
        lambda x: is_a(x).select(is_a(x).predecessor(), mask=mask).mean(signs(x), default=1) > 0,
        lambda x: x.select(x, mask=mask).leftmost(x, default="-") == "a",
    ]
    for body in bodies:
        program = accepted(body)
        changed = past_at_the_last(program)
        assert mask in masks(program) and mask not in masks(changed)
        assert [changed(x) for x in STRINGS] == [program(x) for x in STRINGS]
    tagged = made(lambda x: is_a(x).any(mask).tag())
    assert past_at_the_last(tagged) == tagged


def accepted(body):
    return made(lambda x: body(x).accept(empty=True))


def looked_up(index):
    return made(lambda x: (x.lookup(index(x), default="a") == "a").accept())


def test_a_lookup_at_the_last_position_is_causal():
    at = [
        lambda x: x.position("n") - 1,
        lambda x: is_a(x).count() * 2,
        lambda x: x.position("i") + 1,
    ]
    for index in at:
        program = looked_up(index)
        changed = causal_at_the_last(program)
        assert masks(changed) == {"future"} and Position((), "n") not in changed.nodes
        for x in STRINGS:
            assert changed(x) == program(x), x


def test_functions_of_n_are_constant_at_the_last_position():
    program = made(
        lambda x: (x.position("i/n") * 2 + x.position("-i/n") - signs(x) > 0).accept(empty=False)
    )
    changed = causal_at_the_last(program)
    assert not any(isinstance(node, Position) for node in changed.nodes)
    assert [changed(x) for x in STRINGS] == [program(x) for x in STRINGS]


def test_what_every_position_reads_is_left():
    """A mean that the last position reads, and a mean over all positions of it as well."""

    def both(x):
        lead = signs(x).mean()
        return ((lead > 0) & (lead.mean() > 0)).accept()

    changed = causal_at_the_last(made(both))
    means = {node.mask for node in changed.nodes if isinstance(node, Mean)}
    assert means == {"none", "future"}
    inner = next(node for node in changed.nodes if isinstance(node, Mean))
    assert inner.mask == "none"
    for rule in (causal_at_the_last, whole_at_the_last):
        tags = made(lambda x: (signs(x).mean() + signs(x).mean("future") > 0).tag())
        assert rule(tags) == tags


def test_programs_are_as_they_are_for_any_masks():
    assert all(rewritten(program, "any") is program for program in PROGRAMS.values())


def test_names_and_places_stay_with_what_is_rewritten():
    program = PROGRAMS["contains-abc"]
    changed = rewritten(program, "future")
    assert [name for name, _ in changed.names] == [name for name, _ in program.names]
    places = dict(zip(program.nodes, program.places, strict=True))
    now = dict(zip(changed.nodes, changed.places, strict=True))
    for (_, old), (_, new) in zip(program.names, changed.names, strict=True):
        assert now[new] == places[old]
    assert set(changed.places) <= set(program.places)


def test_a_deep_program_is_rewritten_without_recursion():
    def deep(x):
        found = is_a(x)
        for _ in range(600):
            found = ~found.predecessor()
        return found.accept()

    program = made(deep)
    changed = rewritten(program, "future")
    assert len(changed.nodes) > 1200 and Shift not in map(type, changed.nodes)
    assert [changed(x) for x in ("", "ab", "abba")] == [program(x) for x in ("", "ab", "abba")]


def test_every_target_has_its_passes():
    from transformist.compiler import TARGETS

    assert set(PASSES) == set(TARGETS)


RELATED = {
    "categories": lambda x, **how: x.select(x.predecessor(default="a"), **how),
    "numbers": lambda x, **how: x.map({"a": 0, "b": 2}).select((x == "a").count("future"), **how),
    "Booleans": lambda x, **how: (x == "a").select((x == "b").any_so_far(), **how),
}
USES = (
    lambda x, found: (found.rightmost(x, default="-") == "a").accept(empty=False),
    lambda x, found: found.any().accept(),
    lambda x, found: (found.mean(x == "a", default=1) > "1/2").accept(),
)


@pytest.mark.parametrize("masks", ["future", "none"])
@pytest.mark.parametrize(
    "relation",
    ["<", *(pytest.param(each, marks=pytest.mark.slow) for each in ["<=", ">", ">=", "!="])],
)
def test_a_selection_by_relation_is_read_at_the_last_position(relation, masks):
    """Over n alone under mask past, and over nothing under strict-past."""
    for (name, related), mask in itertools.product(RELATED.items(), ("past", "strict-past")):
        for use in USES:
            program = made(lambda x: use(x, related(x, mask=mask, relation=relation)))  # noqa: B023
            model = tf.compile(program, max_length=6, masks=masks)
            for x in STRINGS[:31]:
                assert model(x, "float32") == program(x), (name, mask, x)
