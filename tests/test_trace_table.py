"""The table of `run --trace`: whole numbers and whole gaps in any width."""

import io
import itertools
import re

import pytest
from rich.console import Console

import transformist as tf
from transformist.cli import main
from transformist.programs import PROGRAMS
from transformist.report.trace_table import trace_table


def printed(trace, around=None, width=160):
    console = Console(file=io.StringIO(), width=40)
    console.print(trace_table(trace, around, width), crop=False)
    return console.file.getvalue().splitlines()


@pytest.fixture(scope="module")
def nested():
    return tf.compile(PROGRAMS["dyck-k-d"], max_length=16).run("([([])])([])")


@pytest.mark.parametrize("width", range(65, 200, 9))
def test_a_table_fits_and_cuts_no_number(nested, width):
    lines = printed(nested, 5, width)
    assert max(map(len, lines)) <= width
    # What stands under the numbers of the rows is a number, a symbol, or the gap's own column.
    starts = lines[0].index("slot")
    headings = lines[0][starts:].split()[1:]
    for line in lines[2:]:
        cells = line.split()[-len(headings) :]
        for heading, cell in zip(headings, cells, strict=True):
            assert (cell == "…") == (heading == "…"), line
            assert heading == "…" or re.fullmatch(r"-?\d.*", cell), line
        assert re.match(r"embedding  |layer \d (attention|feed-forward)  |  ", line), line


@pytest.mark.parametrize("width", [20, 60, 80, 160])
def test_rows_that_are_left_out_have_a_column(nested, width):
    headings = printed(nested, 5, width)[0].split("slot")[1].split()
    assert headings[0] == "0" and headings[-1] == "12" and "5" in headings
    for before, after in itertools.pairwise(headings):
        assert "…" in (before, after) or int(after) == int(before) + 1


def test_long_symbols_are_cut_before_positions_are_left_out():
    long = ("the-second-symbol-is-long", "the-third-symbol-is-longer-still")
    stream = tf.Stream(("s",))
    embedding = tf.Embedding.of(stream, {"a": {"s": 1}, long[0]: {}, long[1]: {"s": -1}})
    read_out = tf.Binary(W_out=[[1]], b_out=[0])
    model = tf.Transformer(stream=stream, embedding=embedding, layers=(), read_out=read_out)
    trace = model.run(["a", *long])
    whole, cut = printed(trace), printed(trace, None, 80)
    assert whole[1].split() == ["symbol", "a", *long]
    assert max(map(len, cut)) <= 80 and cut[1].split() == ["symbol", "a", "the-…long", "the-…till"]
    assert [line.split() for line in cut[2:]] == [line.split() for line in whole[2:]]


def test_empty_slots_are_not_shown(nested):
    slots = nested.model.stream.slots
    empty = [
        (slot, after)
        for after in range(1, len(nested.streams))
        for slot in range(len(slots))
        if nested.model.stream.held(slot, after) == "nothing"
    ]
    assert empty  # the model has some
    assert not any(re.search(r"  nothing  ", line) for line in printed(nested))


def test_many_slots_are_counted():
    stream = tf.Stream(tuple(f"s{k}" for k in range(15)))
    embedding = tf.Embedding.of(stream, {"a": dict.fromkeys(stream.slots, 1)})
    read_out = tf.Binary(W_out=[[1] * 15], b_out=[0])
    model = tf.Transformer(stream=stream, embedding=embedding, layers=(), read_out=read_out)
    last, more = printed(model.run("a"))[-2:]
    assert last.split() == ["s11", "1"] and more.strip() == "… 3 more slots"


def test_names_are_cut_where_they_are_equal():
    model = tf.compile(PROGRAMS["sort"], max_length=16)
    slots = model.stream.slots
    lines = printed(model.run([3, 1, 4, 2]), None, 80)
    assert len([line for line in lines if "[value=2]" in line]) == len(
        [slot for slot in slots if "[value=2]" in slot]
    )
    assert any("…" in line for line in lines) and max(map(len, lines)) <= 80


def test_a_trace_that_no_terminal_shows_is_whole(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("COLUMNS", raising=False)
    words = ["a" * 40, "b" * 40]
    file = tmp_path / "mine.py"
    file.write_text(
        "import transformist as tf\n"
        f"@tf.program(alphabet={words})\n"
        f"def mine(x): return ((x == {words[0]!r}).prefix_mean() > '1/3').accept()\n"
    )
    assert main(["run", f"{file}:mine", str(words * 3).replace("'", '"'), "--trace"]) == 0
    out = capsys.readouterr().out
    table = out.splitlines()[1:-1]
    assert max(map(len, table)) > 200 and not any("…" in line for line in table)
    assert table[1].split()[2:] == words * 3


def test_several_arithmetics_are_refused_with_the_remedy():
    with pytest.raises(tf.TransformistError, match="one arithmetic.*float16.*once for each"):
        tf.check(tf.recipe("dyck-1").build(max_length=3), bool, arithmetic=["float32", "float16"])
