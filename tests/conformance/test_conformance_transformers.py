"""The suites in the stock classes of transformers: every answer, by prefill and by generation."""

import pytest

from transformist.conformance import cases, run, suite_files, write
from transformist.conformance.families import DECODERS
from transformist.conformance.transformers_engine import transformers_engine

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


@pytest.mark.parametrize("family", DECODERS)
def test_a_right_engine_gives_every_answer(family, tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    write(tmp_path / "s", family, 40)
    networks = {}
    wrong = []
    for case in cases(tmp_path / "s"):
        if case.checkpoint not in networks:
            networks[case.checkpoint] = (
                transformers.AutoModelForCausalLM.from_pretrained(case.checkpoint).eval(),
                transformers.AutoTokenizer.from_pretrained(case.checkpoint),
            )
        network, tokenizer = networks[case.checkpoint]
        # The tokenizer that transformers takes for every Qwen2 splits no characters beyond ASCII.
        if (family, case.instrument) != ("qwen2", "vocabulary"):
            assert tuple(tokenizer(case.text)["input_ids"]) == case.prompt
        with torch.inference_mode():
            found = network(torch.tensor([case.ids])).logits[0].argmax(-1)[list(case.reads)]
            made = network.generate(
                torch.tensor([case.prompt]),
                attention_mask=torch.ones(1, case.length, dtype=torch.int64),
                max_new_tokens=len(case.generated),
                max_length=None,
            )[0, case.length :]
        wrong += [
            (case.id, at, int(each), expected)
            for at, each, expected in zip(case.reads, found, case.expected, strict=True)
            if each != expected
        ]
        if tuple(made.tolist()) != case.generated:
            wrong.append((case.id, made, case.generated))
    assert networks and not wrong


ENCODER_SETTINGS = {
    "norm": ({"layer_norm_eps": 1e-12}, "eps is 1e-12"),
    "activation": ({"hidden_act": "gelu_new"}, "the activation is gelu_new"),
}


def test_the_labels_of_bert_are_right_and_a_mistake_gets_the_one_that_names_it(tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    write(tmp_path / "s", "bert", 40)
    networks, wrong, named = {}, [], {}

    def opened(checkpoint, **settings):
        auto = transformers.AutoModelForTokenClassification
        return auto.from_pretrained(checkpoint, **settings).eval()

    for case in cases(tmp_path / "s"):
        if case.checkpoint not in networks:
            tokenizer = transformers.AutoTokenizer.from_pretrained(case.checkpoint)
            networks[case.checkpoint] = opened(case.checkpoint), tokenizer
        network, tokenizer = networks[case.checkpoint]
        assert tuple(tokenizer(case.text)["input_ids"]) == case.ids
        with torch.inference_mode():
            found = network(torch.tensor([case.ids])).logits[0].argmax(-1)[list(case.reads)]
            wrong += [case.id] if tuple(found.tolist()) != case.expected else []
            if case.instrument in ENCODER_SETTINGS:
                settings, meaning = ENCODER_SETTINGS[case.instrument]
                other = opened(case.checkpoint, **settings)
                label = int(other(torch.tensor([case.ids])).logits[0, -1].argmax())
                named.setdefault(case.instrument, []).append(meaning in case.meaning(label))
    assert networks and not wrong
    assert named.keys() == ENCODER_SETTINGS.keys() and all(map(all, named.values())), named


MISTAKES = {
    "gpt2": {
        "norm": ({"layer_norm_epsilon": 1e-5}, "eps is 1e-05"),
        "activation": ({"activation_function": "gelu"}, "the activation is gelu"),
    },
    "qwen2": {"norm": ({"rms_norm_eps": 1e-6}, "eps is 1e-06")},
    "mistral": {"norm": ({"rms_norm_eps": 1e-6}, "eps is 1e-06")},
    "llama": {
        "norm": ({"rms_norm_eps": 1e-6}, "eps is 1e-06"),
        "heads": (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
            "rope_theta is 10000",
        ),
    },
}


@pytest.mark.parametrize("family", DECODERS)
def test_a_mistake_gets_the_answer_that_names_it(family, tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    write(tmp_path / "s", family, 32)
    named = {}
    for case in cases(tmp_path / "s"):
        if case.instrument in MISTAKES[family]:
            settings, meaning = MISTAKES[family][case.instrument]
            network = transformers.AutoModelForCausalLM.from_pretrained(case.checkpoint, **settings)
            with torch.inference_mode():
                token = int(network.eval()(torch.tensor([case.ids])).logits[0, -1].argmax())
            assert token != case.expected[-1], case.id
            named.setdefault(case.instrument, []).append(meaning in case.meaning(token))
    assert named.keys() == MISTAKES[family].keys() and all(map(all, named.values())), named


def test_a_window_that_is_missing_is_named(tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    write(tmp_path / "s", "mistral", 32)
    wrong = {"marker": [], "heads": []}
    for case in cases(tmp_path / "s"):
        if case.instrument in wrong:
            network = transformers.AutoModelForCausalLM.from_pretrained(
                case.checkpoint, sliding_window=None
            )
            with torch.inference_mode():
                found = network.eval()(torch.tensor([case.ids])).logits[0].argmax(-1).tolist()
            pairs = zip(case.reads, case.expected, strict=True)
            wrong[case.instrument] += [
                (len(case.ids), case.meaning(found[at]))
                for at, right in pairs
                if found[at] != right
            ]
    # The window of `heads` has 9 keys, and two of its prompts are longer.
    assert wrong["heads"] == [(length, "there is no window") for length in (12, 24)]
    assert wrong["marker"] and all("missing or too long" in words for _, words in wrong["marker"])


@pytest.mark.parametrize("family", ["gpt2", "mistral"])
def test_long_prompts_are_right_in_one_piece_and_in_chunks(family, tmp_path, monkeypatch):
    pytest.importorskip("torch"), pytest.importorskip("transformers")
    long = ("recall", "sort", "marker", "place", "offset", "number", "vocabulary")
    own = {name: suite_files.INSTRUMENTS[name] for name in long}
    monkeypatch.setattr(suite_files, "INSTRUMENTS", own)
    write(tmp_path / "s", family, 4096)
    longest = {each.instrument: len(each.ids) for each in cases(tmp_path / "s")}
    assert longest["number"] == max(map(len, (each.ids for each in cases(tmp_path / "s")))) == 4096
    for mode in ("alone", "chunks"):
        found = run(transformers_engine(), tmp_path / "s", mode=mode)
        assert found.is_right, [*map(str, found.evidence())]
