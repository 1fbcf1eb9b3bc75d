"""Checkpoints in the real classes of transformers: the answers of programs, left-padded, offline.

The answers are compared with those of the program's interpreter, which knows no weights.
"""

import contextlib
import doctest
import json
import random
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from drawn_models import drawn

import transformist as tf
from transformist.cli import main
from transformist.errors import InvalidValue
from transformist.hosts import bert, gpt2, host_comparison, layer_normed, llama
from transformist.hosts.host import CHECKPOINT_FILES, HOSTS
from transformist.hosts.vocabulary import text_of
from transformist.programs import PROGRAMS

pytestmark = [pytest.mark.hosts, pytest.mark.slow]

IN_DECODERS = (
    "dyck-1",
    "dyck-k-d",
    "shuffle-dyck-2",
    "induction-most-recent",
    "induction-most-frequent",
    "majority",
    "parity",
    "equal-abc",
    "contains-abc",
)

IN_ENCODERS = (
    "histogram",
    "double-histogram",
    "most-frequent-token",
    "majority",
    "parity",
    "reverse",
    "palindrome",
    "sort",
    "equal-abc",
    "contains-abc",
    "binary-increment",
)

DECODERS = ("gpt2", "llama", "qwen2", "mistral", "opt", "gpt-neox")

HELD = {**dict.fromkeys(DECODERS, IN_DECODERS), "bert": IN_ENCODERS}
"""The programs that each host holds."""

# 255 is the largest N of dyck-k-d in float32. The other classes differ from GPT-2 or Llama in the
# names and the layout of their weights: some programs at one N show these.
CASES = [
    *(
        (host, name, n)
        for host in ("gpt2", "bert", "llama")
        for name in HELD[host]
        for n in (64, 255)
    ),
    *(
        (host, name, 64)
        for host in ("qwen2", "mistral", "opt", "gpt-neox")
        for name in ("dyck-k-d", "induction-most-recent", "majority", "parity", "contains-abc")
    ),
]


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


def exported(directory, host, name, n, **options):
    model = tf.compile(PROGRAMS[name], max_length=n, **HOSTS[host].options, **options)
    tf.export(model, directory, host, claim=PROGRAMS[name].description)
    return model


def hard(alphabet, n, drawn=4):
    """Strings of length n: one symbol, two halves, one odd symbol at each end, in turn, drawn."""
    source, first, last = random.Random(n), alphabet[0], alphabet[-1]
    yield from ([each] * n for each in alphabet)
    yield [first] * (n // 2) + [last] * (n - n // 2)
    yield [first] + [last] * (n - 1)
    yield [last] * (n - 1) + [first]
    yield [alphabet[k % len(alphabet)] for k in range(n)]
    for _ in range(drawn):
        yield source.choices(alphabet, k=n)
    # Deep in the string the program is decided late: a run of the first half, mirrored.
    half = source.choices(alphabet, k=n // 2)
    yield [*half, *reversed(half)]


def strings(program, n):
    for length in sorted({1, 3, n // 2, n - 1, n}):
        yield from hard(program.alphabet, length, drawn=2 + 2 * (length == n))


def texts(inputs):
    """The text of each input as the card describes it."""
    return [
        ("" if all(len(str(each)) == 1 and isinstance(each, str) for each in x) else " ").join(
            map(str, x)
        )
        for x in inputs
    ]


def expected(program, x):
    """The text of the answer, or of the answers at every position."""
    answer = program(x)
    return [text_of(each) for each in answer] if np.ndim(answer) or isinstance(answer, str) else [
        text_of(answer)
    ]  # fmt: skip


def answered(library, directory, host, inputs):
    """The texts of the answers at every position of a batch padded by the tokenizer."""
    import torch

    causal = host != "bert"
    auto = library.AutoModelForCausalLM if causal else library.AutoModelForTokenClassification
    tokenizer = library.AutoTokenizer.from_pretrained(directory)
    network = auto.from_pretrained(directory).eval()
    batch = tokenizer(texts(inputs), padding=True, return_tensors="pt")
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


def test_a_program_that_a_class_cannot_express_is_refused_with_a_command_that_works(
    library, few, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (pip extra onnx)")
    given = ["export", "programs/reverse", "--host", "llama", "-o", "made", "--max-length", "6"]
    assert main(given) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "for llama, every head of a causal decoder must have the mask future" in said
    assert main(shlex.split(said.split("transformist ")[-1])) == 0 and Path("made.onnx").exists()


def test_the_examples_of_the_page_are_true(library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "huggingface.md"
    text = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S))
    example = doctest.DocTestParser().get_doctest(text, {}, "docs/huggingface.md", None, 0)
    with contextlib.redirect_stderr(None):
        assert doctest.DocTestRunner().run(example).failed == 0 and len(example.examples) > 8


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
