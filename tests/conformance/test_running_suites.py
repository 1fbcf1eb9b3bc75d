"""Suites given to engines: right ones, planted bugs, engines that fail, and bad requests."""

import itertools
import json
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from eager_engines import GPT2
from judging import MODES as JUDGED
from opened_engines import Opened, opening
from planted_bugs import BUGS

from transformist.cli import main
from transformist.conformance import cases, run, suite_files, write
from transformist.conformance.engine_table import ENGINES
from transformist.conformance.faults import FAULTS
from transformist.conformance.judgement import Judgement, Judgements, WrongToken
from transformist.conformance.modes import EVERY_MODE, MODES, OF_ENCODERS
from transformist.errors import InvalidValue, UnknownName

PLANTED = {bug.id: bug.engine for bug in BUGS}
NAMES = ("marker", "norm")


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A suite of two instruments: a compiled program, and a network that names a formula."""
    directory = tmp_path_factory.mktemp("two") / "suite"
    with pytest.MonkeyPatch.context() as patch:
        two = {name: suite_files.INSTRUMENTS[name] for name in NAMES}
        patch.setattr(suite_files, "INSTRUMENTS", two)
        write(directory, "gpt2", 32)
    return directory


def test_a_right_engine_has_a_row_for_each_instrument_and_mode(suite):
    right = run(opening(GPT2), suite)
    assert {*MODES} == {*JUDGED}
    assert right.is_right and (right.wrong, right.not_run, right.evidence()) == (0, 0, [])
    reads, generated = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    for name in NAMES:
        for line in (suite / name / "prompts.jsonl").read_text().splitlines():
            prompt = json.loads(line)
            reads[name] += len(prompt["reads"])
            generated[name] += len(prompt["ids"]) - prompt["length"] + 1
    wanted = [
        (name, mode, generated[name] if mode == "generation" else reads[name])
        for name in NAMES
        for mode in MODES
    ]
    assert [(each.name, each.mode, each.positions) for each in right.rows()] == wanted


def test_a_planted_bug_gets_the_name_that_its_tokens_have(suite):
    found = run(opening(PLANTED["gpt2-final-norm-left-out"]), suite)
    first = found.evidence()[0]
    assert not found.is_right
    assert (first.instrument, first.mistakes) == ("norm", ("the final norm is missing",))
    assert (first.wrong, first.answers, first.right_in) == (24, 24, ())
    assert "24 of 24 answers are wrong" in str(first)
    assert "every answer means: the final norm is missing" in str(first)


def test_the_modes_tell_padding_from_the_rest(suite):
    found = run(opening(PLANTED["gpt2-positions-count-padding"]), suite)
    (norm,) = (each for each in found.evidence() if each.instrument == "norm")
    assert norm.modes == ("left-padded", "decoding")
    assert norm.right_in == ("alone", "right-padded", "chunks", "generation")
    # The longest prompt has no padding, and is right: no mistake explains every answer.
    assert norm.wrong < norm.answers and norm.mistakes == ()


def test_a_mistake_is_named_only_if_it_explains_every_answer(suite):
    wrong = {"1": "b is lost or c is lost", "2": "b is lost", "3": "a, or d", "*": "all else"}
    two = [each for each in cases(suite) if each.instrument == "norm"][:2]

    def evidence(*tokens, not_run=0):
        every = []
        for case, token in zip(two, tokens, strict=True):
            own = replace(case, wrong=wrong)
            made = WrongToken(case=own, position=0, expected=0, got=token, texts=["0"])
            every.append(
                Judgement(
                    case=own,
                    mode="alone",
                    positions=1 + not_run,
                    wrong=(made,) if token else (),
                    not_run=not_run,
                )
            )
        return Judgements(family="gpt2", every=tuple(every)).evidence()[0]

    assert evidence(1, 1).mistakes == ("b is lost", "c is lost")
    assert evidence(1, 2).mistakes == ("b is lost",)
    assert evidence(3, 3).mistakes == ("a, or d",)  # the "or" of a sentence
    # A right answer, another mistake, a token without a meaning of its own, an answer left out.
    for tokens in ((1, 0), (2, 3), (2, 9), (9, 9)):
        assert evidence(*tokens).mistakes == ()
    assert evidence(1, 1, not_run=1).mistakes == ()
    assert "1 of these mean: b is lost; 1 of these mean: all else" in str(evidence(2, 9))


def test_a_function_alone_is_run_by_generation(suite):
    found = run(lambda checkpoint: Opened(GPT2.read(checkpoint)).run, suite)
    assert found.is_right and {each.mode for each in found.rows()} == {"generation"}


def raising(ids, count):
    raise RuntimeError("no kernel for\n this shape")


def raising_within_a_stream(ids, count):
    yield 0
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (raising, "RuntimeError: no kernel for this shape"),
        (raising_within_a_stream, "RuntimeError: out of memory"),
        (lambda ids, count: itertools.repeat(0), "or more"),
        (lambda ids, count: 0, "a list of token ids; it gave a int"),
        (lambda ids, count: [], "stopped after 0 of 1 tokens"),
        (lambda ids, count: [*ids, *[0] * count], "without the prompt"),
        (lambda ids, count: [0] * (count + 1), "at most 1 tokens; it gave 2"),
        (lambda ids, count: None, "a list of token ids; it gave a NoneType"),
        (lambda ids, count: "a", "a list of token ids; it gave a str"),
        (lambda ids, count: [float("inf")] * count, "a list of token ids; it gave a list"),
        (lambda ids, count: [0.5] * count, "a list of token ids; it gave a list"),
    ],
)
def test_what_an_engine_does_not_answer_is_not_run(suite, answer, words):
    found = run(lambda checkpoint: answer, suite)
    rows = found.rows()
    assert not found.is_right and found.wrong == 0
    assert [each.not_run for each in rows] == [each.positions for each in rows]
    assert all(words in each.reason for each in rows), rows


def test_a_token_beyond_the_vocabulary_is_wrong(suite):
    found = run(lambda checkpoint: lambda ids, count: [10**6], suite)
    assert found.wrong == sum(each.positions for each in found.rows()) and found.not_run == 0
    assert "token 1000000 in place of +0.00000" in str(found.evidence()[-1])


def test_an_engine_that_fails_in_a_mode_goes_on_in_the_others(suite):
    class Fails(Opened):
        def next_tokens(self, ids, mask, ends):
            if len(ids) == 1:
                found = super().next_tokens(ids, mask, ends)
                ids[:] = mask[:] = 0  # the arrays are the engine's own
                return found
            if len(ends) > 1:
                return super().next_tokens(ids, mask, ends)[:, 1:]
            raise ValueError("one row at a time")

    found = run(lambda checkpoint: Fails(GPT2.read(checkpoint)), suite)
    reasons = {each.mode: each.reason for each in found.rows() if each.not_run}
    assert not found.is_right and found.wrong == 0
    assert {*reasons} == {"left-padded", "right-padded", "chunks", "decoding"}
    assert reasons["left-padded"] == "ValueError: one row at a time"
    assert reasons["chunks"].startswith("next_tokens must return whole numbers of shape (")


def test_a_checkpoint_that_does_not_open_is_not_run_and_the_next_is(suite):
    def opened(checkpoint):
        if checkpoint.name == "marker":
            raise NotImplementedError("no such family")
        return Opened(GPT2.read(checkpoint))

    found = run(opened, suite)
    first, *others = found.rows()
    assert not found.is_right
    assert first.not_run == first.positions > 0
    assert first.reason == "NotImplementedError: no such family"
    assert len(others) == len(MODES) and not any(each.not_run for each in others)


def test_other_requests_are_refused(suite):
    for engine in (None, GPT2.read(suite / "norm")):
        with pytest.raises(InvalidValue, match="an engine must be a function"):
            run(engine, suite)
    with pytest.raises(InvalidValue, match="such an object"):
        run(lambda checkpoint: 3, suite)
    with pytest.raises(InvalidValue, match="next_tokens"):
        run(lambda checkpoint: raising, suite, mode="alone")
    with pytest.raises(UnknownName, match="mode"):
        run(opening(GPT2), suite, mode="alnoe")
    with pytest.raises(InvalidValue, match="the family must be that of the suite"):
        run(opening(GPT2), suite, family="llama")


# The command


def command(*given):
    return main(["conformance", "run", *map(str, given)])


def test_the_command_prints_json_and_junit(suite, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(ENGINES, "eager", lambda: opening(GPT2))
    monkeypatch.setitem(ENGINES, "buggy", lambda: opening(PLANTED["gpt2-final-norm-left-out"]))
    report = tmp_path / "report.xml"
    assert command(suite, "--engine", "eager", "--json", "--junit", report) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {*facts} >= {"engine", "family", "mode", "instruments", "diagnosis"}
    assert (facts["family"], facts["mode"]) == ("gpt2", "all")
    assert facts["diagnosis"] == facts["wrong"] == []
    root = ElementTree.parse(report).getroot()
    assert root.attrib["tests"] == str(len(cases(suite)) * len(MODES))
    assert (root.attrib["failures"], root.attrib["errors"]) == ("0", "0")

    assert command(suite, "--engine", "eager", "--instrument", "norm", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert {each["name"] for each in facts["instruments"]} == {"norm"}
    assert command(suite, "--engine", "eager", "--instrument", "nrm") == 2
    assert "no instrument has this name; received 'nrm'" in capsys.readouterr().err

    arguments = suite, "--engine", "buggy", "--mode", "alone"
    assert command(*arguments, "--json", "--junit", report) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["mode"] == "alone"
    rows = {each["name"]: each for each in facts["instruments"]}
    assert {"name", "positions", "wrong", "not_run"} <= {*rows["norm"]}
    assert (rows["norm"]["positions"], rows["norm"]["wrong"], rows["norm"]["not_run"]) == (4, 4, 0)
    assert facts["wrong"][0]["mistake"] == "the final norm is missing"
    assert "4 of 4 answers are wrong in alone" in facts["wrong"][0]["evidence"]
    assert [each["class"] for each in facts["diagnosis"]] == ["norms"]
    assert facts["diagnosis"][0]["evidence"].startswith("the final norm is missing: ")
    failures = ElementTree.parse(report).getroot().findall(".//failure")
    assert len(failures) >= 4 and "the final norm is missing" in failures[-1].text
    (said,) = ElementTree.parse(report).getroot().findall(".//property")
    assert (
        said.attrib["name"] == "diagnosis" and "the final norm is missing" in said.attrib["value"]
    )

    assert command(*arguments) == 1
    text = capsys.readouterr().out
    assert "norm" in text and "every answer means: the final norm is missing" in text
    assert f"diagnosis: norms ({FAULTS['norms']})" in text


def test_the_command_says_what_did_not_run(suite, tmp_path, monkeypatch, capsys):
    def refusing(checkpoint):
        raise OSError("unknown\x1b model type")

    monkeypatch.setitem(ENGINES, "none", lambda: refusing)
    report = tmp_path / "report.xml"
    assert command(suite, "--engine", "none", "--junit", report) == 3
    *_, total, of_marker, of_norm, last = capsys.readouterr().out.splitlines()
    assert ", 0 wrong, " in total and of_marker.startswith("not run: ")
    assert of_norm == "not run: 4 answers of norm in opening: OSError: unknown\\x1b model type"
    assert last == "no answer is wrong; the exit code is 3, since some did not run"
    root = ElementTree.parse(report).getroot()
    assert root.attrib["errors"] == root.attrib["tests"] == str(len(cases(suite)))
    assert len(root.findall(".//error")) == len(cases(suite))


def test_the_command_refuses_what_it_cannot_do(suite, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    refused = [
        ((suite,), "run must have an engine"),
        ((suite, "--engine", "vlm"), "no engine has this name"),
        ((suite, "--engine", "transformers"), "pip install 'transformist[huggingface]'"),
        ((suite, "--engine", "transformers", "--length", "32"), "--length must come without DIR"),
        (("--engine", "transformers", "--length", "-5"), "--length must be a whole number from 32"),
        (("--engine", "transformers", "--length", "abc"), "to 4096; received 'abc'"),
        ((suite, "--engine", "transformers", "--junit", tmp_path), "--junit must be a file"),
        ((suite, "--engine", "transformers", "--junit", tmp_path / "a" / "b"), "--junit must be"),
    ]
    for arguments, words in refused:
        assert command(*arguments) == 2
        assert words in capsys.readouterr().err
    assert main(["conformance", "write", str(tmp_path / "s"), "--engine", "transformers"]) == 2
    assert "--engine must come with run" in capsys.readouterr().err
    assert main(["conformance", "write"]) == 2
    assert "write must have the directory" in capsys.readouterr().err


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize("family", suite_files.FAMILIES)
@pytest.mark.parametrize("engine", ["transformers", "transformers-eager"])
def test_transformers_is_right_in_every_mode(family, engine, capsys):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    arguments = "--family", family, "--length", "32", "--engine", engine, "--json"
    code = command(*arguments)
    facts = json.loads(capsys.readouterr().out)
    modes = EVERY_MODE if suite_files.FAMILIES[family].generates else OF_ENCODERS
    assert {each["mode"] for each in facts["instruments"]} == {*modes}
    assert all(each["wrong"] == 0 for each in facts["instruments"])
    # Prompt lookup reads the table of positions beyond its end: `docs/conformance.md` shows it.
    failed = [(each["name"], each["mode"]) for each in facts["instruments"] if each["not_run"]]
    assert failed == ([("sort", "prompt-lookup")] if family == "gpt2" else [])
    reasons = [each["reason"] for each in facts["instruments"] if each["not_run"]]
    assert all("beyond the 32 positions of the table" in each for each in reasons)
    assert code == (3 if failed else 0)


def rows(found):
    """The instruments and modes with wrong answers, and those with answers that did not run."""
    every = found.rows()
    wrong = {(each.name, each.mode) for each in every if each.wrong}
    return wrong, [(each.name, each.mode, each.reason) for each in every if each.not_run]


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2"])
def test_ctranslate2_ignores_eps_of_gpt2_and_is_right_elsewhere(family):
    for library in ("ctranslate2", "torch", "transformers"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    found = run(ENGINES["ctranslate2"](), family=family, length=32)
    wrong, not_run = rows(found)
    modes = ("alone", "right-padded", "generation", "beams")
    assert {each.mode for each in found.rows()} == {*modes} and not not_run
    assert wrong == ({("norm", mode) for mode in modes} if family == "gpt2" else set())
    if wrong:
        (named,) = found.diagnosis
        assert named.fault == "norms"
        assert named.evidence.startswith("eps is 1e-05, not the value in the file: 4 of 4 answers")


@pytest.mark.hosts
@pytest.mark.slow
def test_ctranslate2_runs_no_prompt_beyond_the_window_of_mistral():
    """It ends with an error of its own, and generates two wrong tokens of `heads`."""
    for library in ("ctranslate2", "torch", "transformers"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    wrong, not_run = rows(run(ENGINES["ctranslate2"](), family="mistral", length=32))
    assert wrong == {("heads", "generation"), ("heads", "beams")}
    assert {name for name, _, _ in not_run} == {"marker", "heads"}
    assert all("buffer to copy" in reason for _, _, reason in not_run)


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "instrument"), [("gpt2", "recall"), ("llama", "heads"), ("bert", "heads")]
)
def test_onnxruntime_is_right(family, instrument):
    # An export takes seconds: `docs/conformance.md` has the results of all instruments.
    for library in ("onnxruntime", "onnxscript", "torch", "transformers"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    found = run(ENGINES["onnxruntime"](), family=family, length=32, instrument=instrument)
    assert found.is_right, rows(found)
    modes = {*OF_ENCODERS, *(["generation"] if suite_files.FAMILIES[family].generates else [])}
    assert {each.mode for each in found.rows()} == modes
