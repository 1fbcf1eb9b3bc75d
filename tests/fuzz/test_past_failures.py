"""What failed once keeps every promise now: the cases of `past_failures.py`."""

import dataclasses
import inspect

import numpy as np
import pytest
from drawn_calls import names
from given_files import written
from past_failures import ANSWERED, CALLS, CALLS_OF_COMPILE, LINES, PROCESSES
from processes import require_end
from promises import called, inside, require_promises
from watched import watched

import transformist as tf
from transformist.errors import TransformistError


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return written(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def known():
    return {**names(), "inspect": inspect, "tiny_weight": tiny_weight}


def tiny_weight(model):
    """The model with one entry of W_2 so small that float64 holds it and float32 does not."""
    first = model.layers[0]
    W_2 = np.array(first.feed_forward.W_2)
    W_2[np.nonzero(W_2)[0][0], np.nonzero(W_2)[1][0]] = 1e-300
    layer = dataclasses.replace(
        first, feed_forward=dataclasses.replace(first.feed_forward, W_2=W_2)
    )
    return dataclasses.replace(model, layers=(layer, *model.layers[1:]))


def cases(rows, known_of=lambda row: "", is_heavy=lambda row: False, text=str):
    """Parameters: those that still fail are marked so, and those that take seconds."""
    for row in rows:
        marks = [pytest.mark.slow] if is_heavy(row) else []
        if known_of(row):
            marks.append(pytest.mark.xfail(reason=known_of(row), strict=True))
        yield pytest.param(row, marks=marks, id=text(row).encode("unicode_escape").decode())


@pytest.mark.parametrize(
    "line", list(cases(LINES, lambda line: line.known, lambda line: line.heavy))
)
def test_command_lines(line, directory):
    (directory / "drawn.py").write_text(line.source)
    with inside(directory):
        done = called(line.words, line.given)
    require_promises(done, says_more=bool(line.source))
    assert done.code == line.code, done
    assert line.says in done.out + done.err, done


@pytest.mark.parametrize(("text", "_was"), CALLS_OF_COMPILE, ids=["positions", "max_length"])
def test_calls_of_compile_that_are_refused(text, _was, known):
    require_refused(text, known)


@pytest.mark.parametrize(("text", "_was"), CALLS, ids=[text[:60] for text, _ in CALLS])
def test_calls_that_are_refused(text, _was, known):
    require_refused(text, known)


def require_refused(text, known):
    with watched(text), pytest.raises(TransformistError) as refusal:
        eval(text, known)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("text", "_was"), ANSWERED, ids=[text[:60] for text, _ in ANSWERED])
def test_calls_that_are_answered(text, _was, known):
    with watched(text):
        assert eval(text, known) is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "codes", "_was"), PROCESSES,
    ids=[f"{' '.join(process.line)[:40]}-{process.interrupted}" for process, *_ in PROCESSES],
)  # fmt: skip
def test_processes(process, codes, _was, directory):
    assert require_end(process, directory) in codes


def test_the_example_of_save_runs_by_itself():
    example = "\n".join(
        line.strip().removeprefix(">>> ").removeprefix("... ")
        for line in inspect.getdoc(tf.save).split("\n")
        if line.strip().startswith((">>>", "..."))
    )
    names_before = {"__name__": "example"}
    exec(compile(example, "example", "exec"), names_before)
