"""Diagnosis: each failure signature planted, and the failures that are recorded."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from references import REFERENCES, given

import certificates as page
import failing
import transformist as tf
from transformist.arithmetic import number_system
from transformist.errors import InputTooLong, InvalidValue, NotFinite, UnknownName, UnknownSymbol
from transformist.model import (
    Attention,
    Binary,
    Embedding,
    FeedForward,
    LanguageModel,
    Layer,
    LayerNorm,
    RealVector,
    Stream,
    Transformer,
)
from transformist.programs import PROGRAMS
from transformist.report import diagnosis_table
from transformist.verify import first_failing
from transformist.verify.diagnosis import (
    MAX_STRINGS,
    BelowResolution,
    Blend,
    LinearRegion,
    MovedByNorm,
    Overflow,
    failing_inputs,
)

# Signatures that are planted


def recognizer(a, b, *layers, reads, threshold, **more):
    """A recognizer of strings of a and b, without BOS: each symbol fills the slots x and y."""
    return Transformer(
        stream=Stream(("x", "y", "z")),
        embedding=Embedding(symbols=("a", "b"), vectors=[[*a, 0], [*b, 0]]),
        layers=layers,
        read_out=Binary(W_out=[reads], b_out=[-Fraction(threshold)]),
        **more,
    )


def network(*units, constants, adds):
    """Hidden units over (x, y), summed into z."""
    return FeedForward(
        W_1=[[*unit, 0] for unit in units],
        b_1=list(constants),
        W_2=[[0] * len(units), [0] * len(units), list(adds)],
    )


def test_a_head_that_is_not_sharp_blends_positions():
    """The score of a is 1/2 above that of b: its weight is e^½ / (e^½ + 3), not 1."""
    head = Attention(W_Q=[[0, 1, 0]], W_K=[["1/2", 0, 0]], W_V=[[1, 0, 0]], W_O=[[0], [0], [1]])
    model = recognizer((1, 1), (0, 1), Layer((head,)), reads=[0, 0, 1], threshold="3/4")
    found = tf.diagnose(model, "babb", "float64")
    share = np.exp(0.5) / (np.exp(0.5) + 3)
    signature = found.signature
    assert (found.answer, found.exact, type(signature)) == (False, True, Blend)
    assert (signature.layer, signature.head, signature.query) == (0, 0, 4)
    assert (signature.gap, signature.lead) == (0.5, 0.5)
    assert (signature.wanted, signature.positions) == ((2,), (2, 1, 3, 4))
    assert signature.weights[0] == pytest.approx(share)
    assert signature.stray == pytest.approx(1 - share)
    (first,) = found.first
    assert (first.after, first.slot, first.position, first.layer) == (
        "layer 0 attention",
        "z",
        4,
        0,
    )
    assert first.got == pytest.approx(share) and first.exact == 1
    # e^g / (e^g + 3) > 3/4 from g = ln 9 = 2.2 on: 4 times 1/2 is too little, 8 times is enough.
    (remedy,) = found.remedies
    assert (remedy.kind, remedy.value, remedy.head) == ("sharpness", 8, (0, 0))
    sharp = replace(head, W_Q=[[0, 8, 0]])
    assert replace(model, layers=(Layer((sharp,)),))("babb")
    # No wider format helps: each of them blends the positions as well.
    assert [each.kind for each in tf.diagnose(model, "babb", "bfloat16").remedies] == ["sharpness"]


def test_a_comparison_that_falls_in_its_linear_region():
    """1 + ε is rounded to 1: the comparison, constant from ε on, is given ε/4 for 5/4 ε."""
    epsilon = Fraction(1, 512)
    step = network((512, 512), (512, 512), constants=["1/4", "-3/4"], adds=[1, -1])
    model = recognizer((1 + epsilon, -1), (0, 0), Layer((), step), reads=[0, 0, 1], threshold="1/2")
    found = tf.diagnose(model, "bba", "bfloat16")
    assert (found.answer, found.exact) == (False, True)
    assert found.signature == LinearRegion(
        layer=0, value=float(epsilon / 4), exact=float(5 * epsilon / 4), epsilon=float(epsilon)
    )
    (first,) = found.first
    assert (first.after, first.slot, first.position) == ("layer 0 feed-forward", "z", 3)
    assert (first.got, first.exact) == (0.25, 1)
    assert [(each.kind, each.value) for each in found.remedies] == [("arithmetic", "float16")]


def moved(final):
    """x = 2⁻¹³ beside −x: σ² = x² underflows in float16, so that x/√(σ² + 8x²) = 1/3 grows."""
    square = Fraction(1, 2**26)
    if final:
        # Of three slots the variance is 2x²/3: with ε = 9x² − 2x²/3 the sum is 9x² again.
        norm = LayerNorm(gain=[1, 1, 1], epsilon=9 * square - 2 * square / 3)
        more, layers, reads = {"final_norm": norm}, (), [1, 0, 0]
    else:
        norm = LayerNorm(gain=[1, 1], epsilon=8 * square, W_N=[[0, 1, 0], [1, 0, 0]])
        copy = FeedForward(W_1=[[0, 1]], W_2=[[0], [0], [1]])
        more, layers, reads = {}, (Layer((), copy, pre_norms=(None, norm)),), [0, 0, 1]
    x = Fraction(1, 2**13)
    return recognizer((x, -x), (x, -x), *layers, reads=reads, threshold="0.343", **more)


@pytest.mark.parametrize("final", [True, False])
def test_a_norm_that_moves_a_stored_value(final):
    model = moved(final)
    found = tf.diagnose(model, "a", "float16")
    assert (found.answer, found.exact) == (True, False)
    assert isinstance(found.signature, MovedByNorm) and found.signature.slot == "x"
    (first,) = found.first
    assert (first.slot, first.exact) == ("x" if final else "z", Fraction(1, 3))
    assert found.signature.factor == pytest.approx(first.got * 3, rel=1e-3) and first.got > 0.343
    assert found.remedies[0].value == "float32"


def test_a_sum_that_is_between_two_numbers_of_the_format():
    add = network((1, 0), (0, 1), constants=[0, 0], adds=[1, 1])
    model = recognizer((256, 1), (0, 0), Layer((), add), reads=[0, 0, 1], threshold="256.5")
    found = tf.diagnose(model, "ba", "bfloat16")
    assert found.signature == BelowResolution(of="z", value=257.0, spacing=2.0)
    # The exact value is rounded too, so that of the numbers only the one read out decides.
    assert (found.origin.slot, found.origin.position, found.origin.got) == ("z", 2, 256)
    assert (found.first[0].after, found.first[0].got) == ("read-out", 0)


def test_a_hidden_unit_that_is_between_two_numbers_of_the_format():
    """Two units cancel in real numbers, and in bfloat16 one of them is rounded."""
    add = network((1, 1), (1, 0), constants=[0, 0], adds=[1, -1])
    model = recognizer((256, 1), (0, 0), Layer((), add), reads=[0, 0, 1], threshold="1/2")
    found = tf.diagnose(model, "ba", "bfloat16")
    of = "hidden unit 0 of layer 0"
    assert found.signature == BelowResolution(of=of, value=257.0, spacing=2.0)


@pytest.mark.parametrize(
    ("arithmetic", "size", "scale", "threshold", "largest"),
    [("float16", 40000, "1/1024", 79, 65504.0), ("float8_e4m3", 256, "1/16", 30, 448.0)],
)
def test_a_sum_beyond_the_largest_number(arithmetic, size, scale, threshold, largest):
    add = network((1, 0), (0, 1), constants=[0, 0], adds=[1, 1])
    model = recognizer(
        (size, size), (0, 0), Layer((), add), reads=[0, 0, scale], threshold=threshold
    )
    found = tf.diagnose(model, "ba", arithmetic)
    assert found.answer != found.exact
    assert found.signature == Overflow(of="z", value=2.0 * size, largest=largest)
    assert (found.origin.slot, found.origin.position) == ("z", 2)


def test_a_weight_or_an_embedded_number_that_the_format_does_not_have():
    large = recognizer((1, 0), (0, 0), reads=[70000, 0, 0], threshold=1)
    found = tf.diagnose(large, "a", "float16")
    assert (found.answer, found.exact, found.first) == (None, True, ())
    assert found.signature == Overflow(
        of="weight of read-out, in W_out", value=70000.0, largest=65504.0
    )
    embedded = recognizer((1, 0), (70000, 0), reads=[1, 0, 0], threshold=1)
    found = tf.diagnose(embedded, "aab", "float16")
    assert found.signature == Overflow(of="x", value=70000.0, largest=65504.0)
    assert (found.origin.after, found.origin.position) == ("embedding", 3)
    assert [each.value for each in found.remedies] == ["float32"]


# Failures that are recorded

FAILED = {key: each for key, each in page.recorded().items() if each.max_length is not None}


def evaluated(model, x, a, restored=None):
    """The values read out; a row that the format refuses is NaN.

    `restored` has the number of a stream, a row, and for some slots the value to put there.
    """

    def put(z, stream):
        if restored is not None and restored[0] == stream:
            for slot, value in restored[2].items():
                z[restored[1], slot] = a.array([value])[0]
        return z

    def attended(head, z):
        total = np.zeros((len(z), head.width_out)).astype(z.dtype)
        for i in range(len(z)):
            try:
                row = alone(head, z, i)
            except NotFinite:
                row = np.full(head.width_out, np.nan)
            written = list(head.written)
            total[i, written] = row[written]
        return total

    def alone(head, z, i):
        weights = head.weights(z, a, slice(i, i + 1))
        return head.output(a.matmul(weights, head.values(z, a)), a)[0]

    z, stream = put(model.embedding([x], a)[0].copy(), 0), 0
    for layer in model.layers:
        if layer.heads:
            given = [h.on(z, a) if len(z) > 60 else attended(h, z) for h in layer.heads]
            total = given[0]
            for each in given[1:]:
                total = a.add(total, each)
            stream += 1
            z = put(a.add(total, z).copy(), stream)
        if layer.feed_forward is not None:
            stream += 1
            z = put(a.add(layer.feed_forward.on(z, a), z).copy(), stream)
    y = model.read_out.values(z[model.rows_read(len(x))], a).copy()
    return put(y, stream + 1)


def answers_at(model, y, n, a):
    """The answer at each position read, `None` where a value is NaN."""
    lost = np.isnan(a.numbers(y)).any(axis=1)
    y = y.copy()
    y[lost] = a.array([0])
    decided = model.read_out.answers(y, n, a)
    return [None if gone else each for gone, each in zip(lost, decided, strict=True)]


def slow_but(keys, are_quick):
    return [key if are_quick(key) else pytest.param(key, marks=pytest.mark.slow) for key in keys]


@pytest.mark.parametrize(
    "key", slow_but(FAILED, lambda key: FAILED[key].max_length <= 40), ids="-".join
)
def test_the_number_that_is_named_decides_and_the_remedy_helps(key):
    """Restored to its exact value it restores the answer of the program's definition."""
    (name, arithmetic), recorded = key, FAILED[key]
    a, N = number_system(arithmetic), recorded.max_length
    model, x = failing.built(name, N), given(name, recorded.text)
    found = tf.diagnose(model, x, arithmetic, lambda n: failing.built(name, n))
    right = REFERENCES[name](recorded.text)
    assert found.exact == right and found.answer != right

    place = found.first[0].stream, found.first[0].row
    assert {(each.stream, each.row) for each in found.first} == {place}
    exact = {each.coordinate: each.exact for each in found.first}
    answers = answers_at(model, evaluated(model, x, a, (*place, exact)), len(x), a)
    before = answers_at(model, evaluated(model, x, a), len(x), a)
    if found.wrong_position is not None:
        wrong = found.wrong_position - 1
        assert before[:wrong] == list(right)[:wrong]
        assert before[wrong] != right[wrong] == answers[wrong]
    elif model.read_out.at == "last":
        assert before != [right] == answers
    else:
        assert found.answer is None and answers == list(right)

    assert found.remedies
    for remedy in found.remedies:
        assert remedy.kind in ("max_length", "arithmetic")
        shorter = remedy.kind == "max_length"
        other = failing.built(name, remedy.value) if shorter else model
        assert (
            failing.wrong(other, name, recorded.text, arithmetic if shorter else remedy.value)
            is None
        )


def test_each_signature_of_a_recorded_failure():
    """Counted by hand from the operations at fault: the lookups, the counts, the products."""
    kinds = {
        ("reverse", "bfloat16"): (Blend, "layer 1 attention"),
        ("sort", "bfloat16"): (Blend, "layer 1 feed-forward"),
        ("reverse", "float16"): (Overflow, "layer 1 attention"),
        ("parity", "float16"): (BelowResolution, "layer 0 attention"),
        ("histogram", "float16"): (BelowResolution, "layer 0 attention"),
    }
    for (name, arithmetic), (kind, after) in kinds.items():
        recorded = FAILED[name, arithmetic]
        model = failing.built(name, recorded.max_length)
        found = tf.diagnose(model, given(name, recorded.text), arithmetic)
        assert (type(found.signature), found.first[0].after) == (kind, after)
        if kind is Blend:  # its keys are equal in the format: no sharpness is offered
            assert found.signature.lead == 0 < found.signature.gap
            assert [each.kind for each in found.remedies] == ["arithmetic"]


# Searches, and what is refused


def test_an_input_that_does_not_fail():
    model = tf.recipe("dyck-1").build(max_length=8)
    for arithmetic in ("bfloat16", None):
        found = tf.diagnose(model, "(())", arithmetic)
        assert not found.fails and found.answer is found.exact is True
        assert found.signature is None and not found.first and not found.remedies


def test_the_widest_format_in_which_an_input_fails():
    model = recognizer((1 + Fraction(1, 2**20), 0), (0, 0), reads=[1, 0, 0], threshold=1)
    assert tf.diagnose(model, "a").arithmetic == "float16"


def test_a_failing_input_is_searched_for():
    model = failing.built("reverse", 17)
    found = tf.diagnose(model, arithmetic="bfloat16")
    (answer,) = model.answers(["".join(found.input)], "bfloat16")
    assert found.fails and answer != REFERENCES["reverse"]("".join(found.input))
    built = []

    def build(N):
        built.append(N)
        return failing.built("reverse", N)

    searched = first_failing(build, [4, 8, 17], "bfloat16")
    model, x, arithmetic = searched.failing
    assert (built, model.max_length, arithmetic) == ([4, 8, 17], 17, "bfloat16")
    assert searched.lengths == (4, 8, 17) and searched.longest == len(x)
    assert failing.wrong(model, "reverse", x, "bfloat16") is not None


def test_a_search_says_what_it_compared(monkeypatch):
    """Every string is counted as the model is asked about it, and none beyond the limit."""
    asked = []
    answers = Transformer.answers

    def counted(self, inputs, a):
        asked.extend((self.weighting_of_all, tuple(x)) for x in inputs)
        return answers(self, inputs, a)

    model = failing.built("reverse", 4)
    ideal = failing_inputs.average_hard(model)
    monkeypatch.setattr(failing_inputs, "average_hard", lambda _: ideal)
    monkeypatch.setattr(Transformer, "weighting_of_all", property(id), raising=False)
    monkeypatch.setattr(Transformer, "answers", counted)

    def strings(max_strings, seed=0, alphabet=None):
        asked.clear()
        found = first_failing(lambda _: model, [4], "float32", max_strings=max_strings, seed=seed)
        compared = [x for which, x in asked if which == id(model)]
        assert found.failing is None and found.strings == len(compared) <= max_strings
        assert found.longest == max(map(len, compared)) and found.formats == ("float32",)
        assert f"{found.strings} strings to length {found.longest}" in str(found)
        return found, compared

    whole, compared = strings(MAX_STRINGS)
    assert not whole.is_limited and whole.lengths == (4,)
    symbols = len(model.alphabet)
    assert set(map(len, compared)) == {1, 2, 3, 4} and symbols**4 <= 512
    assert whole.strings == sum(symbols**k for k in range(1, 5)) == len(set(compared))
    some, _ = strings(7)
    assert some.is_limited and some.strings == 7 and "the limit" in str(some)


def test_the_seed_of_a_search_draws_other_strings():
    alphabet = ("(", ")")
    drawn = [failing_inputs._some_of_length(alphabet, 30, 100, seed) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0][:-8] == drawn[2][:-8] and not set(drawn[0][-8:]) & set(drawn[2][-8:])


def test_a_search_over_a_large_alphabet_ends():
    """10⁵ symbols have 10¹⁰ pairs; the strings of one length are limited without listing them."""
    found = failing_inputs._some_of_length(range(10**5), 3, 1000, 0)
    assert len(found) == 1000


def test_a_norm_without_a_rational_root_is_compared_with_intervals():
    norm = LayerNorm(gain=[1, 1, 1], epsilon=1)
    model = recognizer((3, 1), (1, 3), reads=[1, 0, 0], threshold=0, final_norm=norm)
    assert not tf.diagnose(model, "a", "float32").fails


@pytest.mark.parametrize(
    ("change", "refusal", "words"),
    [
        (lambda m: tf.diagnose("dyck-1", "()"), InvalidValue, "must be a Transformer"),
        (lambda m: tf.diagnose(m, "()", "exact"), InvalidValue, "must be in a float format"),
        (lambda m: tf.diagnose(m, "()", "float7"), UnknownName, "float7"),
        (lambda m: tf.diagnose(m, "(a)", "bfloat16"), UnknownSymbol, "'a' at position 2"),
        (lambda m: tf.diagnose(m, "()" * 5, "bfloat16"), InputTooLong, "at most N = 8"),
        (lambda m: tf.diagnose(m, max_strings=0), InvalidValue, "max_strings must be a whole"),
        (lambda m: tf.diagnose(m, seed=-1), InvalidValue, "seed must be a whole number of at"),
        (
            lambda m: tf.diagnose(m, arithmetic="float32"),
            InvalidValue,
            "a model on which it found none",
        ),
        (
            lambda m: tf.diagnose(
                replace(m, read_out=RealVector(W_out=m.read_out.W_out)), "()", "float16"
            ),
            InvalidValue,
            "RealVector, which gives numbers",
        ),
        (
            lambda m: tf.diagnose(
                replace(m, read_out=LanguageModel(W_out=m.read_out.W_out, labels="(")), "()"
            ),
            InvalidValue,
            "answers that are right or wrong",
        ),
    ],
)
def test_refusals(change, refusal, words):
    model = tf.recipe("dyck-1").build(max_length=8)
    with pytest.raises(refusal, match=words):
        change(model)


def test_a_model_without_an_exact_run():
    """A norm with ε = 0 of equal coordinates has no value in any arithmetic."""
    norm = LayerNorm(gain=[1, 1, 1], epsilon=0)
    model = recognizer((0, 0), (0, 0), reads=[1, 0, 0], threshold=0, final_norm=norm)
    with pytest.raises(InvalidValue, match="must have an exact run to compare with"):
        tf.diagnose(model, "a", "float16")


def test_a_comparison_far_beyond_its_region_is_not_to_blame():
    """Both units of x + y ≥ −1/8 add 8 times the error, with opposite signs; x + y ≥ 0 moves."""
    rows, constants = [(512, 512)] * 4, ["1/4", "-3/4", 64, 63]
    step = network(*rows, constants=constants, adds=[1, -1, 8, -8])
    epsilon = Fraction(1, 512)
    model = recognizer((1 + epsilon, -1), (0, 0), Layer((), step), reads=[0, 0, 1], threshold="8.5")
    found = tf.diagnose(model, "bba", "bfloat16")
    assert (found.answer, found.exact) == (False, True)
    assert found.signature == LinearRegion(
        layer=0, value=float(epsilon / 4), exact=float(5 * epsilon / 4), epsilon=float(epsilon)
    )


@tf.program(alphabet="ab")
def looked_up_twice(x):
    there = x.position("i").lookup(x.position("n") + 1 - x.position("i"), default=0)
    return x.lookup(there, default="a").tag()


@pytest.mark.parametrize(
    ("program", "N", "x", "arithmetic", "kind", "after", "position"),
    [
        # The scores of the first lookup are equal: the position that it gives the second is 16.5.
        (looked_up_twice, 17, "ab" * 8 + "a", "bfloat16", Blend, "layer 1 attention", 2),
        # Heads blend at several positions; a comparison then gets 0.33 for 1.
        (PROGRAMS["palindrome"], 32, "ab" * 13 + "a", "bfloat16", Blend, "layer 1 attention", 2),
        # A hidden unit of a comparison is rounded; two layers later another gets 0.75 for −0.25.
        (PROGRAMS["dyck-k-d"], 16, "(]", "bfloat16", BelowResolution, "layer 1 feed-forward", 0),
    ],
)
def test_a_wrong_input_is_followed_to_the_failure_that_made_it(
    program, N, x, arithmetic, kind, after, position
):
    model = tf.compile(program, max_length=N, arithmetic="exact")
    found = tf.diagnose(model, x, arithmetic)
    assert isinstance(found.signature, kind)
    assert (found.origin.after, found.origin.position) == (after, position)
    assert found.origin.got != pytest.approx(float(found.origin.exact), rel=2**-7)


@tf.program(alphabet="()[]")
def nested_pairs(x):
    closes = x.isin(")]")
    depth = x.isin("([").count("future") - closes.count("future")
    level = closes.where(depth + 1, depth)
    partner = level.select(x.isin("([").where(level, -1), mask="strict-future").rightmost(
        x, default="("
    )
    fits = x.table(partner, values=lambda c, p: c not in ")]" or p + c in ("()", "[]"))
    return ((fits & (depth >= 0)).all() & (x.isin("([").count() == closes.count())).accept()


def test_a_chain_has_no_slot_that_holds_nothing():
    """A score of BOS overflows, and with it each later number of that row is lost."""
    found = tf.diagnose(
        tf.compile(nested_pairs, max_length=16, arithmetic="exact"), "(" * 8, "float16"
    )
    assert len(found.chain) > 20 and found.signature.largest == 65504
    assert all(each.slot != "nothing" for each in found.chain)


def test_nested_strings_are_among_those_that_are_searched():
    """Strings of one symbol or two blocks are answered rightly up to the length 30."""
    model = tf.compile(nested_pairs, max_length=32, arithmetic="exact")
    found = tf.diagnose(model, None, "bfloat16")
    assert found.exact and len(found.input) < 30


@pytest.mark.parametrize(
    ("name", "x", "arithmetic", "N", "after", "position"),
    [
        # The exact values at all positions of this slot do not restore the answer; one alone does.
        ("palindrome", "aabbbbbbbbbbbbaa", "float8_e5m2", 16, "layer 1 attention", 3),
        ("dyck-k-d", "[[[[[[[[", "float8_e5m2", 8, "layer 4 feed-forward", 5),
    ],
)
def test_a_number_that_decides_at_one_position_alone_is_found(
    name, x, arithmetic, N, after, position
):
    model = tf.compile(PROGRAMS[name], max_length=N, arithmetic="exact")
    found = tf.diagnose(model, x, arithmetic=arithmetic)
    (first,) = found.first
    assert (first.after, first.position) == (after, position)


@pytest.mark.parametrize(
    ("name", "x", "arithmetic", "N"),
    [("sort", [4], "float8_e5m2", 16), ("histogram", "a" * 32, "bfloat16", 64)],
)
def test_no_number_is_named_where_none_restores_the_answer(name, x, arithmetic, N):
    """The exact scores of two labels are rounded to one number of the format."""
    model = tf.compile(PROGRAMS[name], max_length=N, arithmetic="exact")
    found = tf.diagnose(model, x, arithmetic=arithmetic)
    assert found.fails and found.first == () and found.chain == (found.origin,)
    lines = [*diagnosis_table.diagnosis_lines(name, found)]
    assert any(line.startswith("no number decides") for line in lines)
