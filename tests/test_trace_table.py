"""The table of `run --trace`: whole numbers and whole gaps in any width."""

import io
import itertools
import re

import pytest
from rich.console import Console

import transformist as tf
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
def test_a_table_fits_and_cuts_only_names(nested, width):
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
