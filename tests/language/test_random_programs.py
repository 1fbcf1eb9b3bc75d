"""Random small programs: their meaning from the definitions, structure, pickling, n = 0 and 1."""

import functools
import itertools
import operator
import pickle
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import transformist as tf

ALPHABET = "abc"
MASKS = ("none", "future", "strict-future", "past", "strict-past")
SEEN = {
    "none": lambda i, j: True,
    "future": lambda i, j: j <= i,
    "strict-future": lambda i, j: j < i,
    "past": lambda i, j: j >= i,
    "strict-past": lambda i, j: j > i,
}
RELATIONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt,
             "<=": operator.le, ">": operator.gt, ">=": operator.ge}  # fmt: skip
POSITIONS = {"i": lambda i, n: i, "n": lambda i, n: n, "i/n": lambda i, n: Fraction(i, n)}


def seen(mask, i, n):
    return [j for j in range(n) if SEEN[mask](i, j)]


def mean(values):
    return Fraction(sum(values), len(values)) if values else 0


def selected(keys, queries, values, choose, mask, default):
    n, chosen = len(keys), []
    for i in range(n):
        found = [values[j] for j in seen(mask, i, n) if keys[j] == queries[i]]
        value = {"rightmost": found[-1:], "leftmost": found[:1], "mean": [mean(found)]}[choose]
        chosen.append(value[0] if found else default)
    return chosen


def nearest(values, holds, default, sign):
    chosen = []
    for i in range(len(values)):
        where = [j for j, b in enumerate(holds) if b and sign * (j - i) > 0]
        near = min(where, key=lambda j: abs(j - i), default=None)
        chosen.append(default if near is None else values[near])
    return chosen


def shifted(values, k, default):
    n = len(values)
    return [values[i - k] if 0 <= i - k < n else default for i in range(n)]


def looked_up(values, index, default):
    return [values[int(p) - 1] if p in range(1, len(values) + 1) else default for p in index]


def each(function):
    return lambda *columns: [function(*row) for row in zip(*columns, strict=True)]


def over(function):
    return lambda mask, v: [function([v[j] for j in seen(mask, i, len(v))]) for i in range(len(v))]


def clipped(v):
    return max(-1, min(v, Fraction(1, 2)))


def bent(v):
    return -v if v <= 0 else 2 * v if v <= 1 else 3 - v


OPERATIONS = {
    # name: on sequences, and from the definition on lists of values
    "add": (lambda v, w: v + w, each(lambda v, w: v + w)),
    "subtract": (lambda v, w: v - w, each(lambda v, w: v - w)),
    "from": (lambda v: "1/3" - v, each(lambda v: Fraction(1, 3) - v)),
    "from-nothing": (lambda v: 0 - v, each(operator.neg)),
    "choose": (lambda a, b, c: a.where(b, c), each(lambda a, b, c: b if a else c)),
    "times": (lambda v: v * Fraction(-2, 3), each(lambda v: v * Fraction(-2, 3))),
    "half": (lambda v: v / 2, each(lambda v: Fraction(v) / 2)),
    "negative": (operator.neg, each(operator.neg)),
    "relu": (lambda v: v.relu(), each(lambda v: max(v, 0))),
    "abs": (abs, each(abs)),
    "min": (lambda v, w: v.min(w), each(min)),
    "max": (lambda v, w: v.max(w), each(max)),
    "clip": (lambda v: v.clip(-1, "1/2"), each(clipped)),
    "cpwl": (lambda v: v.cpwl([-1, 0, 1, 2], [1, 0, 2, 1]), each(bent)),
    "gate": (lambda b, v: b * v, each(lambda b, v: v if b else 0)),
    "where": (lambda b, v, w: b.where(v, w), each(lambda b, v, w: v if b else w)),
    "compare": (lambda r, v, w: RELATIONS[r](v, w), lambda r, v, w: each(RELATIONS[r])(v, w)),
    "and": (operator.and_, each(lambda a, b: a and b)),
    "or": (operator.or_, each(lambda a, b: a or b)),
    "xor": (operator.xor, each(operator.ne)),
    "same": (operator.eq, each(operator.eq)),
    "not": (operator.invert, each(operator.not_)),
    "table": (
        lambda a, b, c: a.table(b, c, values="01101001"),
        each(lambda a, b, c: (a + b + c) % 2 == 1),
    ),
    "equal": (lambda c, d: c == d, each(operator.eq)),
    "unequal": (lambda c, d: c != d, each(operator.ne)),
    "is": (lambda s, c: c == s, lambda s, c: [v == s for v in c]),
    "mean": (lambda m, v: v.mean(m), over(mean)),
    "share": (lambda m, b: b.mean(m), over(mean)),
    "count": (lambda m, b: b.count(m), over(sum)),
    "any": (lambda m, b: b.any(m), over(any)),
    "all": (lambda m, b: b.all(m), over(all)),
    "predecessor": (lambda k, v: v.predecessor(k), lambda k, v: shifted(v, k, 0)),
    "successor": (lambda k, v: v.successor(k, default=3), lambda k, v: shifted(v, -k, 3)),
    "before": (lambda c: c.predecessor(default="a"), lambda c: shifted(c, 1, "a")),
    "lookup": (lambda v, p: v.lookup(p, default=-1), lambda v, p: looked_up(v, p, -1)),
    "first": (lambda v: v.first(), lambda v: [v[0]] * len(v) if v else []),
    "last": (lambda v: v.last(), lambda v: [v[-1]] * len(v) if v else []),
    "left": (lambda v, b: v.nearest_left(b), lambda v, b: nearest(v, b, 0, -1)),
    "right": (lambda v, b: v.nearest_right(b), lambda v, b: nearest(v, b, 0, 1)),
    "select": (
        lambda ch, m, keys, queries, v: getattr(queries.select(keys, mask=m), ch)(v, default=7),
        lambda ch, m, keys, queries, v: selected(keys, queries, v, ch, m, 7),
    ),
    "select-else": (
        lambda ch, m, keys, queries, v, w: getattr(queries.select(keys, mask=m), ch)(v, default=w),
        lambda ch, m, keys, queries, v, w: [
            b if a is None else a
            for a, b in zip(selected(keys, queries, v, ch, m, None), w, strict=True)
        ],
    ),
    "matches": (
        lambda m, keys, queries: queries.select(keys, mask=m).any(),
        lambda m, keys, queries: selected(keys, queries, [True] * len(keys), "leftmost", m, False),
    ),
}  # fmt: skip

masks, choices = st.sampled_from(MASKS), st.sampled_from(("rightmost", "leftmost", "mean"))


def operations(*rows):
    return st.one_of([st.tuples(st.just(name), *parts) for name, *parts in rows])


LEAVES = {
    "C": st.just(("token",)),
    "B": st.tuples(st.just("is"), st.sampled_from(ALPHABET), st.just(("token",))),
    "N": st.one_of(
        st.tuples(st.just("map"), st.tuples(*[st.sampled_from([-1, 0, 1, Fraction(1, 2)])] * 3)),
        st.tuples(st.just("position"), st.sampled_from(list(POSITIONS))),
    ),
}


@functools.cache
def expressions(kind, depth=3):
    """Expressions as nested tuples."""
    if depth == 0:
        return LEAVES[kind]
    B, N, C = (expressions(kind, depth - 1) for kind in "BNC")
    k = st.integers(1, 2)
    if kind == "C":
        return operations(("before", C)) | LEAVES["C"]
    if kind == "B":
        return operations(
            ("compare", st.sampled_from(list(RELATIONS)), N, N), ("and", B, B), ("or", B, B),
            ("xor", B, B), ("same", B, B), ("not", B), ("table", B, B, B), ("choose", B, B, B),
            ("equal", C, C), ("unequal", C, C), ("any", masks, B), ("all", masks, B),
            ("matches", masks, C, C), ("matches", masks, N, N), ("matches", masks, B, B),
        )  # fmt: skip
    return operations(
        ("add", N, N), ("subtract", N, N), ("from", N), ("from-nothing", N), ("times", N),
        ("half", N), ("negative", N), ("relu", N), ("abs", N), ("min", N, N), ("max", N, N),
        ("clip", N), ("cpwl", N), ("gate", B, N), ("where", B, N, N), ("mean", masks, N),
        ("share", masks, B), ("count", masks, B), ("predecessor", k, N), ("successor", k, N),
        ("lookup", N, N), ("first", N), ("last", N), ("left", N, B), ("right", N, B),
        ("select", choices, masks, C, C, N), ("select", choices, masks, N, N, N),
        ("select-else", choices, masks, C, C, N, N),
    )  # fmt: skip


def built(expression, x):
    """On sequences."""
    name, *parts = expression
    if name == "token":
        return x
    if name == "map":
        return x.map(dict(zip(ALPHABET, parts[0], strict=True)))
    if name == "position":
        return x.position(parts[0])
    return OPERATIONS[name][0](*(built(p, x) if isinstance(p, tuple) else p for p in parts))


def plain(expression, x):
    """From the definitions."""
    name, *parts = expression
    if name == "token":
        return list(x)
    if name == "map":
        return [dict(zip(ALPHABET, parts[0], strict=True))[symbol] for symbol in x]
    if name == "position":
        return [POSITIONS[parts[0]](i, len(x)) for i in range(1, len(x) + 1)]
    return OPERATIONS[name][1](*(plain(p, x) if isinstance(p, tuple) else p for p in parts))


def traced(expression):
    @tf.program(alphabet=ALPHABET)
    def program(x):
        return built(expression, x).tag()

    return program


calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
kinds = st.sampled_from("BN").flatmap(expressions)
inputs = st.text(ALPHABET, max_size=7)


@calm
@given(kinds, inputs)
def test_the_meaning_is_that_of_the_definitions(expression, x):
    for string in (x, x[:1], ""):
        assert traced(expression)(string) == plain(expression, string)


@calm
@given(kinds, kinds)
def test_two_traces_of_one_program_are_equal(one, other):
    first, second, third = traced(one), traced(one), traced(other)
    assert first == second and hash(first) == hash(second)
    assert (first == third) == (first.nodes == third.nodes)
    if any(first(x) != third(x) for x in ("", "a", "abca", "bcabac")):
        assert first != third


@calm
@given(kinds, inputs)
def test_a_program_survives_pickling(expression, x):
    program = traced(expression)
    copy = pickle.loads(pickle.dumps(program))
    assert copy == program and hash(copy) == hash(program)
    assert copy(x) == program(x) and copy.places == program.places and copy.nodes == program.nodes
    root = program.output.node
    assert pickle.loads(pickle.dumps(root)) == root


@calm
@given(expressions("N"), inputs)
def test_prefix_mean_is_a_selection_of_everything_so_far(expression, x):
    @tf.program(alphabet=ALPHABET)
    def means(x):
        return built(expression, x).prefix_mean().tag()

    @tf.program(alphabet=ALPHABET)
    def selections(x):
        everything = x.isin(ALPHABET)
        return everything.select(True, mask="future").mean(built(expression, x)).tag()

    assert means(x) == selections(x)
    assert means != selections


@calm
@given(expressions("B"))
def test_the_answer_on_nothing_is_what_every_mask_leaves_nothing_for(expression):
    @tf.program(alphabet=ALPHABET)
    def empty(x):
        b = built(expression, x)
        everywhere, somewhere = b.all("strict-past"), b.any("strict-past")
        nothing = (b.mean("strict-past") == 0) & (b.count("strict-past") == 0)
        return (everywhere & ~somewhere & nothing).accept()

    assert empty("") is True
    assert empty("a") is True


X = ("token",)
A, B = ("is", "a", X), ("is", "b", X)
STEP, PLACE = ("map", (-1, 1, Fraction(1, 2))), ("position", "i")
V = ("subtract", STEP, ("times", PLACE))
W = ("add", STEP, ("from", PLACE))
ALONE = [
    *[(name, V, W) for name in ("add", "subtract", "min", "max")],
    *[(name, v) for name in ("from", "from-nothing", "times", "half", "negative", "relu",
                             "abs", "clip", "cpwl", "first", "last") for v in (V, W, STEP)],
    *[("compare", relation, STEP, ("mean", "future", STEP)) for relation in RELATIONS],
    *[(name, A, B) for name in ("and", "or", "xor", "same")],
    *[(name, X, ("before", X)) for name in ("equal", "unequal")],
    ("choose", A, B, ("any", "future", B)), ("choose", A, ("any", "past", B), B),
    ("not", A), ("table", A, B, ("any", "future", A)), ("is", "c", X), ("gate", A, V),
    ("where", A, V, W), ("equal", ("before", X), X), ("lookup", V, STEP), ("lookup", V, PLACE),
    *[(name, mask, A) for name in ("share", "count", "any", "all") for mask in MASKS],
    *[("mean", mask, v) for mask in MASKS for v in (V, STEP)],
    *[(name, k, V) for name in ("predecessor", "successor") for k in (1, 2, 3)],
    *[(name, V, A) for name in ("left", "right")],
    *[("matches", mask, ("before", X), X) for mask in MASKS],
    *[("select", choose, mask, ("before", X), X, V)
      for choose in ("rightmost", "leftmost", "mean") for mask in MASKS],
    *[("select-else", choose, "strict-future", X, X, V, W)
      for choose in ("rightmost", "leftmost", "mean")],
    ("select", "rightmost", "none", STEP, ("mean", "none", STEP), PLACE),
]  # fmt: skip


@pytest.mark.parametrize("expression", ALONE, ids=lambda e: "-".join(map(str, e[:2]))[:30])
def test_each_operation_alone_on_every_short_string(expression):
    program = traced(expression)
    for n in range(5):
        for symbols in itertools.product(ALPHABET, repeat=n):
            x = "".join(symbols)
            assert program(x) == plain(expression, x), x


def test_no_operation_is_left_out():
    assert {name for name, *_ in ALONE} | {"before"} == set(OPERATIONS)
