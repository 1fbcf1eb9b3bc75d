"""What a trace keeps: structure without names, names and places beside it; and the edges."""

import dataclasses
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import transformist as tf
from transformist.cli import main
from transformist.language import types
from transformist.language.node import Node
from transformist.programs import PROGRAMS


def test_names_and_places_are_no_part_of_a_program():
    @tf.program(alphabet="ab")
    def one(x):
        balance = (x == "a").prefix_mean()
        return (balance > 0).tag()

    @tf.program(alphabet="ab")
    def other(tokens):
        """Written otherwise."""
        return ((tokens == "a").prefix_mean() > 0).tag()

    assert one == other and hash(one) == hash(other) and one.nodes == other.nodes
    assert [name for name, _ in one.names] == ["x", "balance"]
    assert (other.name, other.description) == ("other", "Written otherwise.")
    assert one.places != other.places


@pytest.mark.parametrize("alphabet", ["abc", "ba"])
def test_alphabet_and_output_are_part_of_it(alphabet):
    def same(x):
        return x.tag()

    def predicted(x):
        return x.next_token()

    program = tf.program(alphabet="ab")(same)
    assert program != tf.program(alphabet=alphabet)(same)
    assert program != tf.program(alphabet="ab")(predicted)
    assert _accepting(True) == _accepting(True) != _accepting(False)


def _accepting(empty):
    @tf.program(alphabet="ab")
    def program(x):
        return (x == "a").accept(empty=empty)

    return program


def test_constants_of_different_types_are_different():
    def of(x, value):
        return x.isin("a").where(value, value).tag()

    one, true = (tf.program(alphabet="ab")(lambda_of(of, value)) for value in (1, True))
    assert one != true
    assert [type(v) for v in (*one("a"), *true("a"))] == [int, bool]


def test_equal_hashes_do_not_make_equal_programs():
    """hash(-1) == hash(-2) in Python."""
    one, two = (
        tf.program(alphabet="ab")(lambda_of(lambda x, v: x.map({"a": v, "b": 0}).tag(), value))
        for value in (-1, -2)
    )
    assert hash(one) == hash(two) and one != two and one("a") != two("a")


def lambda_of(function, value):
    def program(x):
        return function(x, value)

    return program


def test_places_are_those_of_the_source():
    source = Path(__file__).read_text().splitlines()
    line = next(
        k for k, text in enumerate(source, 1) if "# marked" in text and "source" not in text
    )

    @tf.program(alphabet="ab")
    def program(x):
        share = x.isin("a").prefix_mean()  # marked
        return (share > 0).tag()

    kinds = {type(n).__name__: p for n, p in zip(program.nodes, program.places, strict=True)}
    assert (kinds["Mean"].file, kinds["Mean"].line) == (Path(__file__).name, line)
    assert kinds["Mean"].text == 'x.isin("a").prefix_mean()'
    assert kinds["Comparison"].line == line + 1
    assert kinds["Comparison"].text == "share > 0"


def shifted(x, j):
    return x.predecessor(j, default="-")


def test_names_in_a_loop_have_the_values_of_its_variables():
    @tf.program(alphabet="ab")
    def program(x):
        total = 0
        for k in (1, 2):
            hit = x.predecessor(k, default="-") == "a"
            for a, _ in ["b-", "a-"]:
                total = total + (shifted(x, k) == a).where(1, 0)
            total += hit.prefix_mean()
        last = hit.any()
        return (last.where(1, 0) + total).tag()

    named = {}
    for node, place in zip(program.nodes, program.places, strict=True):
        named.setdefault(type(node).__name__, []).append(place.name)
    assert sorted(named["Table"]) == [
        "hit[k=1]",
        "hit[k=2]",
        "shifted(x, k) == a [k=1, a='b', _='-']",
        "shifted(x, k) == a [k=2, a='b', _='-']",
    ]
    assert sorted(named["Mean"]) == ["hit.prefix_mean() [k=1]", "hit.prefix_mean() [k=2]"]
    assert sorted(named["Shift"]) == [f'x.predecessor(k, default="-") [k={k}]' for k in (1, 2)]
    assert named["Exists"] == ["hit.any()"]
    slots = tf.compile(program, max_length=9).stream.slots
    assert any("hit.prefix_mean() [k=1]" in slot for slot in slots)
    mean = next(p for p in program.places if p.name == "hit.prefix_mean() [k=2]")
    assert str(mean).endswith(": hit.prefix_mean() [k=2]")


def test_names_in_a_comprehension_have_the_values_of_its_variables():
    @tf.program(alphabet="ab")
    def program(x):
        listed = [x == symbol for symbol in "ab"]
        fractions = {c: [seen.prefix_mean() * c for seen in listed] for c in (2, 3)}
        pairs = (x.predecessor(k, default=a) for a in "ab" for k in (1, 2))
        k = 5  # has a value here, which is not that of the generator
        later = [p for c in (3, 4) for p in [x.successor(c, default="-")]]
        counts = [p.isin("a").count() for p in [*pairs, *later]]
        both = [each[0] & each[1] for each in [listed]]
        least = sum(x.lookup(k, default="a").isin("b").where(1, 0) for _ in range(1))
        return sum([*fractions[2], *fractions[3], *counts, both[0].where(1, 0)], start=least).tag()

    named = {}
    for node, place in zip(program.nodes, program.places, strict=True):
        named.setdefault(type(node).__name__, []).append(place.name)
    assert {"x == symbol [symbol='a']", "x == symbol [symbol='b']"} <= {*named["Table"]}
    # Sequences and lists of them have no text of their own.
    assert "each[0] & each[1]" in named["Table"]
    # The mean is made once, for the first c.
    assert {*named["Mean"]} == {"seen.prefix_mean() [c=2]"}
    assert sorted(named["Shift"]) == [
        *(f"x.predecessor(k, default=a) [a={a!r}, k={k}]" for a in "ab" for k in (1, 2)),
        *(f'x.successor(c, default="-") [c={c}]' for c in (3, 4)),
    ]
    assert {*named["Count"]} == {'p.isin("a").count()'}
    assert named["Lookup"] == ['x.lookup(k, default="a") [_=0]']


def test_a_function_called_in_a_loop_is_repeated_with_it():
    programs = []
    for outer in (1, 2):

        @tf.program(alphabet="ab")
        def program(x):
            for k in range(1, outer + 1):  # noqa: B023
                kept = shifted(x, k)
            return kept.tag()

        programs.append(program)
    assert [each.places[1].name for each in programs] == [
        f'x.predecessor(j, default="-") [k={k}]' for k in (1, 2)
    ]


def test_a_subexpression_written_twice_is_one():
    @tf.program(alphabet="ab")
    def program(x):
        return ((x == "a").any() & (x == "a").any()).accept()

    assert [type(node).__name__ for node in program.nodes] == ["Token", "Table", "Exists", "Table"]


def test_a_program_without_sharing_in_its_text_is_no_larger():
    """Two to the power of 60 paths, compared and pickled in no time."""

    def doubled(x):
        b = x == "a"
        for _ in range(60):
            b = (b & b.any()) | b
        return b.tag()

    first, second = (tf.program(alphabet="ab")(doubled) for _ in range(2))
    assert first == second and pickle.loads(pickle.dumps(first)) == first
    assert len(first.nodes) == 2 + 60 * 3
    assert first("ab") == [True, False]


def test_a_deep_program_is_no_trouble():
    def deep(x):
        v = x.map({"a": 0, "b": 1})
        for _ in range(3000):
            v = v + 1
        return v.tag()

    program = tf.program(alphabet="ab")(deep)
    assert pickle.loads(pickle.dumps(program)) == program
    assert program("ab") == [3000, 3001]


def test_pickles_hold_in_another_process():
    code = (
        "import pickle, sys; from transformist.programs import PROGRAMS\n"
        "sent = pickle.loads(sys.stdin.buffer.read())\n"
        "assert sent == PROGRAMS and hash(sent['reverse']) == hash(PROGRAMS['reverse'])\n"
        "print(sent['histogram']('abca'), sent['reverse'].places == PROGRAMS['reverse'].places)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(dict(PROGRAMS)),
        env={**os.environ, "PYTHONHASHSEED": "5"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().split("\n")[0] == "[2, 1, 1, 2] True"


def test_programs_and_nodes_are_frozen():
    program = PROGRAMS["dyck-1"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        program.alphabet = "ab"
    with pytest.raises(dataclasses.FrozenInstanceError):
        program.output.node.children = ()


def test_every_kind_of_node_says_what_it_means():
    kinds = Node.__subclasses__()
    assert len(kinds) == 17
    for kind in kinds:
        assert "type" in vars(kind) and "meaning" in vars(kind), kind
        assert kind.__doc__


def test_the_named_values_at_each_position():
    @tf.program(alphabet="()")
    def dyck1(x):
        balance = x.map({"(": 1, ")": -1}).prefix_mean()
        good = (balance >= 0).all_so_far()
        return ((balance == 0) & good).accept()

    assert dyck1.values("())") == {
        "x": ["(", ")", ")"],
        "balance": [1, 0, Fraction(-1, 3)],
        "good": [True, True, False],
    }
    assert dyck1.values("") == {"x": [], "balance": [], "good": []}
    assert repr(dyck1) == "Program(dyck1: accepts over ( ), 9 subexpressions)"


def answers(function, x, alphabet="ab"):
    return tf.program(alphabet=alphabet)(function)(x)


@pytest.mark.parametrize(
    ("function", "empty", "one"),
    [
        (lambda x: (x == "a").mean() == 0, True, False),
        (lambda x: (x == "a").prefix_mean() == 0, True, False),
        (lambda x: (x == "a").suffix_mean() > 0, False, True),
        (lambda x: (x == "a").count() == 1, False, True),
        (lambda x: (x == "b").any(), False, False),
        (lambda x: (x == "b").all(), True, False),
        (lambda x: (x == "a").any_so_far(), False, True),
        (lambda x: (x == "a").all_so_far(), True, True),
        (lambda x: x.position("n") == 0, True, False),
        (lambda x: x.first(default="none") == "none", True, False),
        (lambda x: x.last(default="none") == "a", False, True),
        (lambda x: x.lookup(1, default="none") == "a", False, True),
        (lambda x: x.predecessor(default="b") == "b", True, True),
        (lambda x: x.select(x).rightmost(x, default="b") == "a", False, True),
        (lambda x: x.select("a").mean(2, default=1) == 2, False, True),
        (lambda x: (x == "a").nearest_left(True, default=True), True, True),
    ],
)
def test_over_no_positions_and_one(function, empty, one):
    program = tf.program(alphabet="ab")(lambda_of(lambda x, f: f(x).accept(), function))
    assert (program(""), program("a")) == (empty, one)


def test_what_is_said_of_the_empty_string_comes_first():
    assert answers(lambda x: (x == "a").all().accept(empty=False), "") is False
    assert answers(lambda x: (x == "a").accept(empty=True), "") is True
    assert answers(lambda x: x.tag(), "") == ""
    assert answers(lambda x: x.isin("a").tag(), "") == []


@pytest.mark.parametrize("write", [lambda x: x.position(), lambda x: x.map({"a": 0, "b": 1})])
def test_what_has_no_value_over_no_positions_needs_one(write):
    with pytest.raises(tf.TransformistError, match=r"write accept\(empty=True\)"):
        answers(lambda x: (write(x) > 0).accept(), "")


def test_answers_are_strings_where_labels_are_characters():
    swap = {"a": "b", "b": "a"}
    assert answers(lambda x: x.map(swap).tag(), "aab") == "bba"
    assert answers(lambda x: x.map(swap).tag(), ["a", "b"]) == "ba"
    assert answers(lambda x: x.map({"a": "EOS", "b": "a"}).next_token(), "ab") == ["EOS", "a"]
    assert answers(lambda x: x.tag(), [1, -1], alphabet=[1, -1]) == [1, -1]
    assert answers(lambda x: x.tag(), ["up", "down"], alphabet=["up", "down"]) == ["up", "down"]


def test_numbers_stand_for_categories_where_it_is_said():
    negated = {1: -1, -1: 1}
    function = lambda x: x.map(negated, categories=True).next_token()  # noqa: E731
    assert answers(function, (1, 1), alphabet=[1, -1]) == [-1, -1]
    assert answers(lambda x: (x.map(negated) + 1).tag(), (1, -1), alphabet=[1, -1]) == [0, 2]


def test_tables_of_several():
    rows = {(b, s): f"{s}{int(b)}" for b in (False, True) for s in "ab"}

    def function(x):
        return (x.position() > 1).table(x, values=rows).tag()

    assert answers(function, "ab") == ["a0", "b1"]
    assert answers(lambda x: x.table(x, values=["p", "q", "r", "s"]).tag(), "ab") == "ps"


def test_the_values_of_a_number_are_known_while_they_are_few():
    kept = []

    def function(x):
        v = x.map({"a": 0, "b": 2})
        product = v * (v - 1)
        many = sum((v.predecessor(k) * 3**k for k in range(1, 7)), v)
        kept.extend(each.node.type for each in (v, product, v.mean(), many, v.relu()))
        return product.tag()

    assert answers(function, "ab") == [0, 2]
    assert [each.values for each in kept] == [(0, 2), (-2, 0, 2), None, None, (0, 2)]
    assert kept[2] == types.Number()


def test_check_takes_a_program_as_reference():
    for name, settings in (("dyck-1", {}), ("induction-most-recent", {"alphabet": "abc"})):
        model = tf.recipe(name).build(**settings)
        verdict = tf.check(model, PROGRAMS[name], max_length=7)
        assert verdict and verdict.cases > 250
    wrong = tf.program(alphabet="()")(lambda x: (x == ")").accept(empty=True))
    found = tf.check(tf.recipe("dyck-1").build(), wrong, max_length=3).counterexample
    assert (found.input, found.expected, found.got) == (")", True, False)


FILE = """
import transformist as tf

@tf.program(alphabet="()")
def dyck1(x):
    balance = x.map({"(": 1, ")": -1}).prefix_mean()
    return ((balance == 0) & (balance >= 0).all_so_far()).accept()

@tf.program(alphabet="()")
def equal(x):
    return (x.map({"(": 1, ")": -1}).mean() == 0).accept()
"""


def test_the_command_line_takes_a_program_in_a_file(tmp_path, capsys):
    path = tmp_path / "programs.py"
    path.write_text(FILE)
    assert main(["check", "dyck-1", "--against", f"{path}:dyck1", "--max-length", "8"]) == 0
    assert main(["check", "dyck-1", "--against", f"{path}:equal", "--max-length", "8"]) == 1
    assert "')('" in capsys.readouterr().out
    path.write_text(FILE + "\n@tf.program(alphabet='()')\ndef bad(x):\n    return not x\n")
    assert main(["check", "dyck-1", "--against", f"{path}:bad"]) == 2
    assert "programs.py, line 15: not x: a sequence has a value" in capsys.readouterr().err


def test_a_loop_over_objects_without_a_text():
    class Silent:
        symbol = "a"

        def __repr__(self):
            raise RuntimeError

    @tf.program(alphabet="ab")
    def program(x):
        for each in [Silent()]:
            hit = x == each.symbol
        return hit.tag()

    assert program("ab") == [True, False]
