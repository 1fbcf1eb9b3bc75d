"""Every kind of node, atom, head, answer and output has its entry in every table."""

import inspect
import itertools

import pytest

import transformist as tf
from transformist.circuit import Atom, Embedded, Fetched, Head, Kept, PositionFeature
from transformist.circuit.margins import RoundedAtom, RoundedHead
from transformist.compiler import (
    answers as compiled_outputs,
)
from transformist.compiler import compile as compiled
from transformist.compiler import (
    lower,
)
from transformist.compiler.answer_kinds import Answer
from transformist.language import across, leaves, pointwise, selection, whole_maps
from transformist.language import output_kinds as outputs
from transformist.language.node import Node
from transformist.language.output_kinds import Output
from transformist.language.types import Boolean, Category, Number


def kinds_below(base):
    """The classes that are made of one."""
    below = set(base.__subclasses__())
    return below.union(*map(kinds_below, below))


NODES, OUTPUTS = kinds_below(Node), kinds_below(Output)
ATOMS = kinds_below(Atom) - {RoundedAtom}
HEADS = {kind for kind in kinds_below(Head) if not inspect.isabstract(kind)}
ANSWERS = kinds_below(Answer)
COMPUTED = ATOMS - {Embedded, PositionFeature, Fetched, Kept}
"""Those that hidden units compute; a `Kept` is only read off weights."""

ByRelation = selection.SelectByRelation

TABLES = {
    "rules": (lower.RULES, NODES),
    "outputs": (compiled_outputs.ANSWERS, OUTPUTS),
    "tags": (compiled_outputs.TAGS, {Boolean, Category, Number}),
    "what fetches": (
        lower.CHANNELS,
        {across.Shift, across.Lookup, selection.Select, selection.SelectByRelation},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_an_entry_for_each_kind_and_no_other(name):
    table, kinds = TABLES[name]
    assert set(table) == kinds


def test_no_kind_of_answer_is_abstract():
    for kind in ANSWERS:
        assert not inspect.isabstract(kind), kind


def test_every_kind_of_atom_and_of_head_has_all_that_is_asked_of_one():
    for kind in (*ATOMS, *HEADS):
        assert issubclass(kind, RoundedAtom | RoundedHead) and not inspect.isabstract(kind), kind


def test_hidden_units_compute_relus_and_steps():
    for kind in ATOMS:
        assert (kind.hidden_units is not Atom.hidden_units) == (kind in COMPUTED), kind


def test_every_kind_of_node_has_a_meaning_of_its_own():
    for kind in NODES:
        assert kind.meaning is not Node.meaning and kind.type is not Node.type, kind


def p(function):
    return tf.program(alphabet="ab")(function)


def bits(x):
    return x.map({"a": 1, "b": 0})


def above_mean(x):
    return (bits(x) - bits(x).mean()).relu()


def count(x):
    return (x == "a").count()


def less(x):
    return x.select(x, relation="<")


def any_a(x):
    return (x == "a").any()


HOW = (
    {"weighting": "average-hard", "arithmetic": "exact"},
    {"weighting": "softmax", "arithmetic": "float32"},
)

EXAMPLES = {
    # a kind of node, the type of its values: a program, the layers it needs, hard and softmax
    (leaves.Token, Category): (p(lambda x: x.tag()), 0, 0),
    (leaves.Constant, Category): (p(lambda x: any_a(x).where("p", "q").tag()), 1, 1),
    (leaves.Constant, Number): (p(lambda x: any_a(x).where(1, 2).tag()), 1, 1),
    (leaves.Constant, Boolean): (p(lambda x: (any_a(x) & True).tag()), 1, 1),
    (leaves.Position, Number): (p(lambda x: (x.position("i") <= 2).tag()), 1, 1),
    (pointwise.Table, Boolean): (p(lambda x: (any_a(x) ^ (x == "b")).tag()), 1, 2),
    (pointwise.Table, Category): (p(lambda x: x.table(any_a(x), values=list("pqrs")).tag()), 1, 2),
    (pointwise.Table, Number): (p(lambda x: x.table(any_a(x), values=[1, 2, 3, 4]).tag()), 1, 2),
    (pointwise.Linear, Number): (p(lambda x: (bits(x) + bits(x).mean() > 1).tag()), 1, 1),
    (pointwise.PiecewiseLinear, Number): (p(lambda x: (above_mean(x) > 0).tag()), 2, 2),
    (pointwise.Multiplication, Number): (p(lambda x: (bits(x) * any_a(x).where(1, 2)).tag()), 1, 2),
    (pointwise.Comparison, Boolean): (p(lambda x: (bits(x).mean() == "1/2").tag()), 1, 1),
    (pointwise.Choice, Number): (p(lambda x: (any_a(x).where(bits(x).mean(), 1) > 0).tag()), 2, 3),
    (pointwise.Choice, Category): (p(lambda x: any_a(x).where(x, "c").tag()), 1, 2),
    (whole_maps.WholeMap, Boolean): (p(lambda x: count(x).map(lambda k: k > 2).tag()), 2, 2),
    (whole_maps.WholeMap, Category): (p(lambda x: count(x).map(lambda k: "ab"[k % 2]).tag()), 2, 2),
    (whole_maps.WholeMap, Number): (p(lambda x: count(x).map(lambda k: k % 2).tag()), 2, 2),
    (whole_maps.Division, Number): (p(lambda x: (x.position("i") % 3).tag()), 1, 1),
    (across.Mean, Number): (p(lambda x: bits(x).mean().tag()), 1, 1),
    (across.Count, Number): (p(lambda x: (x == "a").count().tag()), 1, 1),
    (across.Exists, Boolean): (p(lambda x: any_a(x).tag()), 1, 1),
    (across.Shift, Boolean): (p(lambda x: (x == "a").predecessor().tag()), 1, 1),
    (across.Shift, Category): (p(lambda x: x.predecessor(default="a").tag()), 1, 1),
    (across.Shift, Number): (p(lambda x: bits(x).predecessor(2).tag()), 1, 1),
    (across.Lookup, Boolean): (p(lambda x: (x == "a").lookup(2).tag()), 2, 2),
    (across.Lookup, Category): (p(lambda x: x.lookup(2, default="a").tag()), 2, 2),
    (across.Lookup, Number): (p(lambda x: bits(x).lookup(2).tag()), 2, 2),
    (selection.Select, Boolean): (p(lambda x: (x == "a").nearest_left(x == "b").tag()), 1, 1),
    (selection.Select, Category): (p(lambda x: x.nearest_right(x == "b", default="a").tag()), 2, 2),
    (selection.Select, Number): (p(lambda x: bits(x).last().tag()), 1, 1),
    (ByRelation, Boolean): (p(lambda x: less(x).any().tag()), 1, 1),
    (ByRelation, Category): (p(lambda x: less(x).rightmost(x, default="a").tag()), 1, 1),
    (ByRelation, Number): (p(lambda x: less(x).rightmost(bits(x)).tag()), 1, 1),
}  # fmt: skip


def test_there_is_an_example_of_each_kind_of_node_and_of_each_type_it_can_have():
    assert {kind for kind, _ in EXAMPLES} == NODES
    for (kind, type_), (program, *_) in EXAMPLES.items():
        found = {(type(node), type(node.type)) for node in program.nodes}
        assert (kind, type_) in found, (kind, type_)


@pytest.mark.parametrize("kind, type_", EXAMPLES, ids=lambda each: each.__name__)
def test_each_kind_of_node_costs_the_layers_it_should_and_is_right(kind, type_):
    program, *layers = EXAMPLES[kind, type_]
    given = ["".join(x) for n in range(5) for x in itertools.product("ab", repeat=n)]
    for how, expected in zip(HOW, layers, strict=True):
        model = compiled(program, max_length=5, **how)
        assert len(model.layers) == expected, how
        assert model.answers(given, how["arithmetic"]) == [program(x) for x in given], how


def test_each_kind_of_output_is_among_the_examples_or_here():
    makes = {
        outputs.Accept: lambda x: any_a(x).accept(),
        outputs.NextToken: lambda x: x.predecessor(default="a").next_token(),
    }
    assert set(makes) | {outputs.Tag} == OUTPUTS
    for output, make in makes.items():
        program = p(make)
        model = compiled(program, max_length=5, weighting="average-hard")
        assert type(program.output) is output
        assert all(model(x, arithmetic="exact") == program(x) for x in ("", "a", "ba", "abba"))
