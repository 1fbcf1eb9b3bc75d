"""The files of a suite: known answers by their definitions, hashes, the same bytes, bad input."""

import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from transformist.cli import main
from transformist.conformance import cases, write
from transformist.conformance.suite_files import FAMILIES, read_manifest
from transformist.errors import InvalidValue, UnknownName


def counted(tokens):
    return [str(n) for n in range(1, len(tokens) + 1)]


def marked(tokens):
    place = tokens.index("#") if "#" in tokens else len(tokens)
    return ["none" if n < place else "here" if n == place else "seen" for n in range(len(tokens))]


def recalled(tokens):
    found = []
    for n, token in enumerate(tokens):
        earlier = [m for m in range(1, n + 1) if tokens[m - 1] == token]
        found.append(tokens[earlier[-1]] if earlier else token)
    return found


def ordered(tokens):
    numbers, after = tokens[: tokens.index("=")], tokens[tokens.index("=") :]
    assert after[1:] == sorted(numbers)[: len(after) - 1]
    return ["="] * len(numbers) + [*sorted(numbers), "="][: len(after)]


DEFINITIONS = {
    "count": counted,
    "place": counted,
    "marker": marked,
    "recall": recalled,
    "sort": ordered,
}


@pytest.fixture(scope="session", params=FAMILIES)
def suite(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("suites") / request.param
    write(directory, request.param, 32)
    return directory


def texts_of(checkpoint):
    vocabulary = json.loads((checkpoint / "tokenizer.json").read_text())["model"]["vocab"]
    return sorted(vocabulary, key=vocabulary.get)


def test_the_answers_are_those_of_the_definitions(suite):
    seen = set()
    for case in cases(suite):
        if case.instrument not in DEFINITIONS:
            continue
        texts = texts_of(case.checkpoint)
        tokens = [texts[each] for each in case.ids]
        assert tokens[0] == "<bos>" and "".join(tokens[1 : case.length]) == case.text
        answers = DEFINITIONS[case.instrument](tokens[1:])
        assert [texts[each] for each in case.expected] == [answers[at - 1] for at in case.reads]
        assert case.reads[-1] == len(case.ids) - 1 <= 31
        assert case.ids[case.length :] == case.generated[:-1]
        seen.add(case.instrument)
    assert seen >= {"count", "marker", "recall", "sort"}


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
    environment = os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    own = {each.relative_to(suite) for each in suite.rglob("*")}
    again = tmp_path / "again"
    assert own == {each.relative_to(again) for each in again.rglob("*")}
    for each in own:
        assert (suite / each).is_dir() or (suite / each).read_bytes() == (again / each).read_bytes()


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
    for length in (31, 257, 64.5, True):
        with pytest.raises(InvalidValue, match=r"from 32 to 256|whole number"):
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
