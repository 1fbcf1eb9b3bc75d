"""Servers of the completions API: right ones, faults of servers, and bad requests."""

import json
import socket

import numpy as np
import pytest
from completions_server import Right, serving, vocabulary
from eager_engines import ENGINES
from planted_bugs import BUGS

from transformist.cli import main
from transformist.conformance import cases, suite_files, write
from transformist.conformance.openai_engine import server
from transformist.conformance.segmentation import NotTokens, segmented
from transformist.errors import InvalidValue

NAMES = ("marker", "recall", "norm")
PLANTED = {bug.id: bug.engine for bug in BUGS}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """A suite of three instruments; `recall` generates several tokens."""
    directory = tmp_path_factory.mktemp("three") / "suite"
    with pytest.MonkeyPatch.context() as patch:
        three = {name: suite_files.INSTRUMENTS[name] for name in NAMES}
        patch.setattr(suite_files, "INSTRUMENTS", three)
        write(directory, "gpt2", 32)
    return directory


def engines(suite, names=NAMES, kind=ENGINES["gpt2"]):
    return {name: (kind.read(suite / name), vocabulary(suite / name)) for name in names}


def command(capsys, suite, url, *more):
    """The exit code and the JSON of a run."""
    code = main(["conformance", "run", str(suite), "--openai", url, "--json", *map(str, more)])
    return code, json.loads(capsys.readouterr().out)


def known(suite):
    return sum(len(each.generated) for each in cases(suite))


def test_a_right_server_is_right(suite, capsys):
    answers = Right(engines(suite))
    with serving(answers) as url:
        code, facts = command(capsys, suite, url)
    assert (code, facts["held"], facts["engine"]) == (0, True, "openai")
    assert {each["name"] for each in facts["instruments"]} == {*NAMES}
    assert {each["mode"] for each in facts["instruments"]} == {"generation"}
    assert sum(each["positions"] for each in facts["instruments"]) == known(suite)
    assert facts["notes"] == facts["wrong"] == facts["diagnosis"] == []
    wanted = [(each.instrument, [*each.prompt], len(each.generated)) for each in cases(suite)]
    given = [(each["model"], each["prompt"], each["max_tokens"]) for each in answers.bodies]
    assert given == wanted
    assert all((each["temperature"], each["stream"]) == (0, False) for each in answers.bodies)


def test_the_model_names_the_one_instrument(suite, capsys):
    answers = Right({"served/recall": engines(suite)["recall"]})
    with serving(answers) as url:
        code, facts = command(capsys, suite, url, "--model", "served/recall")
        assert code == 0 and {each["name"] for each in facts["instruments"]} == {"recall"}
        # Without --model, a checkpoint that the server has not is not run.
        code, facts = command(capsys, suite, url)
    reasons = {each["name"]: each["reason"] for each in facts["instruments"]}
    assert code == 3 and facts["wrong"] == [] and reasons["recall"] == ""
    assert "has no model 'marker'; it has served/recall" in reasons["marker"]


def test_a_wrong_server_is_wrong(suite, capsys):
    answers = Right(engines(suite, kind=PLANTED["gpt2-final-norm-left-out"]))
    with serving(answers) as url:
        code, facts = command(capsys, suite, url)
    assert code == 1 and not any(each["not_run"] for each in facts["instruments"])
    assert "norms" in [each["class"] for each in facts["diagnosis"]]


class RefusesLater(Right):
    """A server that fails after its first answer, for ids as a server that refuses them."""

    def completed(self, body):
        if len(self.bodies) and isinstance(body["prompt"], list):
            return 500, {"error": {"message": "out of memory"}}
        return super().completed(body)


def test_a_server_that_took_ids_once_does_not_get_text(suite, capsys):
    answers = RefusesLater(engines(suite, names=["marker"]))
    with serving(answers) as url:
        _, facts = command(capsys, suite, url, "--model", "marker")
    (row,) = facts["instruments"]
    assert row["not_run"] == row["positions"] - 1
    assert row["reason"].endswith("POST /v1/completions: status 500: out of memory")
    assert facts["notes"] == [] and len(answers.bodies) == 1


@pytest.mark.parametrize("status", [400, 422, 500])
def test_text_is_given_where_ids_are_refused(suite, capsys, status):
    answers = Right(engines(suite))
    answers.takes_ids, answers.refusal = False, status
    with serving(answers) as url:
        code, facts = command(capsys, suite, url)
    assert code == 0
    assert len(facts["notes"]) == len(NAMES)
    assert (
        f"as text, since ids are refused: POST /v1/completions: status {status}: prompt must be"
        in (facts["notes"][0])
    )
    # Each checkpoint is asked by ids once.
    assert sum(isinstance(each["prompt"], list) for each in answers.bodies) == len(NAMES)


class Clamped(ENGINES["gpt2"]):
    """An engine that takes one token more than it has positions for."""

    def places(self, mask, past):
        return np.minimum(super().places(mask, past), self.config["n_positions"] - 1)


@pytest.mark.parametrize("takes_ids", [True, False])
def test_a_doubled_bos_is_named(suite, tmp_path, capsys, takes_ids):
    class Doubled(Right):
        def ids(self, prompt, texts, config):
            return [config["bos_token_id"], *super().ids(prompt, texts, config)]

    answers = Doubled(engines(suite, kind=Clamped))
    answers.takes_ids = takes_ids
    with serving(answers) as url:
        code, facts = command(capsys, suite, url)
        more = "--openai", url, "--junit", str(tmp_path / "report.xml")
        assert main(["conformance", "run", str(suite), *more]) == 1
    assert code == 1
    assert (tmp_path / "report.xml").read_text("utf-8").count("BOS stands twice (") == len(NAMES)
    assert sum("BOS stands twice" in each for each in facts["notes"]) == len(NAMES)
    assert "note: norm: the server adds a token to every prompt" in capsys.readouterr().out


class Status(Right):
    def completed(self, body):
        return 500, {"error": {"message": "out of memory"}}


class NoJson(Right):
    def completed(self, body):
        return 200, b"<html>"


class ErrorAfterTwo(Right):
    def completed(self, body):
        status, made = super().completed(body)
        return (200, {"error": "the engine died"}) if len(self.bodies) > 2 else (status, made)


class Streams(Right):
    def completed(self, body):
        return 200, b'data: {"choices": [{"text": "a"}]}\n\n', "text/event-stream"


class Breaks(Right):
    def completed(self, body):
        return 200, b'{"choices": [', "application/json", {"Content-Length": "500"}.items()


class OtherText(Right):
    def text(self, tokens, texts):
        return "\N{SNOWMAN}"


class Stops(Right):
    def text(self, tokens, texts):
        return super().text(tokens[:-1], texts)


class NoChoices(Right):
    def completed(self, body):
        return 200, {"choices": []}


FAULTS = {
    Status: "POST /v1/completions: status 500: out of memory",
    NoJson: "the answer is no JSON object: b'<html>'",
    ErrorAfterTwo: "status 200: the engine died",
    Streams: "the server streams, though `stream` is false",
    Breaks: "POST /v1/completions: the answer breaks off after 13 bytes",
    OtherText: "is not that of 1 tokens of the vocabulary",
    Stops: "the engine stopped after 0 of 1 tokens",
    NoChoices: "the answer has no choices[0].text",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_server_is_named_and_not_run(suite, capsys, fault):
    answers = fault(engines(suite))
    with serving(answers) as url:
        code, facts = command(capsys, suite, url)
    rows = facts["instruments"]
    assert code == 3 and not facts["held"] and facts["wrong"] == []
    assert {each["name"] for each in rows} == {*NAMES}
    assert all(0 < each["not_run"] <= each["positions"] for each in rows)
    assert FAULTS[fault] in rows[0]["reason"]
    if fault not in (Stops, ErrorAfterTwo):
        assert all(each["not_run"] == each["positions"] for each in rows)


def test_a_server_that_is_not_there_is_not_run(suite, capsys):
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        code, facts = command(capsys, suite, place.getsockname()[1])
    assert code == 3
    assert all("no answer to GET /v1/models (Conn" in e["reason"] for e in facts["instruments"])


def test_no_redirection_is_followed(suite, capsys):
    class Elsewhere(Right):
        def completed(self, body):
            return 307, {}, "application/json", [("Location", other)]

    seen = Right(engines(suite))
    with serving(seen) as other, serving(Elsewhere(engines(suite))) as url:
        other += "/completions"
        code, facts = command(capsys, suite, url)
    assert code == 3 and seen.bodies == []
    assert all("status 307" in each["reason"] for each in facts["instruments"])


def test_only_the_host_of_the_url_is_asked():
    assert server("8000").url.geturl() == "http://127.0.0.1:8000/v1"
    assert server("http://:8000/v1").url.hostname is None  # this machine
    assert server("https://example.org/v1").url.hostname == "example.org"
    for url in ("", "ftp://localhost", "localhost:8000", "http://a:b@c/v1", "http://[", "http://"):
        with pytest.raises(InvalidValue, match="--openai must be the URL of a server"):
            server(url)


def test_the_command_refuses_what_it_cannot_do(suite, capsys):
    refused = [
        ((suite, "--openai", "8000", "--engine", "transformers"), "either --engine or --openai"),
        ((suite, "--engine", "transformers", "--model", "norm"), "--model must come with --openai"),
        (
            (suite, "--openai", "8000", "--model", "norm", "--instrument", "count"),
            "--instrument must be norm, that of --model norm; received count",
        ),
        ((suite, "--openai", "8000", "--model", "a/b"), "must be the name of an instrument"),
        ((suite, "--openai", "8000", "--mode", "chunks"), "--openai cannot run the mode chunks"),
        (("--openai", "8000"), "--openai must come with DIR"),
        ((suite, "--openai", "localhost"), "--openai must be the URL"),
    ]
    for arguments, words in refused:
        assert main(["conformance", "run", *map(str, arguments)]) == 2
        assert words in capsys.readouterr().err, words


def test_a_text_is_split_into_the_tokens_that_gave_it():
    texts = ["a", "b", "ab", "abc", "1", "12", ""]
    assert segmented(" abc\n", texts, 1) == [3]
    assert segmented("12", texts, 1) == [5]
    assert segmented("ba", texts, 2) == [1, 0]
    assert segmented("ab", texts, 2) == [0, 1]  # as many as there may be
    assert segmented("b", texts, 3) == [1]
    assert segmented("", texts, 3) == []
    for text, most in {"c": 1, "bb": 1, "aba": 2}.items():
        with pytest.raises(NotTokens):
            if text == "aba":
                segmented(text, [*texts, "ba"], most)  # a·ba and ab·a
            else:
                segmented(text, texts, most)


def test_encoders_are_refused_before_the_server_is_asked(tmp_path, monkeypatch, capsys):
    """Catches a suite of BERT that is given to a server, which has no encoder."""
    three = {name: suite_files.INSTRUMENTS[name] for name in NAMES[2:]}
    monkeypatch.setattr(suite_files, "INSTRUMENTS", three)
    suite = tmp_path / "suite"
    write(suite, "bert", 32)
    answers = Right({})
    with serving(answers) as url:
        code = main(["conformance", "run", str(suite), "--openai", url, "--model", "norm"])
    said = " ".join(capsys.readouterr().err.split())
    assert code == 2 and not answers.bodies
    assert "--openai must come with a suite of decoders" in said
    assert "BERT gives a label to each token of a whole text" in said
    assert "run the suite of bert with --engine" in said
