"""The option `position_codes=sinusoidal`: the same answers, and certificates of them."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from command_line import answer, run
from transformist.circuit import LONGEST_CODED, AtCoded, Match
from transformist.compiler.compile_options import POSITION_CODES
from transformist.errors import InvalidValue, UnknownName
from transformist.programs import PROGRAMS
from transformist.verify.certificate.conditions import KINDS
from transformist.verify.certificate.confirming import confirm
from transformist.verify.certificate.extraction import extract
from transformist.verify.certificate.finding import Search

INDUCTION = PROGRAMS["induction-most-recent"]
BY_NEIGHBOURS = ("induction-most-recent", "induction-most-frequent", "contains-abc")


@tf.program(alphabet="abc")
def before_by_number(x):
    """The symbol before, by a lookup."""
    return x.lookup(x.position("i") - 1, default="c").tag()


@tf.program(alphabet="ab")
def two_before(x):
    """The symbol two positions before, by two neighbours."""
    return x.predecessor(default="a").predecessor(default="b").tag()


@tf.program(alphabet="ab")
def first_place(x):
    """The value at the first b so far, which needs places, and its neighbour."""
    return x.predecessor(default="a").select(x, mask="future").leftmost("b", default="a").tag()


OWN = {each.name: each for each in (before_by_number, two_before, first_place)}
ALL = {**{name: PROGRAMS[name] for name in BY_NEIGHBOURS}, **OWN}


def coded(program, n, **options):
    return tf.compile(program, max_length=n, position_codes="sinusoidal", **options)


def heads(model):
    return [head for layer in model.layers for head in layer.heads]


def strings(alphabet, most):
    for n in range(most + 1):
        yield from itertools.product(alphabet, repeat=n)


def same(model, program, inputs, arithmetic):
    """The answers of all inputs, those of one length together."""
    for _, each in itertools.groupby(sorted(inputs, key=len), key=len):
        together = list(each)
        for x, got in zip(together, model.answers(together, arithmetic), strict=True):
            assert got == program(x), (program.name, x)


@pytest.mark.parametrize("masks", ["any", "future", "none"])
@pytest.mark.parametrize("name", ALL)
def test_every_short_string(name, masks):
    """Where N is short, at a power of two, and before one; and where the inputs are shorter."""
    program = ALL[name]
    if masks == "none" and name in ("induction-most-recent", "first_place"):
        pytest.skip("an encoder has no matches so far")
    if masks == "none" and name == "induction-most-frequent":
        pytest.skip("an encoder has no counts so far")
    most = 4 if len(program.alphabet) > 3 else 5
    for n in (1, 2, 3, 4, 7, 8):
        model = coded(program, n, masks=masks)
        same(model, program, strings(program.alphabet, min(most, n)), "float32")


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
@pytest.mark.parametrize("name", ALL)
def test_lengths_9_to_12(name, weighting):
    program, source = ALL[name], random.Random(name)
    for n in (9, 10, 11, 12):
        model = coded(program, n, weighting=weighting, masks="future")
        alphabet = program.alphabet
        longest = [(each,) * n for each in alphabet]
        longest += [tuple(source.choices(alphabet, k=n)) for _ in range(20)]
        inputs = [*longest, (), (alphabet[0],), alphabet[:2]]
        same(model, program, inputs, "exact" if weighting != "softmax" else "float32")


def test_exact_arithmetic_has_rational_weights_and_the_answers():
    model = coded(INDUCTION, 16, weighting="average-hard", masks="future")
    same(model, INDUCTION, strings("abc", 4), "exact")
    assert str(heads(model)[0].mask) == "future"


def test_heads_read_no_squares():
    for masks in ("any", "future"):
        model = coded(INDUCTION, 100, masks=masks)
        assert "i^2" not in model.embedding.positions.names
        assert "cos(2pi i/128)" in model.embedding.positions.names
    quadratic = tf.compile(INDUCTION, max_length=100, masks="future")
    assert "i^2" in quadratic.embedding.positions.names
    assert tf.compile(INDUCTION, max_length=100, position_codes="quadratic") == tf.compile(
        INDUCTION, max_length=100
    )


def test_functions_of_a_code_need_not_be_in_positions():
    """`positions` restricts all functions but those of the code."""
    model = coded(before_by_number, 6, positions=["i"])
    names = {*model.embedding.positions.names} - {None}
    assert names == {"(-1)^i", *(f"{f}(2pi i/{L})" for f in ("cos", "sin") for L in (4, 8))}
    with pytest.raises(InvalidValue, match="i\\^2"):
        tf.compile(before_by_number, max_length=6, positions=["i"])


def test_scores_of_matches_stay_within_the_whole_numbers_of_bfloat16():
    """At N = 128 all scores are whole multiples of 1/τ, a power of two, up to 256 in magnitude."""
    model = coded(INDUCTION, 128, masks="future", reuse=False)
    head, root = model.layers[1].heads[0], 4  # √d_key
    sharpness = np.abs(head.W_Q[3]).sum() + head.b_Q[3]  # the query of the place is 1/τ
    assert head.b_K.tolist()[4] == 1 and head.W_Q.shape[0] == root**2
    assert np.log2(sharpness) == int(np.log2(sharpness))
    # Scores are 1/τ (256 [match] + j − 256), j from 0 to 128.
    assert head.b_Q[4] == -256 * sharpness
    assert np.abs(head.W_Q[:3]).max() == 256 * sharpness


@pytest.mark.parametrize(("choose", "ends"), [("rightmost", (-511, 128)), ("leftmost", (-640, -1))])
def test_scores_beside_a_score_of_bos_reach_beyond_the_whole_numbers_of_bfloat16(choose, ends):
    """With a default that BOS stands for, a match is worth 512 at N = 128."""

    @tf.program(alphabet="ab")
    def nearest(x):
        return getattr(x.select(x, mask="future"), choose)("b", default="a").tag()

    model = coded(nearest, 128, masks="future", reuse=False)
    scores = [model.run(each * 128).scores(0, 0) for each in "ab"]
    found = np.concatenate([each[np.isfinite(each)] for each in scores])
    head = heads(model)[0]
    unit = np.abs(head.W_Q).max() / len(head.W_Q) ** 0.5 / 512
    assert np.log2(unit) == int(np.log2(unit))
    assert (found.min() / unit, found.max() / unit) == ends


@pytest.mark.parametrize("n", [12, 128])
def test_a_certificate_is_read_from_weights(n, tmp_path):
    model = coded(INDUCTION, n, masks="future", reuse=False)
    found = tf.certify(model, "float32")
    assert (found.grade, found.holds, found.largest_length) == (1, True, n)
    tf.check_certificate(model, found)
    kinds = [kind for layer in found.heads for kind in layer]
    assert [type(kind) for kind in kinds] == [AtCoded, Match]
    assert kinds[0].words("a", str) == "a at position i - 1"
    tf.save(model, tmp_path / "m.safetensors", [found])
    (again,) = tf.load_certificates(tmp_path / "m.safetensors")
    assert again == found and again.heads == found.heads


def test_the_second_grade_follows_from_the_laws():
    model = coded(INDUCTION, 12, masks="future", reuse=False)
    found = Search(model, tf.arithmetic.number_system("float32"), 12, "any").certificate(12)
    assert found.holds and found.grade == 2
    confirm(model, found)


def test_a_forged_gap_or_distance_is_refused():
    model = coded(INDUCTION, 12, masks="future", reuse=False)
    found = extract(model, 12)
    ((kind,), _), (head,) = found.heads, model.layers[0].heads
    require = KINDS[AtCoded]
    require(found.circuit, head, kind, "head")
    forged = [
        replace(kind, gap=kind.gap + 1),
        replace(kind, offset=-2),
        replace(kind, mask="past"),
        replace(kind, queries=tuple(query * 2 for query in kind.queries)),
        replace(kind, keys=kind.keys[1:], queries=kind.queries[1:]),
    ]
    for each in forged:
        with pytest.raises(tf.TransformistError, match="code"):
            require(found.circuit, head, each, "head")
    found.circuit.max_length = 16  # the longest wavelength is 16
    with pytest.raises(tf.TransformistError, match="tell all positions apart"):
        require(found.circuit, head, kind, "head")


def test_bfloat16_is_certified_at_a_small_n():
    model = coded(INDUCTION, 12, masks="future", reuse=False)
    found = tf.certify(model, "bfloat16")
    assert found.holds and found.largest_length == 12
    quadratic = tf.compile(INDUCTION, max_length=12, masks="future", reuse=False)
    assert not tf.certify(quadratic, "bfloat16").holds


def test_a_changed_code_is_not_certified():
    """A head whose query is rotated by two positions finds i − 2, which is none at i = 1."""
    model = coded(INDUCTION, 12, masks="future", reuse=False)
    first, second = model.layers
    (head,) = first.heads
    query = np.array(head.W_Q)
    query[1:3] = -query[1:3]
    broken = replace(model, layers=(replace(first, heads=(replace(head, W_Q=query),)), second))
    found = tf.certify(broken, "float32")
    assert not any(isinstance(kind, AtCoded) for layer in found.heads for kind in layer)


class TestRefusals:
    def test_another_code(self):
        with pytest.raises(UnknownName, match="did you mean sinusoidal"):
            tf.compile(INDUCTION, position_codes="sinusoid")
        for wrong in (None, 1, ["sinusoidal"]):
            with pytest.raises(UnknownName, match="code of positions"):
                tf.compile(INDUCTION, position_codes=wrong)

    @pytest.mark.parametrize("n", [None, LONGEST_CODED + 1])
    def test_no_longest_input_or_one_beyond_the_wavelengths(self, n):
        with pytest.raises(InvalidValue, match=f"at most 65,535, .* received max_length = {n}"):
            tf.compile(INDUCTION, max_length=n, position_codes="sinusoidal")

    def test_computed_positions(self):
        with pytest.raises(InvalidValue, match="GPT-2, OPT and BERT have a table of them; Llama"):
            coded(INDUCTION, 16, positions="bos", masks="future")

    def test_the_command_line(self, capsys, tmp_path):
        path = str(tmp_path / "coded.safetensors")
        options = ("compile", "programs/induction-most-recent", "-o", path, "--max-length", "16")
        assert answer(capsys, *options, "--position-codes", "sinusoidal")["grade"] == 1
        assert tf.load(path) == coded(INDUCTION, 16)
        code, _, error = run(capsys, *options, "--position-codes", "cubic")
        assert code == 2 and "no code of positions has this name" in error
        assert POSITION_CODES == ("quadratic", "sinusoidal")

    @pytest.mark.parametrize(
        ("option", "value", "other"),
        [
            ("--position-codes", "sinusoidal", "position_codes=quadratic"),
            ("--max-length", "9", "max-length=5"),
            ("--masks", "future", "masks=none"),
        ],
    )
    def test_two_values_of_one_setting(self, option, value, other, capsys, tmp_path):
        given = ("compile", "programs/reverse", "-o", str(tmp_path / "m.safetensors"))
        code, _, error = run(capsys, *given, option, value, "--set", other)
        assert code == 2 and "must be given once" in error
        assert not [*tmp_path.iterdir()]

    def test_two_codes_of_an_export(self, capsys, tmp_path):
        given = ("export", "programs/reverse", "--host", "onnx", "-o", str(tmp_path / "m.onnx"))
        codes = ("--position-codes", "sinusoidal", "--set", "position_codes=quadratic")
        code, _, error = run(capsys, *given, *codes)
        assert code == 2 and "position_codes must be given once" in error
