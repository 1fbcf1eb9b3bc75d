"""The suites in the stock classes of transformers: every answer, by prefill and by generation."""

import pytest

from transformist.conformance import cases, write
from transformist.conformance.suite_files import FAMILIES

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


@pytest.mark.parametrize("family", FAMILIES)
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


MISTAKES = {
    "gpt2": {
        "norm": ({"layer_norm_epsilon": 1e-5}, "eps is 1e-05"),
        "activation": ({"activation_function": "gelu"}, "the activation is gelu"),
    },
    "llama": {
        "norm": ({"rms_norm_eps": 1e-6}, "eps is 1e-06"),
        "heads": (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
            "rope_theta is 10000",
        ),
    },
}


@pytest.mark.parametrize("family", FAMILIES)
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
