"""The suites in the stock classes of transformers: every answer, by prefill and by generation."""

import pytest

from transformist.conformance import cases, write
from transformist.conformance.suite_files import FAMILIES

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_right_engine_gives_every_answer(family, tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    write(tmp_path / "s", family, 96)
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
