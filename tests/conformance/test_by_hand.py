"""Instruments with weights by hand: their answers by definition, and the bits that they ask."""

import json
from fractions import Fraction

import numpy as np
import pytest
import safetensors.numpy
from eager_engines import ENGINES, rounded
from judging import instruments, wrong_tokens

from transformist.conformance import cases, suite_files, write
from transformist.conformance.families import EVERY_FAMILY, FAMILIES
from transformist.conformance.number_by_hand import LEVELS, QUESTIONS, VALUE
from transformist.conformance.places_by_hand import BACK
from transformist.conformance.vocabulary_by_hand import BORDERS, TOKENS

NAMES = ("recall", "sort", "marker", "place", "offset", "number", "vocabulary")


@pytest.fixture(scope="module")
def suites(tmp_path_factory):
    """A suite of these instruments alone for each family."""
    directory = tmp_path_factory.mktemp("by_hand")
    with pytest.MonkeyPatch.context() as patch:
        own = {name: suite_files.INSTRUMENTS[name] for name in NAMES}
        patch.setattr(suite_files, "INSTRUMENTS", own)
        for family in EVERY_FAMILY:
            write(directory / family, family, 40)
    return {family: directory / family for family in EVERY_FAMILY}


def texts_of(checkpoint):
    vocabulary = json.loads((checkpoint / "tokenizer.json").read_text())["model"]["vocab"]
    return sorted(vocabulary, key=vocabulary.get)


def chosen(suite, name):
    return [each for each in cases(suite) if each.instrument == name]


@pytest.mark.parametrize(
    "family", [each for each in EVERY_FAMILY if FAMILIES[each].positions is None]
)
def test_offset_gives_the_token_some_places_before(suites, family):
    for case in chosen(suites[family], "offset"):
        assert case.reads[0] == BACK + 1 and case.reads[-1] == len(case.ids) - 1
        assert list(case.expected) == [case.ids[at - BACK] for at in case.reads]
    assert any(len(each.generated) > 1 for each in chosen(suites[family], "offset"))


def test_offset_needs_rotations(suites):
    assert not chosen(suites["gpt2"], "offset") and not chosen(suites["bert"], "offset")


def hiding(family, place):
    """The engine in which no later query sees a place of the prompt."""

    class Hiding(ENGINES[family]):
        def seen(self, mask, past, layer):
            keys = np.arange(mask.shape[1])
            seen = super().seen(mask, past, layer)
            return seen & ((keys != place) | (keys[past:, None] == place))

    return Hiding


def answers(engine, case):
    """The tokens of an engine at the positions that a case reads."""
    return engine.read(case.checkpoint).logits([case.ids])[0][list(case.reads)].argmax(-1)


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral"])
def test_recall_depends_on_the_one_place_that_has_its_answer(suites, family):
    asked = 0
    for case in chosen(suites[family], "recall"):
        texts = texts_of(case.checkpoint)
        for number, (at, token) in enumerate(zip(case.reads, case.expected, strict=True)):
            places = [k for k in range(1, at) if case.ids[k] == case.ids[at]]
            if texts[token] == "none" or len(places) > 1 or places[0] + 1 == at:
                continue
            assert case.ids[places[0] + 1] == token
            found = answers(hiding(family, places[0] + 1), case)
            assert found[number] != token
            asked += 1
    assert asked > 30


def test_rotations_of_recall_find_the_token_before_at_every_length(suites):
    # Scores by the definition of rotations, from the weights of the file: queries and keys of the
    # last head in layer 0 are those of the constant 1, and do not depend on the token.
    checkpoint = chosen(suites["llama"], "recall")[0].checkpoint
    tensors = safetensors.numpy.load_file(checkpoint / "model.safetensors")
    theta = json.loads((checkpoint / "config.json").read_text())["rope_theta"]
    words = tensors["model.embed_tokens.weight"].astype(np.float64)
    q, k = (
        tensors[f"model.layers.0.self_attn.{each}_proj.weight"][-32:] @ words.T for each in "qk"
    )
    assert np.ptp(q, axis=1).max() < 1e-5 > np.ptp(k, axis=1).max()
    # A query q turned by i ω, with a key k turned by j ω, has the product
    # (q₁k₁ + q₂k₂) cos t ω + (q₁k₂ − q₂k₁) sin t ω, where t = i − j.
    (q_1, q_2), (k_1, k_2) = q[:, 0].reshape(2, 16), k[:, 0].reshape(2, 16)
    angles = np.arange(4096)[:, None] * theta ** -(np.arange(16) / 16)
    even, odd = q_1 * k_1 + q_2 * k_2, q_1 * k_2 - q_2 * k_1
    scores = (np.cos(angles) @ even + np.sin(angles) @ odd) / np.sqrt(32)
    assert scores.argmax() == 1 and np.sort(scores)[-2] < scores[1] - 21


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral"])
def test_sort_depends_on_each_letter_that_it_gives(suites, family):
    asked = 0
    for case in chosen(suites[family], "sort"):
        for number, (at, token) in enumerate(zip(case.reads, case.expected, strict=True)):
            places = [k for k in range(1, at + 1) if case.ids[k] == token]
            if len(places) == 1 and places[0] < at:
                assert answers(hiding(family, places[0]), case)[number] != token
                asked += 1
    assert asked > 100


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_heads_have_a_size_that_vllm_has_on_a_cpu(suites, family):
    for name in NAMES:
        if family in suite_files.INSTRUMENTS[name].families:
            config = json.loads((suites[family] / name / "config.json").read_text())
            heads = config.get("num_attention_heads") or config["n_head"]
            width = config.get("hidden_size") or config["n_embd"]
            assert config.get("head_dim", width // heads) == width // heads == 32


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_vocabulary_goes_through_a_cycle_with_both_ends(suites, family):
    found = {}
    for case in chosen(suites[family], "vocabulary"):
        for at, token in zip(case.reads, case.expected, strict=True):
            assert found.setdefault(case.ids[at], token) == token != case.ids[at]
        # The right token after the last one of the drawn prompts stands in the prompt before it.
    assert len({*found.values()}) == len(found)
    assert {*BORDERS} <= {*found.values()} and max(found.values()) == TOKENS - 1
    repeated = [each.generated[0] in each.prompt for each in chosen(suites[family], "vocabulary")]
    assert sum(repeated) >= len(repeated) // 2


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_the_right_logit_of_vocabulary_is_below_zero(suites, family):
    case = chosen(suites[family], "vocabulary")[0]
    logits = ENGINES[family].read(case.checkpoint).logits([case.ids])[0]
    own = logits[list(case.reads)]
    best = np.sort(own, axis=-1)[:, -2:]
    assert (abs(best[:, 1] + 10) < 1e-3).all() and (best[:, 0] < -11.99).all()


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_number_compares_by_the_weights_of_the_file(suites, family):
    checkpoint = chosen(suites[family], "number")[0].checkpoint
    texts = texts_of(checkpoint)
    tensors = safetensors.numpy.load_file(checkpoint / "model.safetensors")
    words = tensors[FAMILIES[family].words]
    number = Fraction(float(max(words[texts.index("#")], key=lambda x: x == np.float32(VALUE))))
    assert number == Fraction(VALUE)
    asked = {each for own in LEVELS.values() for each in own}
    for text in texts:
        if text in QUESTIONS:
            threshold = -sum(Fraction(float(each)) for each in words[texts.index(text), 1:9])
            bit, sign = QUESTIONS[text].bit, 1 if QUESTIONS[text].sign == "+" else -1
            assert threshold == number + sign * Fraction(1, 2 ** (bit + 2)) and bit in asked
    for case in chosen(suites[family], "number"):
        for at, token in zip(case.reads, case.expected, strict=True):
            assert texts[token] == {"+": "-", "-": "+"}[QUESTIONS[texts[case.ids[at]]].sign]


# Bits after the point that a format keeps, of a number from 1 to 2.
KEPT = {"float8_e5m2": 2, "float8_e4m3": 3, "bfloat16": 7, "float16": 10}


@pytest.mark.parametrize("family", ["gpt2", "qwen2", "bert"])
@pytest.mark.parametrize("number_format", KEPT)
def test_a_cache_of_few_bits_is_wrong_from_the_first_bit_that_it_lacks(
    suites, family, number_format
):
    class Rounding(ENGINES[family]):
        def stored(self, x):
            return rounded(x, number_format)

    (own,) = (each for each in instruments(suites[family]) if each.name == "number")
    texts = texts_of(own.directory)
    wrong = wrong_tokens(Rounding.read(own.directory), own.prompts, ["alone"])["alone"]
    ids = {each.id: each.ids for each in own.prompts}
    bits = {texts[ids[each.prompt][each.position]] for each in wrong}
    assert all(QUESTIONS[each].is_fetched for each in bits)
    # Half of the thresholds lie on the other side of the rounded number than of the exact one.
    lacking = {each for bit in LEVELS for each in LEVELS[bit] if each >= KEPT[number_format]}
    assert {QUESTIONS[each].bit for each in bits} == lacking


@pytest.mark.parametrize("family", EVERY_FAMILY)
@pytest.mark.parametrize("number_format", ["bfloat16", "float16"])
def test_half_formats_give_the_answers_that_they_must(suites, family, number_format):
    for own in instruments(suites[family]):
        prompts = [each for each in own.prompts if number_format in each.formats]
        engine = ENGINES[family].read(own.directory, number_format)
        found = wrong_tokens(engine, prompts)
        assert prompts and not any(found.values()), (own.name, found)
    # A right engine in a half format is wrong where the format has too few bits: no answer that a
    # format cannot give is required of it.
    others = [each for each in own.prompts if number_format not in each.formats]
    assert own.name != "number" or any(wrong_tokens(engine, others).values())
