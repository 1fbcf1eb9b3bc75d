"""Models with sinusoidal codes in bfloat16, in stock classes, against the programs."""

import itertools
import random
import re

import pytest
from exported_programs import hard

import transformist as tf
from transformist.hosts.plain_model import HEAD, plain_model, with_constant, with_zero_sum
from transformist.model import Mask
from transformist.programs import PROGRAMS

pytestmark = pytest.mark.hosts

INDUCTION = PROGRAMS["induction-most-recent"]
N = 128


def model_of(n, codes="sinusoidal"):
    return tf.compile(INDUCTION, max_length=n, masks="future", reuse=False, position_codes=codes)


def repeated(n):
    """Strings whose last earlier occurrence is near, far, and one before another symbol."""
    yield "ab" + "c" * (n - 2)
    yield "c" * (n // 2) + "ab" + "c" * (n - n // 2 - 2)
    yield "a" + "b" * (n - 2) + "a"
    yield ("a" * 15 + "b") * (n // 16)
    yield "c" * (n - 2) + "ab"
    source = random.Random(n)
    yield from ("".join(source.choices("abc", (30, 1, 1), k=n)) for _ in range(4))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    pytest.importorskip("torch", reason="needs the extra hosts")
    pytest.importorskip("transformers", reason="needs the extra hosts")
    found = {}
    for codes in ("sinusoidal", "quadratic"):
        found[codes] = tmp_path_factory.mktemp("checkpoint") / codes
        tf.export(model_of(N, codes), found[codes], host="gpt2")
    return found


def wrong_positions(path, inputs, dtype, attention, program=INDUCTION):
    """The number of positions with another token than the program's, and of all."""
    import torch
    import transformers

    tokens = transformers.AutoTokenizer.from_pretrained(path)
    (name,) = transformers.AutoConfig.from_pretrained(path).architectures
    network = (
        getattr(transformers, name)
        .from_pretrained(path, dtype=getattr(torch, dtype), attn_implementation=attention)
        .eval()
    )
    wrong = total = 0
    for x in inputs:
        ids = tokens("".join(x), return_tensors="pt").input_ids
        with torch.no_grad():
            found = network(ids).logits[0].argmax(-1).tolist()
        expected = list(program(x))
        if "Causal" in name or "LMHead" in name:
            answers = tokens.convert_ids_to_tokens(found)
        else:
            answers = [network.config.id2label[each] for each in found]
        answers = answers[len(found) - len(expected) :]
        wrong += sum(a != b for a, b in zip(answers, expected, strict=True))
        total += len(expected)
    return wrong, total


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_induction_in_bfloat16_is_right_at_every_position(exported, attention):
    inputs = [*hard("abc", N, drawn=12), *repeated(N)]
    inputs += [x[:n] for x in hard("abc", N) for n in (1, 2, 9, 12, 64, 127)]
    wrong, total = wrong_positions(exported["sinusoidal"], inputs, "bfloat16", attention)
    assert wrong == 0 and total > 6000


def test_every_short_string_in_bfloat16(exported):
    inputs = [x for n in range(1, 6) for x in itertools.product("abc", repeat=n)]
    assert wrong_positions(exported["sinusoidal"], inputs, "bfloat16", "eager")[0] == 0


def test_the_quadratic_code_is_wrong_there(exported):
    wrong, total = wrong_positions(exported["quadratic"], [*hard("abc", N)], "bfloat16", "eager")
    assert wrong > total // 10


def test_the_card_has_the_n_of_bfloat16(exported):
    rows = {
        codes: re.search(r"\| bfloat16 \| (\w+) \| (\w+) ", (path / "README.md").read_text())
        for codes, path in exported.items()
    }
    assert rows["sinusoidal"].groups() == (str(N), "searched")
    assert rows["quadratic"][1] != str(N)


@tf.program(alphabet="abc")
def third_before(x):
    """A neighbour at the distance 3: no such position for i up to 3."""
    return x.predecessor(3, default="b").tag()


@tf.program(alphabet="abc")
def second_after(x):
    return x.successor(2, default="c").tag()


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize(
    ("host", "program", "masks"), [("gpt2", third_before, "future"), ("bert", second_after, "none")]
)
def test_neighbours_in_bfloat16_are_right_at_every_position(
    tmp_path, host, program, masks, attention
):
    """Neighbours inside and outside the input; by the quadratic code many are wrong."""
    pytest.importorskip("transformers", reason="needs the extra hosts")
    longest = [*hard("abc", N, drawn=4), *repeated(N)]
    inputs = [*longest, *(x[:n] for x in longest[:2] for n in (1, 2, 3, 4, 12, 127))]
    options = {"max_length": N, "masks": masks, "reuse": False}
    for codes in ("sinusoidal", "quadratic"):
        tf.export(tf.compile(program, position_codes=codes, **options), tmp_path / codes, host=host)
        wrong, total = wrong_positions(tmp_path / codes, inputs, "bfloat16", attention, program)
        assert total > 1500
        assert (wrong == 0) == (codes == "sinusoidal")
    card = (tmp_path / "sinusoidal" / "README.md").read_text()
    assert re.search(rf"\| bfloat16 \| {N} \| searched ", card)


def test_positions_cancel_in_the_sum_of_slots():
    """A slot of positions has its opposite beside it, as far as the class has empty slots."""
    plain = with_constant(plain_model(model_of(N), "gpt2", (Mask.FUTURE,), None))
    wide = with_zero_sum(plain)
    of_positions = plain.positions.any(axis=0).sum()
    assert wide.width == plain.width + of_positions + 1
    for table in (wide.words, wide.positions):
        assert (table.sum(axis=1) == 0).all()
        assert (abs(table[:, -1]) <= 4).all()
    assert (wide.positions[:, -1] == 0).all()
    # Width 64 holds all of them, so the class is no wider than without.
    assert wide.width <= HEAD


@pytest.mark.parametrize("host", ["onnx", pytest.param("torch", marks=pytest.mark.slow)])
def test_waves_are_computed_alike_elsewhere(tmp_path, host):
    """The export compares answers; numbers of positions are compared here, bit for bit."""
    pytest.importorskip("torch" if host == "torch" else "onnxruntime", reason="needs the extra")
    model = model_of(70)
    assert (
        tf.export(model, tmp_path / f"m.{'pt2' if host == 'torch' else host}", host).longest == 70
    )
