"""The table of worked programs and hosts on the page on Hugging Face, row by row."""

from pathlib import Path

import pytest
from exported_programs import ANSWERED, CASES

import transformist as tf
from transformist.compiler.uncompilable import Uncompilable
from transformist.hosts import bert, gpt2, llama
from transformist.hosts.host import HOSTS, Unhostable
from transformist.programs import PROGRAMS

PAGE = Path(__file__).parents[2] / "docs" / "huggingface.md"

WRITERS = {"gpt2": gpt2, "llama": llama, "bert": bert}


def cell(name, host):
    """The N at which the class is compared with the program, or the reason that it has none."""
    compared = sorted(n for *case, n in CASES if case == [host, name])
    try:
        model = tf.compile(PROGRAMS[name], max_length=16, **HOSTS[host].options)
        WRITERS[host].write(model, "float32")
    except Uncompilable as refusal:
        assert not compared
        after = sorted(n for *case, n in ANSWERED if case == [host, name])
        if after:
            program = tf.answered_after(PROGRAMS[name])
            model = tf.compile(program, max_length=9, **HOSTS[host].options)
            WRITERS[host].write(model, "float32")
            return f"{', '.join(map(str, after))} after `=`"
        return f"needs mask {refusal.received.rpartition(' ')[2]}"
    except Unhostable as refusal:
        assert not compared and refusal.invariant == f"in {host}, the answer must be a label"
        return "answers with a mean, no label"
    return ", ".join(map(str, compared))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_row_of_a_program_is_true(name):
    row = " | ".join([name, *(cell(name, host) for host in WRITERS)])
    assert f"\n| {row} |\n" in PAGE.read_text()


def test_every_n_of_the_table_is_compared_in_the_suite():
    held = {(host, name) for host, name, _ in CASES if host in WRITERS}
    for host, name in held:
        most = 255 if name == "dyck-k-d" else 256
        assert {n for *case, n in CASES if case == [host, name]} == {64, most}
    for host, name, _ in ANSWERED:
        if host in WRITERS:
            assert {n for *case, n in ANSWERED if case == [host, name]} == {64, 256}
