"""Programs for hosts without position functions: right on every short string, and certified."""

import random
from collections import Counter

import pytest
from references import ALPHABETS, REFERENCES, every_string, given, hard_strings

import transformist as tf
from drawn_programs import OPERATIONS, SETTINGS, Case, Expression, filled, outcome
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import InvalidValue
from transformist.programs import PROGRAMS

OF_PLACES = (
    "dyck-k-d",
    "induction-most-recent",
    "induction-most-frequent",
    "parity",
    "contains-abc",
)
"""The worked programs that a decoder can compute and that use positions."""

SHORT = {2: 6, 3: 4, 4: 3}


def computed(program, N, **given):
    return tf.compile(program, max_length=N, positions="bos", **{"masks": "future", **given})


def program_of(body):
    return tf.program(alphabet="ab")(body)


@pytest.mark.parametrize("name", OF_PLACES)
def test_every_short_string(name):
    model = computed(PROGRAMS[name], 8)
    assert model.embedding.positions is None
    assert {head.mask for layer in model.layers for head in layer.heads} == {"future"}
    strings = every_string(ALPHABETS[name], SHORT[len(ALPHABETS[name])])
    answers = model.answers([given(name, x) for x in strings], "float32")
    assert answers == [REFERENCES[name](x) for x in strings]


@pytest.mark.slow
@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize("name", OF_PLACES)
def test_hard_strings_and_certificates(name, reuse):
    model = computed(PROGRAMS[name], 127, reuse=reuse)
    strings = hard_strings(name, 127, drawn=3)
    answers = model.answers([given(name, x) for x in strings], "float32")
    assert answers == [REFERENCES[name](x) for x in strings]
    certificate = tf.certify(model, "float32", 127)
    assert certificate.holds and certificate.grade == 1
    tf.check_certificate(model, certificate)


BODIES = {
    "i": lambda x: (x.position("i") > 2).tag(),
    "i^2": lambda x: (x.position("i^2") > 10).tag(),
    "i^3": lambda x: (x.position("i^3") > 30).tag(),
    "(-1)^i": lambda x: (x.position("(-1)^i") > 0).tag(),
    "one": lambda x: (x.position("1") > 0).tag(),
    "a function": lambda x: (x.position("i") % 3).map({0: "a", 1: "b", 2: "c"}).tag(),
    "a predecessor": lambda x: x.predecessor(2, default="a").tag(),
    "a count": lambda x: ((x == "a").count("future") > 2).tag(),
    "at a count": lambda x: x.lookup((x == "a").count("future"), default="b").tag(),
    "a share": lambda x: ((x == "a").prefix_mean() > "1/3").tag(),
    "the last match": lambda x: x.select(x, mask="strict-future").rightmost(x, default="-").tag(),
    "the length": lambda x: (x.position("n") > 3).accept(empty=False),
    "nothing": lambda x: (x == "a").tag(),
}


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_each_use_of_a_position_keeps_its_meaning(body, weighting):
    program = program_of(body)
    strings = [x for x in every_string("ab", 5) if x]
    for masks in ("future", "any"):
        model = computed(program, 5, weighting=weighting, masks=masks)
        assert model.embedding.positions is None
        assert model.answers(strings, "float32") == [program(x) for x in strings]


@pytest.mark.parametrize("arithmetic", ["bfloat16", "float16", "float64", "exact"])
def test_the_constant_that_rounds_is_that_of_the_format(arithmetic):
    program = program_of(BODIES["a predecessor"])
    weighting = "average-hard" if arithmetic == "exact" else "softmax"
    model = computed(program, 4, arithmetic=arithmetic, weighting=weighting)
    strings = [x for x in every_string("ab", 4) if x]
    assert model.answers(strings, arithmetic) == [program(x) for x in strings]
    if arithmetic != "exact":
        assert tf.certify(model, arithmetic).grade == 1


@pytest.mark.trials(1, 2)
@pytest.mark.parametrize("masks", ["future", "any"])
def test_each_operation_is_refused_or_right(masks, trials):
    draw = random.Random(f"operations with computed positions {masks}")
    counts = Counter()
    for kind, template, kinds in OPERATIONS[:: 1 if trials > 1 else 13]:
        for _ in range(trials):
            end, of = ("$0.accept(empty=True)", "B") if kind == "B" else ("$0.tag()", kind)
            body = Expression("output", end, (filled(template, of, kinds, 1, draw),))
            case = Case(body, *draw.choice(SETTINGS), 5, masks=masks, positions="bos")
            what, found = outcome(case)
            assert what != "wrong", f"{case}: {found}"
            counts[what] += 1
    assert counts["right"] > sum(counts.values()) / 3


def refused(body, error=Uncompilable, **given):
    with pytest.raises(error) as found:
        computed(program_of(body), **{"N": 8, **given})
    return str(found.value)


def test_refusals_say_what_helps():
    by_place, length = BODIES["i"], lambda x: (x.position("i/n") < "1/2").tag()
    assert refused(by_place, InvalidValue, masks="none") == (
        "compile: positions=bos must come with heads of mask future; received masks = none, where "
        "the share of BOS is the same at every row; give masks=future or masks=any, or leave "
        "positions out"
    )
    assert "must not depend on n; received 'x.position(\"i/n\")'" in refused(length, masks="any")
    assert refused(by_place, N=None).endswith("max_length = None; give max_length")
    assert "with average-hard or softmax attention" in refused(by_place, weighting="rightmost-hard")
    assert "max_length=" in refused(by_place, N=200, arithmetic="bfloat16")


def test_the_length_that_is_said_to_fit_does():
    from transformist.compiler import largest_length

    given = {"masks": "future", "positions": "bos", "arithmetic": "float16"}
    N = largest_length(program_of(BODIES["i"]), most=500, **given)
    assert 5 < N < 500
    assert tf.certify(tf.compile(program_of(BODIES["i"]), max_length=N, **given), "float16").holds
    with pytest.raises(Uncompilable, match=f"max_length={N} fits"):
        tf.compile(program_of(BODIES["i"]), max_length=N + 1, **given)
