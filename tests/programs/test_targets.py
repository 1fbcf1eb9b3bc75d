"""Programs compiled for the masks of a host: right on every short string, or refused."""

import functools
import random
from collections import Counter
from dataclasses import replace

import pytest
from references import ALPHABETS, REFERENCES, every_string, given, hard_strings

import transformist as tf
from drawn_programs import OPERATIONS, SETTINGS, Case, Expression, drawn, filled, outcome
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import InvalidValue, UnknownName
from transformist.programs import PROGRAMS

FITS = {
    "dyck-1": {"future"},
    "dyck-k-d": {"future"},
    "shuffle-dyck-2": {"future"},
    "induction-most-recent": {"future"},
    "induction-most-frequent": {"future"},
    "histogram": {"none"},
    "double-histogram": {"none"},
    "most-frequent-token": {"none"},
    "majority": {"future", "none"},
    "parity": {"future", "none"},
    "fraction-of-previous": {"future"},
    "reverse": {"none"},
    "palindrome": {"none"},
    "sort": {"none"},
    "equal-abc": {"future", "none"},
    "contains-abc": {"future", "none"},
    "binary-increment": {"none"},
}
"""The targets that each worked program can be compiled for, beside `any`."""

CASES = [(name, masks) for name, fits in FITS.items() for masks in sorted(fits)]

SHORT = {2: 6, 3: 4, 4: 3}
LONG = {2: 12, 3: 7, 4: 6}


@functools.cache
def compiled(name, masks, N, reuse=True):
    return tf.compile(PROGRAMS[name], max_length=N, masks=masks, reuse=reuse)


def assert_right(model, name, strings):
    answers = model.answers([given(name, x) for x in strings], "float32")
    for x, answer in zip(strings, answers, strict=True):
        assert answer == REFERENCES[name](x), (model, x, answer)


def heads(model):
    return [head for layer in model.layers for head in layer.heads]


@pytest.mark.parametrize("lengths", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "masks"), CASES)
def test_every_short_string(name, masks, lengths):
    strings = every_string(ALPHABETS[name], lengths[len(ALPHABETS[name])])
    for reuse in (True, False):
        model = compiled(name, masks, 12, reuse)
        assert {head.mask for head in heads(model)} == {masks}
        assert_right(model, name, strings)


@pytest.mark.slow
@pytest.mark.parametrize("N", [64, 255])
@pytest.mark.parametrize(("name", "masks"), CASES)
def test_hard_strings(name, masks, N):
    """255, as dyck-k-d fits up to there."""
    strings = hard_strings(name, N, drawn=3)
    for reuse in (True, False):
        assert_right(compiled(name, masks, N, reuse), name, strings)


@pytest.mark.slow
@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize(("name", "masks"), CASES)
def test_certified_from_the_weights_alone(name, masks, reuse):
    certificate = tf.certify(compiled(name, masks, 64, reuse), "float32", 64)
    assert certificate.holds and certificate.grade == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_for_which_a_target_has_no_form_are_refused(name):
    for masks in {"future", "none"} - FITS[name]:
        with pytest.raises(Uncompilable) as error:
            compiled(name, masks, 12)
        assert f"must have the mask {masks}; " in str(error.value)
        assert ".py, line " in str(error.value) and "\n" not in str(error.value)


REWRITTEN = {
    "a predecessor": lambda x: ((x == "b") & (x == "a").predecessor()).any(),
    "two before": lambda x: x.predecessor(2, default="b") == "a",
    "a successor": lambda x: x.successor(default="a") == "a",
    "from the end": lambda x: x.lookup(x.position("n") - 2, default="b") == "a",
    "beyond the end": lambda x: x.lookup((x == "a").count() * 2, default="b") == "a",
    "a count": lambda x: (x == "a").predecessor().count() > 2,
    "at a count": lambda x: x.lookup((x == "a").count(), default="b") == "a",
    "a share": lambda x: (x == "a").mean() > "1/3",
    "a match": lambda x: x.select(x.predecessor(default="b")).any(),
    "the first": lambda x: x.first(default="b") == "a",
    "the last": lambda x: x.last(default="a") == "b",
    "length": lambda x: x.position("n") > 3,
}


@pytest.mark.parametrize("masks", ["future", "none"])
@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_small_programs_are_compiled_and_right(weighting, masks):
    strings = every_string("ab", 6)
    for name, body in REWRITTEN.items():
        program = answer_of(body)
        model = tf.compile(program, max_length=6, masks=masks, weighting=weighting)
        assert {head.mask for head in heads(model)} <= {masks}, name
        assert model.answers(strings, "float32") == [program(x) for x in strings], name


@pytest.mark.parametrize("name", ["last", "any"])
def test_matches_before_of_whole_numbers_are_compiled_for_a_decoder(name):
    def body(x):
        depth = (x == "a").count("future")
        seen = depth.select((x == "b").count("future"), mask="strict-future")
        last = {"last": lambda: seen.rightmost(x, default="-"), "any": seen.any}
        return last[name]().tag()

    program = tf.program(alphabet="ab")(body)
    model = tf.compile(program, max_length=5, masks="future")
    assert {head.mask for head in heads(model)} == {"future"}
    strings = every_string("ab", 5)
    assert model.answers(strings, "float32") == [program(x) for x in strings]


def test_a_mean_of_matches_of_whole_numbers_before_is_refused_in_a_decoder():
    def share(x):
        places = (x == "a").count("future")
        found = places.select(places - 1, mask="strict-future").mean(x == "b")
        return (found > "1/2").tag()

    assert refused(share, "future").endswith(
        "needs a head of mask strict-future; select the last match (rightmost), use keys and "
        "queries of listed values, take the mask future, or compile it with masks=any"
    )


def answer_of(body):
    return tf.program(alphabet="ab")(lambda x: body(x).accept(empty=False))


def refused(body, masks, **options):
    program = tf.program(alphabet="ab")(body)
    with pytest.raises(Uncompilable) as error:
        tf.compile(program, max_length=8, masks=masks, **options)
    place, _, said = str(error.value).partition(": ")
    assert place.startswith("test_targets.py, line ")
    return said


def test_a_tag_that_needs_the_whole_input_is_no_tag_of_a_decoder():
    def tags(x):
        return (x == "a").count().tag()

    assert refused(tags, "future") == (
        '(x == "a").count(): every head of a causal decoder must have the mask future; received '
        "'(x == \"a\").count()', which needs a head of mask none; a decoder gives each tag before "
        "it reads the rest of the input; compile tf.answered_after(program) (its tags come after "
        "the input), use only positions so far (mask future), return accept(), or compile it with "
        "masks=any"
    )


def test_what_inner_positions_read_of_the_whole_input_has_no_place_in_a_decoder():
    def ahead(x):
        later = x.successor(default="b")
        return (x == later).any().accept()

    assert refused(ahead, "future").endswith(
        "received 'later', which needs a head of mask none; in a decoder only accept() can read "
        "the whole input, at the last position; take the positions so far (mask future), or "
        "compile it with masks=any"
    )


def test_a_prefix_mean_has_no_place_in_an_encoder():
    def share(x):
        return (x == "a").prefix_mean().tag()

    assert refused(share, "none").endswith(
        "every head of an encoder must have the mask none; received '(x == \"a\").prefix_mean()', "
        "which needs a head of mask future; in an encoder a mean, a count or the last match is "
        "over all positions; take it so (mask none), ask for the first match (leftmost) or for "
        "any, or compile it with masks=any"
    )


def test_a_decoder_knows_no_length():
    def early(x):
        return (x.position("i/n") < "1/2").tag()

    assert "must not depend on the length n; received 'x.position(\"i/n\")'" in (
        refused(early, "future")
    )
    assert (
        tf.compile(tf.program(alphabet="ab")(early), masks="none")("abab") == [True] + [False] * 3
    )


def test_options_are_checked():
    with pytest.raises(UnknownName, match="any, future, none"):
        tf.compile(PROGRAMS["dyck-1"], masks="causal")
    with pytest.raises(InvalidValue, match="reuse must be True or False; received 1"):
        tf.compile(PROGRAMS["dyck-1"], reuse=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, masks in CASES if masks == "future"])
def test_models_of_mask_future_are_decoded(name):
    """Token by token, every answer is that of the prefix."""
    model = compiled(name, "future", 12)
    for x in hard_strings(name, 12, drawn=1)[::9]:
        decoder = tf.decoder(model, "float32")
        answers = decoder.take_all(given(name, x))
        whole = [REFERENCES[name](x[: i + 1]) for i in range(len(x))]
        if isinstance(REFERENCES[name](""), bool):
            assert answers == whole and decoder.answer == REFERENCES[name](x)
        else:
            assert answers == [each[-1] for each in whole]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_slot_for_each_number(name):
    model = compiled(name, "any", 12, False)
    spans = model.stream.spans
    assert len({span.slot for span in spans}) == len(spans) == model.width
    assert {span.last for span in spans} == {max(span.last for span in spans)}
    assert model.width >= compiled(name, "any", 12).width
    assert_right(model, name, every_string(ALPHABETS[name], 3))


def test_slots_are_used_again_where_they_may_be():
    assert compiled("equal-abc", "any", 12, False).width > compiled("equal-abc", "any", 12).width


def test_the_largest_length_is_that_of_the_rewritten_program():
    from transformist.compiler import largest_length

    for masks, longest in (("any", 100_000), ("future", 1671)):
        found = largest_length(PROGRAMS["contains-abc"], most=100_000, masks=masks)
        assert found == longest


@pytest.mark.trials(1, 3)
@pytest.mark.parametrize("masks", ["future", "none"])
def test_each_operation_is_refused_or_right(masks, trials):
    draw = random.Random(f"operations {masks}")
    counts = Counter()
    for kind, template, kinds in OPERATIONS[:: 1 if trials > 1 else 11]:
        for _ in range(trials):
            end, of = ("$0.accept(empty=True)", "B") if kind == "B" else ("$0.tag()", kind)
            body = Expression("output", end, (filled(template, of, kinds, 1, draw),))
            case = Case(body, *draw.choice(SETTINGS), 5, masks=masks)
            what, found = outcome(case)
            assert what != "wrong", f"{case}: {found}"
            counts[what] += 1
    assert counts["right"] > sum(counts.values()) / 3


@pytest.mark.trials(12, 1000)
@pytest.mark.parametrize("masks", ["future", "none"])
def test_drawn_programs_are_refused_or_right(masks, trials):
    draw = random.Random(f"drawn {masks}")
    counts = Counter()
    for _ in range(trials):
        case = replace(drawn(draw), masks=masks, reuse=draw.choice((True, False)))
        what, found = outcome(case)
        assert what != "wrong", f"{case}: {found}"
        counts[what] += 1
    assert counts["right"] > (trials / 8 if trials > 100 else 0)
