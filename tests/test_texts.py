"""Texts are read in pieces: what comes out is what is there, and where, in little memory."""

import io
import itertools
import json
import os
import random
import re
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import transformist as tf
from command_line import run
from transformist import running, texts
from transformist.engines.structured.embedded import codes
from transformist.model import Coded
from transformist.running import refuse_beyond_memory as refuse
from transformist.texts import Text, TextSource, without_last_newline

ODD = "()a\n\r é\u2028ß漢\ud7ff\ue000😀𝄞"


def drawn(seed, alphabet=ODD):
    rnd = random.Random(seed)
    return "".join(rnd.choices(alphabet, k=rnd.randint(0, 40)))


def without_newline(text):
    """One at the end, of either form; a carriage return alone is none."""
    return re.sub(r"\r?\n\Z", "", text)


@pytest.fixture(params=[1, 2, 3, 7, 2**16])
def piece(request, monkeypatch):
    monkeypatch.setattr(texts, "PIECE", request.param)
    return request.param


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_file_is_decoded_wherever_it_is_cut(piece, mark, tmp_path):
    path = tmp_path / "x"
    for seed in range(60):
        text = drawn(seed)
        path.write_bytes(mark + text.encode())
        assert texts.read_text(path) == text
        assert TextSource.file(path).text() == without_newline(text)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("broken", [b"\xff", b"\xc3", b"\xe6\xbc", b"\xc3("])
def test_what_is_no_text_is_refused_with_its_byte(piece, mark, broken, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(mark + "(é".encode() + broken)
    with pytest.raises(tf.TransformistError, match=f"whose byte {len(mark) + 4} is not; convert"):
        texts.read_text(path)


def test_a_nul_in_a_late_piece_is_refused(piece, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"()()()()()\0")
    with pytest.raises(tf.TransformistError, match="which has a NUL byte"):
        texts.read_text(path)


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n", "\n\r", "\r\r\n"])
def test_one_newline_at_the_end_is_no_symbol(end):
    whole = "a\nb" + end
    for cuts in itertools.product((True, False), repeat=len(whole) - 1):
        pieces, last = [], 0
        for at in [i + 1 for i, cut in enumerate(cuts) if cut] + [len(whole)]:
            pieces.append(whole[last:at])
            last = at
        assert "".join(without_last_newline(pieces)) == without_newline(whole)


def place(text, kept, position):
    """By looking at the whole text."""
    at = [i for i, symbol in enumerate(text) if kept is None or symbol in kept][position - 1]
    before = text[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}"


@pytest.mark.parametrize(
    "source", [TextSource.file, lambda path: TextSource.stream(io.BytesIO(path.read_bytes()), path)]
)
@pytest.mark.parametrize("ignored", [False, True])
def test_places_are_found_again(piece, ignored, source, tmp_path):
    path = tmp_path / "x"
    for seed in range(40):
        text = drawn(seed) + "("
        path.write_text(text, encoding="utf-8", newline="")
        kept = "(a\n" if ignored else None
        taken = Text.over(sorted(set(kept or text)), source(path), ignore_others=ignored)
        expected = [symbol for symbol in text if kept is None or symbol in kept]
        assert list(taken.symbols) == expected and taken.whole == "".join(expected)
        for position in range(1, len(expected) + 1):
            assert taken.place(position) == f"{path}, {place(text, kept, position)}"


@pytest.mark.parametrize("looked", [0, 1, 99])
def test_what_is_read_once_is_all_there(piece, looked):
    """Whatever was looked at before, for the alphabet say, and wherever a piece has no symbol."""
    for seed in range(40):
        text = drawn(seed, "ab\n😀")
        source = TextSource.stream(io.BytesIO(text.encode()), "it")
        begun = list(itertools.islice(source.again(), looked))
        expected = without_newline(text)
        assert expected.startswith("".join(begun)) and (looked < 99 or "".join(begun) == expected)
        for_it = Text.over("ab\n", source)
        assert for_it.whole == expected and for_it.source.text() == expected
        assert isinstance(for_it.symbols, Coded) == ("😀" not in expected)


@pytest.mark.parametrize(
    ("alphabet", "example"), [((1, 2, 3), "[1, 2]"), (("no", "yes", "é"), '["no", "yes"]')]
)
def test_a_list_that_is_named_as_an_example_is_one(alphabet, example):
    for given in ("no", "{}", "[[1]]"):
        with pytest.raises(tf.TransformistError) as refused:
            Text.over(alphabet, TextSource.given(given))
        assert str(refused.value).endswith(f"; give one such as '{example}'")
    assert list(Text.over(alphabet, TextSource.given(example)).symbols) == list(alphabet[:2])


def test_a_file_that_has_changed_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_text("(()")
    taken = Text.over("()", TextSource.file(path))
    path.write_text("(")
    with pytest.raises(tf.TransformistError, match=f"{path}, which has no symbol 3 any more; run"):
        taken.place(3)


def test_symbols_by_their_numbers():
    alphabet = [chr(0x4E00 + i) for i in range(300)] + ["😀", "\udc80"]
    random.Random(1).shuffle(alphabet)
    x = random.Random(2).choices(alphabet, k=999)
    coded = Coded.of(alphabet, ["".join(x[:500]), "", "".join(x[500:])])
    assert list(coded) == x and list(coded[::-3]) == x[::-3] and coded.numbers.dtype == np.uint16
    assert Coded.of("()", ["()", "(x"]) is None
    assert list(Coded.of("()", ["a(", "b)c"], ignore_others=True)) == ["(", ")"]
    assert list(Coded.of("", ["ab"], ignore_others=True)) == [] and Coded.of("", ["a"]) is None


def test_the_engine_has_the_rows_of_coded_symbols():
    model = tf.recipe("dyck-1").build()
    embedding = model.embedding
    for x in ("", "(", "())(" * 3000):
        expected = embedding.encode(x)
        for each in (x, Coded.of("()", [x]), Coded.of(")x(", [x])):
            assert codes(embedding, each).tolist() == expected
    for each in ("()x", Coded.of("()x", ["()x"])):
        with pytest.raises(tf.TransformistError, match="received 'x' at position 3"):
            codes(embedding, each)
    assert tf.run(model, Coded.of(")(", ["(())"]), engine="structured") is True
    assert model(Coded.of(")(", ["(()))"])) is False


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_read_once(tmp_path):
    """The alphabet is looked for before the symbols; who opens it again waits for ever."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text("abcab\n"), daemon=True)
    writer.start()
    command = [sys.executable, "-m", "transformist", "run", "induction-most-recent", "--json"]
    command += ["--file", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    got = json.loads(done.stdout)
    assert (got["length"], got["answer"]) == (5, "abcbc")


class Endless(io.RawIOBase):
    """Bytes that come again and again, so often."""

    def __init__(self, data, times):
        self.data, self.times = data, times

    def read(self, size=-1):
        self.times -= 1
        return self.data if self.times >= 0 else b""


def test_a_pipe_takes_little_more_than_a_byte_a_symbol():
    """Its text beside the symbols would be a byte more."""
    tracemalloc.start()
    try:
        source = TextSource.stream(Endless(b"()" * 2**15, 50), "it")
        assert set().union(*source.again()) == {"(", ")"}
        taken = Text.over("()", source)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    n = len(taken.symbols)
    assert n == 50 * 2**16 and held < 1.3 * n and peak < 1.6 * n


@pytest.mark.parametrize("data", [b"()" * 999, b"x" * 999, b"(x" * 999])
def test_a_pipe_is_read_no_further_than_is_admitted(data):
    def admit(count):
        if count > 10_000:
            raise OverflowError(count)

    with pytest.raises(OverflowError, match="1[01][0-9]{3}$"):
        Text.over("()", TextSource.stream(Endless(data, float("inf")), "it"), admit=admit)


def test_a_text_takes_little_more_than_a_byte_a_symbol(tmp_path):
    path, n = tmp_path / "x", 2_000_000
    path.write_text("()" * (n // 2))
    tracemalloc.start()
    try:
        taken = Text.over("()", TextSource.file(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(taken.symbols) == n
    assert peak < 4 * n


PEAK = """
import sys
from pathlib import Path
from types import SimpleNamespace
from transformist.cli import main

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

few, many, n = *sys.argv[1:3], int(sys.argv[3])
run = ["run", "dyck-1", "--engine", "structured", "--json", "--file"]
main([*run, few])
before = peak()
main([*run, many])
print((peak() - before) / n)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nothing says the peak here")
def test_a_run_on_a_file_takes_little_more_than_the_engine(tmp_path):
    """Which takes 48 bytes a symbol for the stream, and some; places kept would be 40 more."""
    few, many, n = tmp_path / "few", tmp_path / "many", 1_000_000
    few.write_text("()" * 2048)
    many.write_text("()" * (n // 2))
    command = [sys.executable, "-c", PEAK, few, many, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *answers, peak = done.stdout.splitlines()
    assert all('"answer": true' in each for each in answers)
    assert float(peak) < 75


class TestMemory:
    def test_reading_stops_where_no_more_fits(self, monkeypatch):
        """On a text without an end."""
        monkeypatch.setattr(running, "free_memory", lambda: 10**7)
        model = tf.recipe("dyck-1").build()
        endless = TextSource("all of it", lambda: itertools.repeat("()" * 1000))
        for engine in ("structured", "reference"):
            with pytest.raises(tf.TransformistError, match="; received more than") as refusal:
                Text.over(
                    "()", endless, False, lambda n, of=engine: refuse(model, n, "float64", of)
                )
            most = int(str(refusal.value).split("at most ")[1].split()[0])
            refuse(model, most, "float64", engine)
            with pytest.raises(tf.TransformistError, match=f"^{engine} engine: .* 0.0 GiB; rec"):
                refuse(model, most + 1, "float64", engine)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["dyck-1"], "more than 46339 symbols; give at most 46339"),
            (["dyck-1", "--arithmetic", "exact"], "structured, in float64 or float32)"),
            (["dyck-1", "--trace", "--ignore-others"], "(--engine structured)"),
            (["induction-most-recent"], "more than 46339 symbols"),
            (["dyck-1", "--set", "max_length=16", "--engine", "structured"], "at most N = 16"),
        ],
    )
    def test_a_pipe_is_read_no_further_than_the_reference_evaluates(
        self, capsys, monkeypatch, arguments, words
    ):
        monkeypatch.setattr(running, "MANY", 10_000)
        bytes_ = Endless(b"(" * 2**15, 10)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=bytes_, isatty=lambda: False))
        code, out, err = run(capsys, "run", *arguments)
        assert (code, out) == (2, "") and words in err
        assert bytes_.times > 5, "most of it is left"

    def test_what_is_kept_of_a_pipe_fits_in_memory(self, monkeypatch):
        """Of characters none of which is a symbol, and so none counted."""
        monkeypatch.setattr(texts, "COMPARED", 2**16)
        monkeypatch.setattr(texts, "free_memory", lambda: 2**18)
        source = TextSource.stream(Endless(b"x" * 2**15, float("inf")), "it")
        with pytest.raises(tf.TransformistError, match="a text of more than [23]"):
            Text.over("()", source, ignore_others=True)

    @pytest.mark.parametrize("engine", ["structured", "auto", "reference"])
    def test_on_the_command_line(self, capsys, monkeypatch, tmp_path, engine):
        monkeypatch.setattr(running, "MANY", 10_000)
        path = tmp_path / "x"
        path.write_text("()" * 50_000)
        command = ("run", "dyck-1", "--file", path, "--engine", engine)
        assert engine == "reference" or run(capsys, *command)[0] == 0
        monkeypatch.setattr(running, "free_memory", lambda: 10**5)
        code, out, err = run(capsys, *command)
        assert (code, out) == (2, "") and "; received more than" in err
        assert err.startswith(
            f"error: {engine.replace('auto', 'structured')} engine: an input must"
        )
