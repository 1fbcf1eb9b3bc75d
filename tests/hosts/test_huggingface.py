"""Checkpoints in the real classes of transformers: the answers of programs, left-padded, offline.

The answers are compared with those of the program's interpreter, which knows no weights.
"""

import contextlib
import doctest
import itertools
import json
import re
import shlex
import shutil
import socket
import tomllib
from pathlib import Path

import pytest
from drawn_models import drawn
from exported_programs import (
    ANSWERED,
    CASES,
    DECODERS,
    HELD,
    IN_HALF,
    expected,
    exported,
    exported_after,
    hard,
    strings,
    texts,
)

import transformist as tf
from transformist.cli import main
from transformist.errors import InvalidValue
from transformist.hosts import bert, gpt2, host_comparison, layer_normed, llama
from transformist.hosts.host import CHECKPOINT_FILES, HOSTS
from transformist.programs import PROGRAMS

pytestmark = [pytest.mark.hosts, pytest.mark.slow]


@pytest.fixture(scope="module")
def library():
    for each in ("torch", "transformers"):
        pytest.importorskip(each, reason=f"{each} is not installed (pip extra huggingface)")
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the tensors are small
    yield transformers
    torch.set_num_threads(threads)


@pytest.fixture
def few(monkeypatch):
    """Fewer strings in the comparison of an export: these tests compare others."""
    monkeypatch.setattr(host_comparison, "EVERY", 16)
    monkeypatch.setattr(host_comparison, "THOROUGH", 8)


def answered(library, directory, host, inputs, dtype="float32", as_texts=False):
    """The texts of the answers at every position of a batch padded by the tokenizer.

    The inputs are symbols, or texts where `as_texts` says so.
    """
    import torch

    causal = host != "bert"
    auto = library.AutoModelForCausalLM if causal else library.AutoModelForTokenClassification
    tokenizer = library.AutoTokenizer.from_pretrained(directory)
    network = auto.from_pretrained(directory, dtype=getattr(torch, dtype)).eval()
    given = inputs if as_texts else texts(inputs)
    batch = tokenizer(given, padding=True, return_tensors="pt")
    mask = batch["attention_mask"]
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.inference_mode():
        best = network(**batch, position_ids=places).logits.argmax(-1)
    for row, is_token in zip(best, mask.bool(), strict=True):
        found = row[is_token].tolist()
        names = (
            tokenizer.convert_ids_to_tokens(found)
            if causal
            else [network.config.id2label[each] for each in found]
        )
        yield names


@pytest.mark.parametrize(("host", "name", "n"), CASES)
def test_the_class_answers_as_the_program(library, few, tmp_path, host, name, n):
    model = exported(tmp_path / "made", host, name, n)
    program, front = PROGRAMS[name], len(model.embedding.front)
    inputs = [*strings(program, n)]
    size = max(1, 2**12 // n)
    positions = 0
    for start in range(0, len(inputs), size):
        block = inputs[start : start + size]
        for x, found in zip(block, answered(library, tmp_path / "made", host, block), strict=True):
            wanted = expected(program, x)
            read = found[front:] if model.read_out.at == "every" else found[-1:]
            assert read == wanted, (x, read)
            positions += len(wanted)
    assert positions >= 40


@pytest.mark.parametrize(("host", "name", "n"), ANSWERED)
def test_the_class_answers_after_the_input(library, few, tmp_path, host, name, n):
    """Every position of the input, `=` and the tags, and a few texts continued by `generate`."""
    program, path = PROGRAMS[name], tmp_path / "made"
    exported_after(path, host, name, n)
    inputs = [*strings(program, n)]
    tags = [[*program(x)] for x in inputs]
    whole = [[*map(str, (*x, "=", *y))] for x, y in zip(inputs, tags, strict=True)]
    joint = "" if all(isinstance(each, str) for y in tags for each in y) else " "
    # For Qwen2, AutoTokenizer takes another class (see the test below).
    kind = library.PreTrainedTokenizerFast if host == "qwen2" else library.AutoTokenizer
    tokenizer = kind.from_pretrained(path)
    wanted = [[*"=" * len(y), *map(str, y), tokenizer.eos_token] for y in tags]
    size = max(1, 2**11 // n)
    positions = 0
    for start in range(0, len(inputs), size):
        block = [joint.join(each) for each in whole[start : start + size]]
        found = answered(library, path, host, block, as_texts=True)
        for x, names, y in zip(inputs[start:], found, wanted[start:], strict=False):
            assert names[1:] == y, (x, names)
            positions += len(y)
    assert positions >= 40 * n
    network = library.AutoModelForCausalLM.from_pretrained(path)
    given = [*range(0, len(inputs), max(1, len(inputs) // 4))]
    begun = [joint.join(map(str, inputs[k])) for k in given]
    batch = tokenizer(begun, padding=True, return_tensors="pt")
    for cache in (True, False) if n == 64 else (True,):
        made = network.generate(**batch, max_new_tokens=n + 2, use_cache=cache)
        for k, row in zip(given, made, strict=True):
            assert tokenizer.decode(row, skip_special_tokens=True) == joint.join(whole[k])


@pytest.mark.parametrize(
    ("host", "name"), [(host, name) for host, held in IN_HALF.items() for name in held]
)
def test_the_class_answers_in_float16(library, few, tmp_path, host, name):
    """At the largest N that the compiler admits in float16, at every position."""
    import torch

    program, n = PROGRAMS[name], IN_HALF[host][name]
    model = exported(tmp_path / "made", host, name, n, arithmetic="float16")
    assert library.AutoConfig.from_pretrained(tmp_path / "made").dtype == torch.float16
    front, inputs = len(model.embedding.front), [*strings(program, n)]
    for start in range(0, len(inputs), 32):
        block = inputs[start : start + 32]
        found = answered(library, tmp_path / "made", host, block, dtype="float16")
        for x, names in zip(block, found, strict=True):
            read = names[front:] if model.read_out.at == "every" else names[-1:]
            assert read == expected(program, x), x
    card = (tmp_path / "made" / "README.md").read_text()
    assert f"| float16 | {n} | searched |" in card and "Load the checkpoint in\nfloat16" in card
    assert "| float32 | " in card and "| bfloat16 | " in card


@pytest.mark.parametrize(
    ("host", "program", "module", "pins"),
    [
        ("gpt2", "majority", layer_normed, (4.0, -4.0)),
        ("gpt2", "majority", layer_normed, ()),
        ("bert", "parity", bert, (4.0, -4.0)),
        ("bert", "parity", bert, (2.0**15, -(2.0**15))),
        ("bert", "majority", bert, (2.0**12,)),
        ("llama", "equal-abc", llama, (4.0,)),
        ("llama", "majority", llama, ()),
    ],
)
def test_a_wrong_pin_is_found_and_nothing_is_written(
    library, few, tmp_path, monkeypatch, host, program, module, pins
):
    """Pins that are too small or too large, none, or in a layer norm one without its opposite."""
    name = "MEAN_SQUARE_PINS" if host == "llama" else "LAYER_PINS"
    monkeypatch.setattr(module, name, pins)
    with pytest.raises(InvalidValue):
        exported(tmp_path / "made", host, program, IN_HALF[host][program], arithmetic="float16")
    assert not [*tmp_path.iterdir()]


def test_the_command_exports_in_float16_for_the_lengths_that_fit(
    library, few, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    given = ["export", "programs/dyck-1", "--host", "gpt2", "-o", "made", "--arithmetic", "float16"]
    assert main(given) == 2 and "max_length=63 fits" in " ".join(capsys.readouterr().err.split())
    assert main([*given, "--max-length", "63"]) == 0
    assert "gpt2, float16" in capsys.readouterr().out
    model = tf.compile(PROGRAMS["dyck-1"], max_length=9, masks="future", reuse=False)
    with pytest.raises(InvalidValue, match="must be in float32 or float16"):
        tf.export(model, "other", "gpt2", "float64")


@pytest.mark.parametrize("host", HELD)
def test_the_other_programs_are_refused(host, tmp_path):
    for name in sorted({*PROGRAMS} - {*HELD[host]}):
        with pytest.raises(InvalidValue):
            exported(tmp_path / "made", host, name, 16)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("host", DECODERS)
def test_generate_continues_left_padded_texts(library, few, tmp_path, host, attention, cache):
    program, path = PROGRAMS["induction-most-recent"], tmp_path / "made"
    exported(path, host, "induction-most-recent", 40)
    tokenizer = library.AutoTokenizer.from_pretrained(path)
    network = library.AutoModelForCausalLM.from_pretrained(path, attn_implementation=attention)
    given = ["abcab", "b", "cabbacacb", "aab" * 7]
    batch = tokenizer(given, padding=True, return_tensors="pt")
    made = network.generate(**batch, max_new_tokens=12, use_cache=cache)
    for text, row in zip(given, made, strict=True):
        wanted = text
        for _ in range(12):
            wanted += program(wanted)[-1]
        assert tokenizer.decode(row, skip_special_tokens=True) == wanted


@pytest.mark.parametrize("host", ["gpt2", "llama"])
def test_a_text_is_continued_no_further_than_the_weights_go(library, few, tmp_path, host):
    program, path = PROGRAMS["induction-most-recent"], tmp_path / "made"
    exported(path, host, "induction-most-recent", 12)
    ask = library.pipeline("text-generation", model=str(path))
    given = ["abca", "abc" * 4, "cabbacacb"]
    for batch_size in (1, 3):
        for text, (found,) in zip(given, ask(given, batch_size=batch_size), strict=True):
            wanted = text
            while len(wanted) < 13:
                wanted += program(wanted)[-1]
            # Padding counts as length in a batch, so that shorter texts are continued less.
            assert wanted.startswith(found["generated_text"])
            assert len(found["generated_text"]) > len(text)
            assert batch_size > 1 or found["generated_text"] == wanted


@pytest.mark.parametrize("host", ["gpt2", "llama"])
def test_a_pipeline_answers_for_a_text_and_stops(library, few, tmp_path, host):
    exported(tmp_path / "made", host, "dyck-1", 20)
    ask = library.pipeline("text-generation", model=str(tmp_path / "made"))
    given = ["(())", "(()", "", "()" * 10, ")("]
    found = ask(given, return_full_text=False, batch_size=3)
    assert [each["generated_text"] for (each,) in found] == ["yes", "no", "yes", "yes", "no"]


@pytest.mark.parametrize(("host", "name"), [("gpt2", "dyck-1"), ("bert", "majority")])
def test_nothing_asks_a_network(library, few, tmp_path, monkeypatch, host, name):
    """Export, Auto classes and pipeline, without the variables that forbid it to the library."""
    asked = []

    def refused(*address, **_):
        asked.append(address)
        raise OSError("no network")

    for each in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(each, raising=False)
    for place, each in ((socket.socket, "connect"), (socket, "getaddrinfo")):
        monkeypatch.setattr(place, each, refused)
    exported(tmp_path / "made", host, name, 9)
    assert [*answered(library, tmp_path / "made", host, ["()" if host == "gpt2" else "01"])]
    task = "text-generation" if host == "gpt2" else "token-classification"
    ask = library.pipeline(task, model=str(tmp_path / "made"))
    assert ask("()" if host == "gpt2" else "01") and not asked


def test_the_installed_versions_are_those_of_the_extra(library):
    """Another version is beyond the tested range, which pip keeps."""
    from packaging.requirements import Requirement

    path = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(path.read_text())["project"]["optional-dependencies"]
    (wanted,) = [each for each in extras["huggingface"] if each.startswith("transformers")]
    wanted = Requirement(wanted).specifier
    assert library.__version__ in wanted
    assert not any(each in wanted for each in ("4.57.1", "5.22.9", "6.0.0"))


def test_a_pipeline_labels_the_tokens_of_a_text(library, few, tmp_path):
    for name in ("sort", "majority"):
        exported(tmp_path / name, "bert", name, 20)
    ask = library.pipeline("token-classification", model=str(tmp_path / "sort"))
    assert [each["entity"] for each in ask("3 1 4 1")] == ["1", "1", "3", "4"]
    ask = library.pipeline("token-classification", model=str(tmp_path / "majority"))
    assert [found[-1]["entity"] for found in ask(["0110", "01101"])] == ["no", "yes"]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_an_encoder_takes_padding_on_both_sides(library, few, tmp_path, attention, side):
    import torch

    exported(tmp_path / "made", "bert", "reverse", 30)
    tokenizer = library.AutoTokenizer.from_pretrained(tmp_path / "made", padding_side=side)
    network = library.AutoModelForTokenClassification.from_pretrained(
        tmp_path / "made", attn_implementation=attention
    )
    given = ["abc", "a" * 29 + "b", "cab" * 7]
    batch = tokenizer(given, padding=True, return_tensors="pt")
    mask = batch["attention_mask"]
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.inference_mode():
        best = network(**batch, position_ids=places).logits.argmax(-1)
    for text, row, is_token in zip(given, best, mask.bool(), strict=True):
        found = [network.config.id2label[each] for each in row[is_token].tolist()]
        assert "".join(found[1:]) == text[::-1]


def test_the_tokenizer_refuses_other_symbols(library, few, tmp_path):
    exported(tmp_path / "made", "gpt2", "dyck-1", 20)
    tokenizer = library.AutoTokenizer.from_pretrained(tmp_path / "made")
    for text in ("(a)", "( )", "yes"):
        with pytest.raises(Exception, match="Missing"):
            tokenizer(text)


def test_the_tokenizer_of_qwen2_leaves_other_symbols_out(library, few, tmp_path):
    """The page and the card say so; PreTrainedTokenizerFast refuses them."""
    exported(tmp_path / "made", "qwen2", "majority", 9)
    found = library.AutoTokenizer.from_pretrained(tmp_path / "made")
    assert found("0a1")["input_ids"] == found("01")["input_ids"]
    with pytest.raises(Exception, match="Missing"):
        library.PreTrainedTokenizerFast.from_pretrained(tmp_path / "made")("0a1")
    card = " ".join((tmp_path / "made" / "README.md").read_text().split())
    assert "PreTrainedTokenizerFast" in card and "leaves other symbols out" in card
    exported(tmp_path / "other", "llama", "majority", 9)
    assert "PreTrainedTokenizerFast" not in (tmp_path / "other" / "README.md").read_text()


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu-tanh", "gelu-sigmoid"])
@pytest.mark.parametrize(
    ("host", "mask"),
    [("gpt2", "future"), ("opt", "future"), ("gpt-neox", "future"), ("bert", "none")],
)
def test_drawn_models_with_biases_and_other_activations_are_held(
    library, few, tmp_path, host, mask, activation
):
    for seed in (3, 4):
        model = drawn(mask, seed=seed, positions=False, activation=activation)
        tf.export(model, tmp_path / f"{seed}", host, max_length=9)


@pytest.mark.parametrize(("host", "seeds"), [("llama", 6), ("qwen2", 2), ("mistral", 2)])
def test_drawn_models_with_biases_are_held_by_gated_networks(library, few, tmp_path, host, seeds):
    for seed in range(seeds):
        model = drawn("future", seed=seed, positions=False, with_output=seed % 2 == 0)
        tf.export(model, tmp_path / f"{seed}", host, max_length=9)


@pytest.mark.parametrize("host", ["mistral", "qwen2"])
def test_no_class_attends_in_a_window(library, few, tmp_path, host):
    # The default of Mistral is a window of 4096 tokens, which a comparison of short inputs misses.
    exported(tmp_path / "made", host, "majority", 9)
    assert library.AutoConfig.from_pretrained(tmp_path / "made").sliding_window is None


@pytest.mark.parametrize(
    ("host", "module", "name", "value"),
    [
        ("gpt2", layer_normed, "SHRINK", 2.0**-8),
        ("bert", bert, "SHRINK", 2.0**-8),
        ("llama", llama, "SHRINK", 2.0**-8),
        ("llama", llama, "SHARP", 2.0**-4),
        ("llama", llama, "FROZEN", 2.0**9),
    ],
)
def test_a_wrong_constant_is_found_and_nothing_is_written(
    library, few, tmp_path, monkeypatch, host, module, name, value
):
    monkeypatch.setattr(module, name, value)
    with pytest.raises(InvalidValue, match="the exported model must answer"):
        exported(tmp_path / "made", host, "contains-abc", 20)
    assert not [*tmp_path.iterdir()]


def test_a_checkpoint_whose_weights_are_not_all_loaded_is_refused(library, few, tmp_path):
    model = tf.compile(PROGRAMS["majority"], max_length=6, **HOSTS["gpt2"].options)
    files = gpt2.write(model, "float32")
    config = json.loads(files["config.json"])
    files["config.json"] = json.dumps({**config, "n_layer": 2}).encode()
    with pytest.raises(InvalidValue, match="every weight"):
        gpt2.run(files)


def test_the_command_writes_a_directory_and_its_card(library, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ["export", "programs/majority", "--host", "gpt2", "-o", "made", "--max-length", "9"]
    given += ["--license", "apache-2.0"]
    assert main([*given, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    written = {each.name: each for each in Path("made").iterdir()}
    assert written.keys() == CHECKPOINT_FILES
    assert facts["bytes"] == sum(each.stat().st_size for each in written.values())
    assert main(given) == 2 and "--force" in capsys.readouterr().err
    assert main([*given, "--force"]) == 0
    card = " ".join(written["README.md"].read_text().split())
    for said in (
        "Accept strings with more 1s than 0s",
        "`0`, `1`, one character each; at most 9 symbols",
        "the most probable token after the input: `no`, `yes`",
        "| float32 | 9 | certified for every input (grade 1",
        f"{facts['compared']} inputs, at every position that is read, all answers equal: every "
        f"string up to length {facts['every_string_to']}",
        "The certificate in transformers covers the evaluation by GPT2LMHeadModel",
        "license: apache-2.0 tags:",
        "These weights have the licence `apache-2.0`.",
        f"transformers {library.__version__}",
    ):
        assert said in card
    # The example of the card runs as it stands, in the directory.
    monkeypatch.chdir("made")
    (code,) = re.findall(r"```python\n(.*?)```", Path("README.md").read_text(), flags=re.S)
    names = {}
    exec(code, names)
    assert names["ask"]("0111", return_full_text=False)[0]["generated_text"] == "yes"


def test_the_card_says_where_bfloat16_breaks(library, tmp_path):
    """Against the program, in the class loaded in bfloat16."""
    program, path, host = PROGRAMS["induction-most-recent"], tmp_path / "made", "llama"
    exported(path, host, "induction-most-recent", 12)
    card = (path / "README.md").read_text()
    row = r"\| bfloat16 \| (\d+) \| searched \| .* wrong answer at length (\d+) \|"
    (said,) = re.findall(row, card)
    right, failed = map(int, said)
    assert right < failed <= 12
    wrong = set()
    for n in range(1, failed + 1):
        inputs = [*map("".join, itertools.product(program.alphabet, repeat=n))][:512]
        inputs += (x for x in hard(program.alphabet, n) if len(x) == n)
        found = answered(library, path, host, inputs, dtype="bfloat16")
        for x, names in zip(inputs, found, strict=True):
            wanted = expected(program, x)
            if names[-len(wanted) :] != wanted:
                wrong.add(n)
    assert wrong and min(wrong) == failed
    assert "| float16 | none | searched | 0 inputs were right;" in card
    assert "| float64 | none | untried |" in card


def test_the_grades_of_a_card_are_those_of_the_exported_weights(library, few, tmp_path):
    """The model given has the mask none, with which no error bound for GPT-2 exists."""
    model = tf.compile(PROGRAMS["majority"], max_length=16, masks="none", reuse=False)
    tf.export(model, tmp_path / "made", "gpt2")
    with pytest.raises(InvalidValue, match="heads in gpt2 must have mask future"):
        tf.certify(model, host="gpt2")
    held = tf.compile(PROGRAMS["majority"], max_length=16, masks="future", reuse=False)
    assert tf.certify(held, host="gpt2").holds
    facts = json.loads((tmp_path / "made" / "transformist.json").read_text())
    assert (facts["grade"], facts["host_grade"]) == (1, 1)
    card = (tmp_path / "made" / "README.md").read_text()
    assert "| float32 | 16 | certified for every input (grade 1" in card


def test_the_command_that_a_refusal_gives_works_for_a_saved_model(
    library, few, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (pip extra onnx)")
    tf.save(tf.compile(PROGRAMS["reverse"], max_length=6), "saved.safetensors")
    assert main(["export", "saved.safetensors", "--host", "gpt2", "-o", "made"]) == 2
    command = " ".join(capsys.readouterr().err.split()).split("run: transformist ")[1]
    assert main(shlex.split(command)) == 0 and Path("made.onnx").exists()


def test_a_saved_encoder_becomes_a_decoder_by_the_command_of_the_refusal(
    library, few, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for host in ("gpt2", "llama"):
        tf.save(tf.compile(PROGRAMS["contains-abc"], max_length=9, masks="none"), "F")
        assert main(["export", "F", "--host", host, "-o", host]) == 2
        said = " ".join(capsys.readouterr().err.split())
        command = said.split("compile the program anew: transformist ")[1].split("; or ")[0]
        direct = said.split("export its program: transformist ")[1].split("; or ")[0]
        direct = shlex.split(direct.replace("FILE.py:NAME", "programs/contains-abc"))
        assert main([*direct, "--max-length", "9", "--json"]) == 0
        assert Path(host, "config.json").exists()
        shutil.rmtree(host)
        given = shlex.split(command.replace("PROGRAM", "programs/contains-abc"))
        assert main([*given, "--max-length", "9"]) == 0
        assert main(["export", "F", "--host", host, "-o", host]) == 0


@pytest.mark.parametrize("host", ["gpt2", "llama"])
def test_recipes_and_saved_encoders_are_rewritten_from_their_weights(
    library, few, tmp_path, capsys, monkeypatch, host
):
    monkeypatch.chdir(tmp_path)
    for name in ("dyck-1", "dyck-1-nonuniform"):
        tf.export(tf.recipe(name).build(max_length=16), name, host)
        ask = library.pipeline("text-generation", model=name)
        given = ["(())()", "(()", ")(", "()" * 8, "(" * 8 + ")" * 7]
        found = [each["generated_text"] for (each,) in ask(given, return_full_text=False)]
        assert found == ["yes", "no", "no", "yes", "no"]
    tf.save(tf.compile(PROGRAMS["majority"], max_length=9, masks="none"), "saved.safetensors")
    assert main(["export", "saved.safetensors", "--host", host, "-o", "made"]) == 0
    ask = library.pipeline("text-generation", model="made")
    answers = ask(["0111", "0101"], return_full_text=False)
    assert [found["generated_text"] for (found,) in answers] == ["yes", "no"]


SOFTENED = [
    *(
        ("gpt2", name)
        for name in (
            "dyck-1",
            "dyck-k-d",
            "shuffle-dyck-2",
            "induction-most-recent",
            "induction-most-frequent",
            "parity",
            "contains-abc",
        )
    ),
    ("bert", "reverse"),
    ("bert", "parity"),
    ("llama", "parity"),
]


@pytest.mark.parametrize(("host", "name"), SOFTENED)
def test_a_saved_model_of_hard_attention_is_softened(library, few, tmp_path, host, name):
    program, n = PROGRAMS[name], 64
    options = {**HOSTS[host].options, "weighting": "average-hard"}
    tf.save(tf.compile(program, max_length=n, **options), tmp_path / "saved.safetensors")
    model = tf.load(tmp_path / "saved.safetensors")
    assert any(head.weighting == "average-hard" for each in model.layers for head in each.heads)
    tf.export(model, tmp_path / "made", host)
    asked, front = [*strings(program, n)], len(model.embedding.front)
    found = answered(library, tmp_path / "made", host, asked)
    for x, each in zip(asked, found, strict=True):
        read = each[front:] if model.read_out.at == "every" else each[-1:]
        assert read == expected(program, x), x


@pytest.mark.parametrize("name", ["parity", "dyck-1-nonuniform"])
def test_a_recipe_of_hard_attention_is_softened(library, few, tmp_path, name):
    built = tf.recipe(name)
    model = built.build(**({"max_length": 64} if "max_length" in built.parameters else {}))
    tf.export(model, tmp_path / "made", "gpt2", max_length=64)
    asked = [x for n in (0, 1, 2, 9, 10, 11, 12, 64) for x in hard(model.alphabet, n)]
    asked += [x for n in range(8) for x in itertools.product(model.alphabet, repeat=n)]
    found = answered(library, tmp_path / "made", "gpt2", asked)
    for x, each in zip(asked, found, strict=True):
        assert each[-1] == ("yes" if model(x, "exact") else "no"), x


def test_hard_attention_without_a_gap_is_refused_with_a_command_that_works(
    library, few, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (pip extra onnx)")
    assert main(["export", "induction-most-recent", "--host", "gpt2", "-o", "made"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "layer 0 head 0: several scores may be the largest, of which rightmost-hard" in said
    assert not Path("made").exists()
    assert main(shlex.split(said.split("run: transformist ")[1])) == 0
    assert Path("made.onnx").exists()


def test_a_program_that_a_class_cannot_express_is_refused_with_a_command_that_works(
    library, few, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (pip extra onnx)")
    given = ["export", "programs/histogram", "--host", "llama", "-o", "made", "--max-length", "6"]
    assert main(given) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "for llama, the tags of a program that answers after its input must be listed" in said
    assert "masks=" not in said
    assert main(shlex.split(said.split("transformist ")[-1])) == 0 and Path("made.onnx").exists()


def test_the_examples_of_the_page_are_true(library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "huggingface.md"
    text = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S))
    example = doctest.DocTestParser().get_doctest(text, {}, "docs/huggingface.md", None, 0)
    with contextlib.redirect_stderr(None):
        assert doctest.DocTestRunner().run(example).failed == 0 and len(example.examples) > 8


def test_the_command_exports_a_tagger_that_answers_after_its_input(
    library, few, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    given = ["export", "programs/reverse", "--host", "gpt2", "-o", "made", "--max-length", "6"]
    assert main(given) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "answers after its input: N = 13 is 6 symbols, =, and 6 tags, one a step" in said
    ask = library.pipeline("text-generation", model="made")
    found = ask(["abca", "c=", ""], return_full_text=False)
    assert [each["generated_text"] for (each,) in found] == ["=acba", "c", "="]
    card = " ".join(Path("made/README.md").read_text().split())
    assert "after the input and =, one tag a step, then EOS" in card
    assert "goes on, until the answer is `<eos>`" in card
    monkeypatch.chdir("made")
    (code,) = re.findall(r"```python\n(.*?)```", Path("README.md").read_text(), flags=re.S)
    exec(code, {})


@pytest.mark.parametrize(("name", "n"), [("dyck-1", 3), ("induction-most-recent", 8)])
def test_the_example_of_a_card_fits_a_small_n(library, few, tmp_path, monkeypatch, name, n):
    exported(tmp_path / "made", "gpt2", name, n)
    monkeypatch.chdir(tmp_path / "made")
    (code,) = re.findall(r"```python\n(.*?)```", Path("README.md").read_text(), flags=re.S)
    exec(code, {})


def tagger(symbols, labels):
    return tf.Transformer(
        stream=tf.Stream(("first", "second")),
        embedding=tf.Embedding(symbols=symbols, vectors=[[1, 0], [0, 1]]),
        layers=(),
        read_out=tf.MultiClass(labels=labels, W_out=[[1, 0], [0, 1]], b_out=[0, 0], at="every"),
        max_length=4,
    )


def test_the_example_of_a_card_shows_the_label_o(library, few, tmp_path, monkeypatch):
    tf.export(tagger("OX", "OX"), tmp_path / "made", "bert")
    monkeypatch.chdir(tmp_path / "made")
    (code,) = re.findall(r"```python\n(.*?)```", Path("README.md").read_text(), flags=re.S)
    *before, last = code.strip().splitlines()
    names = {}
    exec("\n".join(before), names)
    assert eval(last, names) == ["O", "X", "O", "X"]


def test_a_label_with_the_name_of_a_special_token_is_a_text(library, few, tmp_path):
    tf.export(tagger("ab", ("<pad>", "<eos>")), tmp_path / "made", "gpt2")
    ask = library.pipeline("text-generation", model=str(tmp_path / "made"))
    found = [ask(x, return_full_text=False)[0]["generated_text"] for x in "ab"]
    assert found == ["<pad>", "<eos>"]


@pytest.mark.parametrize(("symbols", "claim"), [(("\ud800", "b"), ""), ("ab", "\ud800")])
def test_half_of_a_surrogate_pair_is_refused(library, few, tmp_path, symbols, claim):
    with pytest.raises(InvalidValue, match="must be Unicode"):
        tf.export(tagger(symbols, (0, 1)), tmp_path / "made", "gpt2", claim=claim)


def test_the_working_directory_is_not_replaced(library, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("majority", "reverse"):
        given = ["export", f"programs/{name}", "--host", "gpt2", "-o", ".", "--max-length", "4"]
        assert main(given) == 2
        assert "must not be or hold the working directory" in " ".join(
            capsys.readouterr().err.split()
        )
