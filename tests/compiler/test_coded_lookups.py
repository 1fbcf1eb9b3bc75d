"""Lookups of i + c, c and c − i by sinusoidal codes, in and outside the input."""

import itertools
import random
import warnings
from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from command_line import run
from transformist.circuit import ALWAYS_THERE, LONGEST_CODED, AtCoded, Form, PositionCode
from transformist.compiler import largest_length
from transformist.errors import InvalidValue, QuadraticCode
from transformist.model import Mask
from transformist.named.named_program import NamedProgram
from transformist.position_features import position
from transformist.programs import PROGRAMS
from transformist.verify.certificate.conditions import KINDS, code_of
from transformist.verify.certificate.confirming import confirm
from transformist.verify.certificate.extraction import extract
from transformist.verify.certificate.finding import Search


def at(slope, offset):
    """The symbol at slope · i + offset; c outside the input."""

    def written(x):
        index = x.position("i") * slope + offset
        return x.lookup(index, default="c").tag()

    return tf.program(alphabet="abc")(written)


@tf.program(alphabet="abc")
def third_before(x):
    return x.predecessor(3, default="b").tag()


@tf.program(alphabet="abc")
def after(x):
    return x.successor(default="a").tag()


@tf.program(alphabet="abc")
def two_after(x):
    return x.successor(2, default="c").tag()


@tf.program(alphabet="abc")
def the_first(x):
    return x.first(default="b").tag()


@tf.program(alphabet="abc")
def before_and_after(x):
    """A neighbour of a neighbour, and a comparison with the first symbol."""
    around = x.predecessor(2, default="a").successor(1, default="b")
    return around.map({"a": 1, "b": 2, "c": 0}).tag()


@tf.program(alphabet="ab")
def pairs_two_apart(x):
    """A count of what is fetched, at the last position."""
    return ((x == x.predecessor(2, default="b")).count() >= 2).accept()


NEIGHBOURS = (third_before, after, two_after, the_first, before_and_after, pairs_two_apart)
PROGRAMS_HERE = {
    **{each.name: each for each in NEIGHBOURS},
    **{f"i {c:+}": at(1, c) for c in (-5, -2, -1, 0, 1, 4)},
    **{f"{c}": at(0, c) for c in (1, 2, 7)},
    **{f"{c} - i": at(-1, c) for c in (2, 3, 9, 16)},
}
CAUSAL = ("third_before", "the_first", "pairs_two_apart", "i -5", "i -2", "i -1", "i +0")


def coded(program, n, **options):
    return tf.compile(program, max_length=n, position_codes="sinusoidal", **options)


def kinds_of(model, n):
    return [kind for layer in extract(model, n).heads for kind in layer]


def strings(alphabet, most):
    for n in range(most + 1):
        yield from itertools.product(alphabet, repeat=n)


def hard(alphabet, n, drawn=4):
    """Constant, alternating and drawn strings of n symbols, and their short prefixes."""
    first, *_, last = alphabet
    longest = [(each,) * n for each in alphabet]
    longest += [tuple(first if i % 2 else last for i in range(n))]
    longest += [(last, *(first,) * (n - 1)), (*(first,) * (n - 1), last)]
    source = random.Random(n)
    longest += [tuple(source.choices(alphabet, k=n)) for _ in range(drawn)]
    shorter = {0, 1, 2, 3, n // 2, n - 1} & {*range(n)}
    return [*longest, *(x[:k] for x in longest[-2:] for k in shorter)]


def same(model, program, inputs, arithmetic):
    for _, each in itertools.groupby(sorted(inputs, key=len), key=len):
        together = list(each)
        for x, got in zip(together, model.answers(together, arithmetic), strict=True):
            assert got == program(x), (program.name, x, arithmetic)


def without_squares(model):
    positions = model.embedding.positions
    return positions is None or "i^2" not in positions.names


@pytest.mark.parametrize("masks", ["any", "future", "none"])
@pytest.mark.parametrize("name", PROGRAMS_HERE)
def test_every_short_string(name, masks):
    """At N = 1, below, at and above a power of two, and inputs shorter than N."""
    program = PROGRAMS_HERE[name]
    if masks == "future" and name not in CAUSAL:
        pytest.skip("reads a later position, or one that may be later")
    for n in (1, 2, 3, 4, 7, 8):
        model = coded(program, n, masks=masks)
        assert without_squares(model)
        same(model, program, strings(program.alphabet, min(4, n)), "float32")
        same(model, program, hard(program.alphabet, n), "float32")


@pytest.mark.parametrize("weighting", ["softmax", "average-hard", "rightmost-hard"])
@pytest.mark.parametrize("name", PROGRAMS_HERE)
def test_lengths_9_to_12(name, weighting):
    program = PROGRAMS_HERE[name]
    if name == "pairs_two_apart" and weighting == "rightmost-hard":
        pytest.skip("counts")
    arithmetic = "float32" if weighting == "softmax" else "exact"
    for n in (9, 10, 11, 12):
        model = coded(program, n, weighting=weighting)
        same(model, program, hard(program.alphabet, n, drawn=2), arithmetic)


@pytest.mark.parametrize("n", [64, 128, 512])
@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ["third_before", "after", "the_first", "9 - i"])
def test_narrow_formats_are_certified_and_right(name, arithmetic, n):
    program = PROGRAMS_HERE[name]
    model = coded(program, n)
    found = tf.certify(model, arithmetic)
    assert (found.holds, found.grade, found.largest_length) == (True, 1, n)
    same(model, program, hard(program.alphabet, n, drawn=2), arithmetic)


def test_the_quadratic_code_is_wrong_in_bfloat16():
    quadratic = tf.compile(third_before, max_length=64)
    x = "abcacb" * 10
    assert quadratic(x, "bfloat16") != third_before(x)
    assert coded(third_before, 64)(x, "bfloat16") == third_before(x)


@pytest.mark.parametrize("arithmetic", ["float8_e4m3", "float8_e5m2"])
def test_float8_is_certified_for_two_symbols(arithmetic):
    """With 3 and 2 bits, two symbols are few enough."""
    program = at(1, -2)
    model = coded(program, 2, masks="future")
    assert tf.certify(model, arithmetic).holds
    same(model, program, strings("abc", 2), arithmetic)
    assert not tf.certify(coded(program, 4, masks="future"), arithmetic).holds


INDICES = [(1, -1), (1, 0), (1, -2), (1, -7), (1, 1), (1, 7), (0, 1), (0, 8), (-1, 2), (-1, 9)]


def head_of(index, n, mask):
    """The head that the compiler takes, and the values of its forms at the rows 0 to N."""
    slope, offset = index
    lo, hi = sorted(slope * i + offset for i in (1, n))
    furthest = n if mask == Mask.FUTURE and slope == 1 else max(hi - 1, n - lo)
    names = dict[str, int]()

    def feature(name):
        return Form.atom(names.setdefault(name, len(names) + 1))

    code = PositionCode(max(n, furthest, 2))
    head = AtCoded.by(code, index, mask, feature, Form.atom(0))
    rows = np.zeros((len(names) + 1, n + 1), dtype=np.int64)
    rows[0, 0] = 2**12
    for name, number in names.items():
        rows[number] = [int(position(name, i, n) * 2**12) for i in range(n + 1)]

    def values(form):
        """The form times 2¹² · 32 · 2¹², as its factors are multiples of 1/32 · 2⁻¹²."""
        factors = [(a, int(x * 32 * 2**12)) for a, x in form.terms]
        constant = int(form.constant * 32 * 2**24)
        return sum((rows[a] * x for a, x in factors), np.full(n + 1, constant, dtype=np.int64))

    return head, values


@pytest.mark.parametrize("n", [2, 3, 4, 8, 31, 32, 127, 128, 512, 2047, 2048])
def test_scores_of_other_rows_are_lower_by_the_gap(n):
    """Exact scores of every pair of rows, for the ends of the input among others."""
    for index, mask in itertools.product(INDICES, (Mask.NONE, Mask.FUTURE)):
        slope, offset = index
        if mask == Mask.FUTURE and slope == 1 and offset > 0:
            continue
        head, values = head_of(index, n, mask)
        queries = np.array([values(q) for q in head.queries], dtype=float)
        keys = np.array([values(k) for k in head.keys], dtype=float)
        scores = (queries / 2**29).T @ (keys / 2**29)  # off by less than 10⁻¹²
        i, j = np.arange(n + 1)[:, None], np.arange(n + 1)[None]
        admitted = (j <= i) if mask == Mask.FUTURE else np.full(scores.shape, True)
        target = slope * i + offset
        there = (target >= (0 if index in ALWAYS_THERE else 1)) & (target <= n)
        there &= (target <= i) | (mask != Mask.FUTURE)
        target = np.where(there, target, 0)
        best = np.take_along_axis(scores, target, axis=1)
        others = np.where(admitted & (j != target), scores, -np.inf)
        led = (best - others).min(axis=1)[1:]  # at symbols
        assert led.min() >= float(head.gap) - 1e-9, (index, mask)
        assert float(head.gap) / best.max() > (0.25 if index in ALWAYS_THERE else 0.125)
        # The gap is not stated much lower than it is.
        assert n < 8 or index == (0, 8) or led.min() < float(head.gap) * 1.2


@pytest.mark.parametrize("masks", ["any", "future", "none"])
def test_every_index_is_read_off_the_weights(masks):
    """The kind of a head has the offset and the slope, up to the largest of either sign."""
    numbers = itertools.product((7, 8), (1, 0, -1), range(-8, 17))
    for n, slope, offset in numbers:
        lo, hi = sorted(slope * i + offset for i in (1, n))
        causal = slope == 1 and offset <= 0
        if hi < 1 or lo > n or (masks == "future" and not causal):
            continue
        model = coded(at(slope, offset), n, masks=masks)
        (kind,) = kinds_of(model, n)
        assert isinstance(kind, AtCoded)
        assert (kind.slope, kind.offset) == (slope, offset)


def test_words():
    for (slope, offset), words in {
        (1, -2): "i - 2",
        (1, 3): "i + 3",
        (1, 0): "i",
        (0, 4): "4",
        (-1, 9): "9 - i",
    }.items():
        (kind,) = kinds_of(coded(at(slope, offset), 9), 9)
        assert kind.words("a", str) == f"a at position {words}"


@pytest.mark.parametrize("name", ["third_before", "after", "the_first", "9 - i", "i +4"])
def test_the_second_grade_follows_from_the_laws(name):
    model = coded(PROGRAMS_HERE[name], 12)
    found = Search(model, tf.arithmetic.number_system("float32"), 12, "any").certificate(12)
    assert found.holds and found.grade == 2
    confirm(model, found)


def test_without_bos_in_the_stream_there_is_no_sink():
    """The head of i − 1 needs no BOS. One of i − 2 would lead i = 1 to any row."""
    model = coded(at(1, -1), 12, masks="future")
    found = extract(model, 12)
    ((kind,),) = found.heads
    assert code_of(found.circuit, kind.keys, (1, -1), "future") == kind
    assert code_of(found.circuit, kind.keys, (1, -2), "future") is None
    assert code_of(found.circuit, kind.keys, (1, -1), "none") is None


def test_forged_heads_are_refused():
    model = coded(two_after, 12, masks="none")
    found = extract(model, 12)
    ((kind,),), (head,) = found.heads, model.layers[0].heads
    require = KINDS[AtCoded]
    require(found.circuit, head, kind, "head")
    assert kind.gap == PositionCode(15).gap / 2
    forged = [
        replace(kind, gap=kind.gap * 2),
        replace(kind, offset=3),
        replace(kind, slope=-1),
        replace(kind, mask="past"),
        replace(kind, queries=(*kind.queries[:-1], Form.of(1))),
        replace(kind, keys=kind.keys[:-1], queries=kind.queries[:-1]),
    ]
    for each in forged:
        with pytest.raises(tf.TransformistError, match="code"):
            require(found.circuit, head, each, "head")
    found.circuit.max_length = 16  # the longest wavelength is 16
    with pytest.raises(tf.TransformistError, match="tell all positions apart"):
        require(found.circuit, head, kind, "head")


@pytest.mark.parametrize("change", ["sink", "key of BOS", "query"])
def test_a_changed_head_has_no_kind_of_code(change):
    """A sink as high as the target, a code at BOS, a query that is turned: no gap is known."""
    model = coded(two_after, 12, masks="none")
    (first,) = model.layers
    (head,) = first.heads
    W_Q, b_Q, W_K = (np.array(each) for each in (head.W_Q, head.b_Q, head.W_K))
    bos = model.stream.slots.index("BOS")
    (sink,) = np.flatnonzero(b_Q)
    if change == "sink":
        b_Q[sink] *= 1.5
    elif change == "key of BOS":
        W_K[:sink, bos] = 0
    else:
        W_Q[1] = -W_Q[1]
    broken = replace(
        model, layers=(replace(first, heads=(replace(head, W_Q=W_Q, b_Q=b_Q, W_K=W_K),)),)
    )
    with pytest.raises(tf.TransformistError, match="must be codes of all wavelengths"):
        extract(broken, 12)


class TestQuadraticCode:
    @pytest.mark.parametrize("name", ["reverse", "sort"])
    def test_other_lookups_keep_it_and_are_named(self, name):
        with pytest.warns(QuadraticCode, match=r"keep the quadratic code.*line \d+: x\."):
            model = coded(PROGRAMS[name], 9)
        assert model == tf.compile(PROGRAMS[name], max_length=9)

    def test_beyond_the_wavelengths(self):
        with pytest.warns(QuadraticCode, match="successor"):
            model = coded(two_after, LONGEST_CODED, arithmetic="float64")
        assert not without_squares(model)

    def test_a_program_without_them_is_silent(self, recwarn):
        coded(third_before, 9)
        tf.compile(PROGRAMS["reverse"], max_length=9)
        assert not recwarn.list

    def test_the_command_line(self, capsys, tmp_path):
        path = str(tmp_path / "m.safetensors")
        options = ("compile", "programs/reverse", "-o", path, "--max-length", "9")
        code, _, error = run(capsys, *options, "--position-codes", "sinusoidal")
        assert code == 0 and error.startswith("warning: compile: sinusoidal codes find")

    def test_certify_takes_the_option_of_compile(self, capsys):
        code, _, error = run(capsys, "certify", "programs/reverse", "--position-codes", "sinusoid")
        assert code == 2 and "'sinusoid'; did you mean sinusoidal?" in error


def test_the_largest_length_is_at_most_that_of_codes():
    """`most` may be left out: no N above 65,535 is tried."""
    given = {"position_codes": "sinusoidal", "arithmetic": "exact"}
    assert largest_length(third_before, **given) == LONGEST_CODED
    assert largest_length(third_before, most=50, **given) == 50
    with pytest.raises(InvalidValue, match="whole number"):
        largest_length(third_before, most="12", **given)


def test_a_model_that_is_only_tried_gives_no_warning():
    """The command that compiles the program warns once, for the model that it keeps."""
    named = NamedProgram("programs/reverse", {}, PROGRAMS["reverse"])
    options = {"max_length": 8, "masks": "future", "position_codes": "sinusoidal"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = named.with_defaults(**options).for_masks()
    assert after.answers_after
    with pytest.warns(QuadraticCode):
        after.with_defaults(arithmetic="float32").compiled()


def test_a_code_beyond_the_table_of_a_proof_is_named():
    found = tf.certify(coded(third_before, 4097, masks="future"), "float32")
    assert not found.holds or found.grade == 2
    assert "of codes, whose table has at most 4,096 rows" in found.stopped
