"""The option `width`: that many slots, or a refusal with the least that fits."""

import itertools

import numpy as np
import pytest

import transformist as tf
from command_line import answer, run
from transformist.compiler import largest_length
from transformist.compiler.compile_options import WIDEST
from transformist.errors import InvalidValue
from transformist.programs import PROGRAMS

EQUAL = PROGRAMS["equal-abc"]


@pytest.mark.parametrize("name", ["majority", "equal-abc", "contains-abc"])
def test_the_least_width_is_that_without_the_option(name):
    least = tf.compile(PROGRAMS[name], max_length=16).width
    assert tf.compile(PROGRAMS[name], max_length=16, width=least).width == least
    with pytest.raises(InvalidValue, match=rf"at least {least}, .* received width = {least - 1}; "):
        tf.compile(PROGRAMS[name], max_length=16, width=least - 1)


def test_the_slots_beyond_hold_nothing():
    narrow = tf.compile(EQUAL, max_length=16)
    wide = tf.compile(EQUAL, max_length=16, width=np.int64(narrow.width + 3))
    assert wide.stream.slots == (*narrow.stream.slots, "spare", "spare (2)", "spare (3)")
    assert tf.grade_of(wide, "float32") == tf.grade_of(narrow, "float32")
    for n in range(6):
        for string in itertools.product("abc", repeat=n):
            assert wide(string) == (string.count("a") == string.count("b") == n / 3 and n % 3 == 0
                                    and string == tuple(sorted(string)))  # fmt: skip
    trace = wide.run("aabbcc", arithmetic="float64")
    assert not any(trace[f"spare{k}"].any() for k in ("", " (2)", " (3)"))


def test_a_slot_for_each_number_takes_more():
    least = tf.compile(EQUAL, max_length=16).width
    with pytest.raises(InvalidValue, match=rf"with reuse=True width={least} fits"):
        tf.compile(EQUAL, max_length=16, width=least, reuse=False)


def test_a_width_is_kept_while_another_length_is_looked_for():
    """A number that needs a smaller N is refused with that N; the width does not hide it."""
    for width in (2, 1):  # one remedy at a time: a width of 1 is refused at the smaller N
        with pytest.raises(InvalidValue, match="max_length=31 fits"):
            tf.compile(PROGRAMS["majority"], max_length=64, arithmetic="bfloat16", width=width)
    assert largest_length(PROGRAMS["majority"], most=64, arithmetic="bfloat16", width=2) == 31
    with pytest.raises(InvalidValue, match="width must be at least 2"):
        largest_length(PROGRAMS["majority"], most=64, width=1)
    with pytest.raises(InvalidValue, match="width must be at least 2"):
        largest_length(PROGRAMS["majority"], most=64, arithmetic="bfloat16", width=1)


@pytest.mark.parametrize("width", [0, -1, True, 2.0, "8", WIDEST + 1, [8]])
def test_what_is_no_width(width):
    with pytest.raises(InvalidValue, match="width must be a whole number from 1 to 65,536"):
        tf.compile(EQUAL, width=width)


def test_the_command_line(capsys, tmp_path):
    command = ("compile", "programs/majority", "-o", tmp_path / "model")
    assert answer(capsys, *command, "--width", "5")["width"] == 5
    assert tf.load(tmp_path / "model").width == 5
    assert answer(capsys, *command, "--set", "width=4")["width"] == 4
    for given, said in (("1", "width=2 or more"), ("x", "from 1 to"), ("0", "from 1 to")):
        code, out, err = run(capsys, *command, "--width", given)
        assert (code, out) == (2, "") and said in err and err.count("\n") == 1
