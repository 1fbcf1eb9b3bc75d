"""`transformist diagnose`: its facts, its sentences and its refusals."""

import pytest

from command_line import answer, run

FAILING = ("programs/reverse", "ababababababababa", "--arithmetic", "bfloat16")


def test_the_facts_of_a_failure(capsys):
    found = answer(capsys, "diagnose", *FAILING, "--set", "max_length=17")
    assert found["model"] == "programs/reverse" and found["input"] == FAILING[1]
    assert (found["exact"], found["answer"][:3]) == (FAILING[1][::-1], "aaa")
    assert found["fails"] and found["wrong_position"] == 2 and found["max_length"] == 17
    assert found["signature"] == "retrieval blends positions"
    assert found["evidence"]["positions"][:2] == [16, 17] and found["evidence"]["wanted"] == [16]
    assert (found["position"], found["layer"], found["arithmetic"]) == (2, 1, "bfloat16")
    assert found["slot"] == found["first"][0]["slot"] == found["chain"][0]["slot"]
    assert found["chain"][-1]["after"] == "read-out"
    assert found["remedy"] == "arithmetic=float16"
    assert found["remedies"] == [{"kind": "arithmetic", "value": "float16", "head": None}]


def test_the_sentences_of_a_failure(capsys):
    code, out, err = run(capsys, "diagnose", *FAILING)
    assert code == 0 and not err
    for words in (
        "programs/reverse, built for N = 32, on 'ababababababababa' (length 17): aaa",
        "signature: retrieval blends positions: layer 1 head 0 at position 2 attends to",
        "position 16 with weight 0.5, position 17 with weight 0.5, and should attend to "
        "position 16 alone",
        "first number that decides: layer 1 attention, position 2, x.lookup(",
        "remedy: arithmetic=float16 for this input (`certify --arithmetic float16` speaks",
        "score of the label 'a'",
    ):
        assert words in out


def test_a_smaller_length_is_a_remedy(capsys):
    found = answer(
        capsys, "diagnose", "programs/dyck-k-d", "([()]]", "--set", "max_length=16",
        "--arithmetic", "bfloat16",
    )  # fmt: skip
    assert found["remedy"] == "max_length=15" and not found["exact"]
    assert found["signature"] == "count falls below the format's resolution"
    _, out, _ = run(
        capsys, "diagnose", "programs/dyck-k-d", "([()]]", "--set", "max_length=16",
        "--arithmetic", "bfloat16",
    )  # fmt: skip
    assert "remedy: max_length=15 for this input (`precision` has" in out


def test_an_input_that_does_not_fail(capsys):
    code, out, _ = run(capsys, "diagnose", "dyck-1", "(())", "--arithmetic", "bfloat16")
    assert code == 0
    assert (
        out == "dyck-1 does not fail on '(())' (length 4) in bfloat16: accepted there and exactly\n"
    )
    found = answer(capsys, "diagnose", "dyck-1", "")
    assert not found["fails"] and found["signature"] is found["slot"] is found["remedy"] is None


def test_a_failing_input_is_searched_for(capsys):
    found = answer(
        capsys, "diagnose", "programs/reverse", "--set", "max_length=17", "--arithmetic", "bfloat16"
    )
    assert found["fails"] and found["exact"] == found["input"][::-1] != found["answer"]
    code, out, _ = run(
        capsys, "diagnose", "programs/reverse", "--set", "max_length=4", "--arithmetic", "float32"
    )
    assert code == 0 and "no input that fails in float32 to its N" in out
    none = answer(
        capsys, "diagnose", "programs/reverse", "--set", "max_length=4", "--arithmetic", "float32"
    )
    assert (none["input"], none["fails"]) == (None, False)
    assert none["searched"]["longest"] == 4 and not none["searched"]["is_limited"]


def test_the_limit_of_a_search(capsys):
    command = ("diagnose", "programs/reverse", "--arithmetic", "float32", "--max-strings", "9")
    code, out, _ = run(capsys, *command, "--seed", "3")
    assert code == 0 and "for N up to 16" in out and "--max-strings takes another limit" in out
    assert "9 strings to length 2, not all of each length, were compared in float32 (seed 3)" in out
    assert answer(capsys, *command)["searched"] == {
        "strings": 9, "longest": 2, "formats": ["float32"], "max_lengths": [16],
        "is_limited": True, "seed": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dyck-1", "(a)"), "received 'a' at position 2"),
        (("min", "[1, 2]"), "diagnose must come with a model on strings"),
        (("dyck-1", "()", "--arithmetic", "exact"), "must be in a float format; received exact"),
        (("dyck-1", "()", "--arithmetic", "float7"), "float7"),
        (("programs/reverse", "abab", "--set", "max_length=3"), "at most N = 3"),
        (("no-such-model", "a"), "MODEL must be"),
        (("dyck-1", "()", "--seed", "1"), "must come without INPUT"),
        (("dyck-1", "--max-strings", "0"), "max_strings must be a whole number of at least 1"),
    ],
)
def test_refusals(capsys, arguments, words):
    code, out, err = run(capsys, "diagnose", *arguments)
    assert code == 2 and not out
    assert err.startswith("error: ") and words in err and err.count("\n") == 1
