"""What a refusal for a margin says would help: it does, and what it says does not fit does not."""

import pickle
import re
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import InvalidValue
from transformist.programs import PROGRAMS


def refused(program, **options):
    with pytest.raises(Uncompilable) as error:
        tf.compile(program, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def share_above(threshold):
    @tf.program(alphabet="ab")
    def above(x):
        return ((x == "a").mean() > threshold).accept()

    return above


def test_a_float_is_told_from_the_text():
    said = refused(share_above(0.1), max_length=20)
    assert said.endswith(
        "no max_length fits the compiler's bounds, which may be too large; compile it for "
        "arithmetic=exact, in which nothing rounds, and certify that model for float32; "
        "a float stands for the number it is, here 3602879701896397/36028797018963968: "
        'write a text such as "0.1", or in a table Fraction("0.1")'
    )
    assert tf.compile(share_above("0.1"), max_length=20).built_for == "float32"


@pytest.mark.parametrize(
    "threshold", ["1/3", 0.5, "1/1048576", Fraction(1, 2**22), Fraction(0.1), "0.1"]
)
def test_other_constants_are_not_taken_for_floats(threshold):
    said = refused(share_above(threshold), max_length=1000, arithmetic="float16")
    assert "a float stands for" not in said


def test_a_float_is_named_beside_a_written_fraction():
    """Of two constants with long denominators, the one that was given as a float."""

    @tf.program(alphabet="ab")
    def weighed(x):
        weights = x.map({"a": Fraction(1, 2**22), "b": np.float32(0.7)})
        return (weights.mean() > 0).accept()

    for program in (weighed, pickle.loads(pickle.dumps(weighed))):
        assert 'a text such as "0.699999988079"' in refused(program, max_length=20)


def test_a_program_inside_of_another_has_floats_of_its_own():
    @tf.program(alphabet="ab")
    def above(x):
        inner = share_above(0.3)
        assert inner.floats == {Fraction(0.3)}
        return ((x == "a").mean() > 0.1).accept()

    assert above.floats == {Fraction(0.1)}


def test_the_largest_length_and_the_finer_arithmetic_do_fit():
    program = share_above("1/2")
    said = refused(program, max_length=10**6, arithmetic="float16")
    longest = int(re.search(r"max_length=(\d+) fits; or compile it for an arithmetic", said)[1])
    tf.compile(program, max_length=longest, arithmetic="float16")
    refused(program, max_length=longest + 1, arithmetic="float16")
    tf.compile(program, max_length=10**6, arithmetic="float64")


def test_of_float64_the_finer_one_is_exact():
    said = refused(share_above("1/2"), max_length=10**18, arithmetic="float64")
    assert said.endswith("fits; or compile it for arithmetic=exact, in which nothing rounds")
    tf.compile(share_above("1/2"), max_length=10**18, arithmetic="exact")


def test_average_hard_is_named_where_it_fits():
    @tf.program(alphabet="ab")
    def neighbours(x):
        return ((x.predecessor(default="b") == "a") & (x == "b")).any().accept()

    said = refused(neighbours, max_length=8, arithmetic="float8_e4m3")
    assert (
        "too large; weighting=average-hard fits; or compile it for an arithmetic with more bits"
        in said
    )
    tf.compile(neighbours, max_length=8, arithmetic="float8_e4m3", weighting="average-hard")


def test_check_says_what_to_do_with_a_program():
    program = share_above("1/2")
    message = (
        "check: the model to compare must be a Transformer; "
        "received Program as the "
        r"first argument; compile a program, tf.compile\(program\), or give it second"
    )
    with pytest.raises(tf.TransformistError, match=message):
        tf.check(program, lambda x: True)
    assert tf.check(tf.compile(program), program, max_length=3)


def test_a_length_is_a_whole_number_also_of_numpy():
    program = share_above("1/2")
    model = tf.compile(program, max_length=np.int64(20))
    # numpy's own number would wrap around in the powers of N that follow from it.
    assert type(model.max_length) is int and model.max_length == 20
    for length in ("x", 2.5, -3, True, np.int64(0), np.float64(5)):
        with pytest.raises(InvalidValue, match="max_length must be a whole number from 1 to"):
            tf.compile(program, max_length=length)


def test_a_wider_format_is_named_only_where_it_fits():
    """float64 does not keep 0.3 of a float apart from fractions; exact does."""
    message = refused(share_above(0.3), max_length=10)
    assert "arithmetic=exact" in message and "float64" not in message
    tf.compile(share_above(0.3), max_length=10, arithmetic="exact")
    message = refused(share_above("1/3"), max_length=10, arithmetic="bfloat16")
    assert message.endswith("such as arithmetic=float16")
    tf.compile(share_above("1/3"), max_length=10, arithmetic="float16")


@pytest.mark.parametrize(
    ("length", "arithmetic", "named", "too_few"),
    [(1000, "float16", "float32", ""), (1000, "bfloat16", "float32", "float16")],
)
def test_the_format_that_is_named_has_no_more_bits_than_are_needed(
    length, arithmetic, named, too_few
):
    program = share_above("1/2")
    message = refused(program, max_length=length, arithmetic=arithmetic)
    assert message.endswith(f"more bits, such as arithmetic={named}")
    tf.compile(program, max_length=length, arithmetic=named)
    if too_few:
        refused(program, max_length=length, arithmetic=too_few)


def test_a_place_without_source_is_described_by_its_type():
    """At a plain prompt of Python there is no text to quote, and no name of a class is shown."""
    source = (
        "@tf.program(alphabet='ab')\ndef above(x):\n    return ((x == 'a').mean() > 0.3).accept()"
    )
    known = {"tf": tf}
    exec(compile(source, "<stdin>", "exec"), known)
    message = refused(known["above"], max_length=10)
    assert (
        "received a Boolean that is computed there, where it is up to" in message
        and "line 3" in message
    )


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: tf.certify(share_above("1/2")), r"give tf.compile\(program\) or .*build\(\)$"),
        (lambda: tf.decoder(tf.compile(share_above("1/2"), max_length=5)), 'masks="future"'),
    ],
)
def test_remedies_name_the_call(call, remedy):
    with pytest.raises(InvalidValue, match=remedy):
        call()


def test_a_model_for_more_bits_is_certified_where_the_compiler_refuses():
    said = refused(PROGRAMS["palindrome"], max_length=1, arithmetic="bfloat16")
    assert "no max_length fits the compiler's bounds" in said
    assert said.endswith("and certify that model for bfloat16")
    model = tf.compile(PROGRAMS["palindrome"], max_length=1, arithmetic="float64")
    assert tf.certify(model, "bfloat16").grade == 1
