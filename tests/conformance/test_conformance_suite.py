"""The files of a suite: known answers by their definitions, hashes, the same bytes, bad input."""

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys

import pytest
from safetensors import safe_open

from transformist.cli import main
from transformist.conformance import cases, write
from transformist.conformance.suite_files import FAMILIES, read_manifest
from transformist.errors import InvalidValue, UnknownName


def counted(tokens):
    return [str(n) for n in range(1, len(tokens) + 1)]


def marked(tokens):
    place = tokens.index("#") if "#" in tokens else len(tokens)
    return ["none" if n < place else "here" if n == place else "seen" for n in range(len(tokens))]


def in_window(tokens, window):
    found = marked(tokens)
    place = found.index("here") if "here" in found else len(found)
    return ["none" if n - place >= window else each for n, each in enumerate(found)]


def recalled(tokens, is_whole=False):
    """The token after the equal ones so far, "none" without one, and None if there are several."""
    found = []
    for n, token in enumerate(tokens):
        seen = tokens if is_whole else tokens[: n + 1]
        after = {after for before, after in itertools.pairwise(seen) if before == token}
        found.append(None if len(after) > 1 else "".join(after) or "none")
    return found


def ordered(tokens):
    """The next letter among those so far; after other tokens the first; then "=", then "none"."""
    found = []
    for n, token in enumerate(tokens):
        letters = sorted({*"".join(tokens[: n + 1])} - {*".="})
        larger = [each for each in letters if token in ".=" or each > token]
        found.append([*larger, "=" if "=" in tokens[: n + 1] else "none"][0])
    return found


def totals(tokens):
    return [str(len(tokens))] * len(tokens)


def marked_anywhere(tokens):
    others = "seen" if "#" in tokens else "none"
    return ["here" if each == "#" else others for each in tokens]


def recalled_anywhere(tokens):
    return recalled(tokens, is_whole=True)


DEFINITIONS = {
    "count": counted,
    "place": counted,
    "marker": marked,
    "recall": recalled,
    "sort": ordered,
}


IN_ENCODERS = {
    "count": totals,
    "place": counted,
    "marker": marked_anywhere,
    "recall": recalled_anywhere,
}


@pytest.fixture(scope="session", params=FAMILIES)
def suite(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("suites") / request.param
    write(directory, request.param, 32)
    return directory


def texts_of(checkpoint):
    vocabulary = json.loads((checkpoint / "tokenizer.json").read_text())["model"]["vocab"]
    return sorted(vocabulary, key=vocabulary.get)


def labels_of(checkpoint):
    """The texts of the answers: the tokens, or the labels of an encoder."""
    named = json.loads((checkpoint / "config.json").read_text()).get("id2label")
    return [named[str(k)] for k in range(len(named))] if named else texts_of(checkpoint)


def test_the_answers_are_those_of_the_definitions(suite):
    seen, windows = set(), set()
    generates = FAMILIES[suite.name].generates
    definitions = DEFINITIONS if generates else IN_ENCODERS
    for case in cases(suite):
        if case.instrument not in definitions:
            continue
        texts, labels = texts_of(case.checkpoint), labels_of(case.checkpoint)
        tokens = [texts[each] for each in case.ids]
        assert tokens[0] == "<bos>" and "".join(tokens[1 : case.length]) == case.text
        answers = definitions[case.instrument](tokens[1:])
        settings = json.loads((case.checkpoint / "config.json").read_text())
        if case.instrument == "marker" and settings.get("sliding_window"):
            answers = in_window(tokens[1:], settings["sliding_window"])
            windows.add(settings["sliding_window"])
        assert [labels[each] for each in case.expected] == [answers[at - 1] for at in case.reads]
        if case.instrument == "recall":
            assert [*case.reads] == [at for at in range(1, len(tokens)) if answers[at - 1]]
        assert case.reads[-1] == len(case.ids) - 1 <= 31
        assert case.ids[case.length :] == case.generated[:-1]
        # An encoder sees the whole text: every position after BOS is read.
        assert generates or [*case.reads] == [*range(1, case.length)] == [*range(1, len(case.ids))]
        seen.add(case.instrument)
    assert seen >= {"count", "marker", "recall", "sort" if generates else "place"}
    assert windows == ({11} if suite.name == "mistral" else set())


def test_no_checkpoint_has_a_feature_that_the_page_says_none_has(suite):
    layout = set()
    for checkpoint in sorted({case.checkpoint for case in cases(suite)}):
        config = json.loads((checkpoint / "config.json").read_text())
        assert config["tie_word_embeddings"] is False
        assert not {"quantization_config", "layer_types", "rope_scaling"} & {*config}
        assert not [key for key in config if "softcap" in key or "sink" in key or "alibi" in key]
        rope = config.get("rope_parameters", {})
        assert rope.get("rope_type", "default") == "default"
        assert "partial_rotary_factor" not in {*config, *rope}
        with safe_open(checkpoint / "model.safetensors", "numpy") as file:
            names = [*file.keys()]
            assert {file.get_slice(name).get_dtype() for name in names} == {"F32"}
        assert not [name for name in names if "q_norm" in name or "k_norm" in name]
        if "num_key_value_heads" in config:
            shape = config["num_attention_heads"], config["num_key_value_heads"]
            assert shape[0] == shape[1] or shape[1] > 1
            if checkpoint.name == "heads":
                layout.add(shape)
    assert layout == (set() if suite.name in ("gpt2", "bert") else {(4, 2)})


def test_the_manifest_has_the_hash_of_every_file(suite):
    manifest = json.loads((suite / "manifest.json").read_text())
    listed = {
        suite / entry["directory"] / name: digest
        for entry in manifest["instruments"]
        for name, digest in entry["sha256"].items()
    }
    found = {path for path in suite.rglob("*") if path.is_file() and path.parent != suite}
    assert set(listed) == found
    for path, digest in listed.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


def test_the_schema_names_every_key(suite):
    schema = json.loads((suite / "manifest.schema.json").read_text())
    manifest = json.loads((suite / "manifest.json").read_text())
    entry = schema["properties"]["instruments"]["items"]
    assert schema["required"] == [*manifest]
    for each in manifest["instruments"]:
        assert entry["required"] == [*each]
        lines = (suite / each["directory"] / "prompts.jsonl").read_text().splitlines()
        assert lines and all(
            schema["$defs"]["prompt"]["required"] == [*json.loads(line)] for line in lines
        )


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(suite, tmp_path):
    family = suite.name
    code = f"from transformist.conformance import write; write('again', {family!r}, 32)"
    # Kernels of an old processor add up in another order, and no byte may depend on it.
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "12345",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OPENBLAS_CORETYPE": "Nehalem",
    }
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    own = {each.relative_to(suite) for each in suite.rglob("*")}
    again = tmp_path / "again"
    assert own == {each.relative_to(again) for each in again.rglob("*")}
    for each in own:
        assert (suite / each).is_dir() or (suite / each).read_bytes() == (again / each).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_suite_of_the_usual_length_has_at_most_ten_megabytes(family, tmp_path):
    write(tmp_path / "s", family)
    sizes = [each.stat().st_size for each in (tmp_path / "s").rglob("*") if each.is_file()]
    assert 10**6 < sum(sizes) < 10**7


def test_a_changed_file_and_another_version_are_refused(suite, tmp_path):
    shutil.copytree(suite, tmp_path / "s")
    config = tmp_path / "s" / "count" / "config.json"
    original = config.read_bytes()
    config.write_bytes(original + b" ")
    with pytest.raises(InvalidValue, match=r"count.config\.json"):
        cases(tmp_path / "s")
    config.write_bytes(original)
    manifest = tmp_path / "s" / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"transformist": "', '"transformist": "9.'))
    with pytest.raises(InvalidValue, match="of version 9."):
        read_manifest(tmp_path / "s")
    for broken in ("", "[]", "{}", '{"transformist": "0", "instruments": [1]}'):
        manifest.write_text(broken)
        with pytest.raises(InvalidValue, match="a suite must be a directory"):
            read_manifest(tmp_path / "s")


def test_other_families_and_lengths_are_refused(tmp_path, capsys):
    with pytest.raises(UnknownName, match="family"):
        write(tmp_path / "s", "gpt3")
    for length in (31, 4097, 64.5, True):
        with pytest.raises(InvalidValue, match=r"from 32 to 4096|whole number"):
            write(tmp_path / "s", "gpt2", length)
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["conformance", "write", str(tmp_path)]) == 2
    assert main(["conformance", "wriet", str(tmp_path / "s")]) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]
    assert "write" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_says_what_it_wrote(tmp_path, capsys):
    target = tmp_path / "s"
    assert main(["conformance", "write", str(target), "--length", "32", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["prompts"] == len(cases(target)) and facts["family"] == "gpt2"
    assert facts["bytes"] == sum(
        each.stat().st_size for each in target.rglob("*") if each.is_file()
    )
