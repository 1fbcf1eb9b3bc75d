"""The same program gives the same weights, byte for byte; golden.py says how they are written."""

import json
import os
import subprocess
import sys

import golden
import pytest

import transformist as tf
from transformist.model import parameter
from transformist.programs import PROGRAMS


def test_the_weights_are_those_of_the_golden_file():
    """After a change that is meant: python tests/programs/golden.py."""
    kept = json.loads(golden.FILE.read_text(encoding="utf-8"))
    assert json.loads(golden.contents()) == kept


@pytest.mark.parametrize(
    ("seed", "order"),
    [
        ("4242", "--reversed"),
        *(
            pytest.param(seed, order, marks=pytest.mark.slow)
            for seed, order in [
                ("0", "--print"),
                ("1", "--print"),
                ("4242", "--print"),
                ("0", "--reversed"),
            ]
        ),
    ],
)
def test_fresh_processes_give_the_same_bytes(seed, order):
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, golden.__file__, order]
    run = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert run.stdout == golden.FILE.read_bytes()


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_twice_in_one_process_in_any_order(step):
    keys = golden.KEYS[::step]
    first = {key: golden.entry(*key) for key in keys}
    again = {key: golden.entry(*key) for key in keys[::-1]}
    assert first == again


def test_a_fingerprint_sees_every_array_and_name():
    """Each array of a model, and each text, is in the text of it."""
    model = tf.compile(PROGRAMS["dyck-1"], max_length=12)
    text = golden.text(model)
    head, network = model.layers[0].heads[0], model.layers[0].feed_forward
    for array in (
        model.embedding.vectors,
        head.W_V,
        network.W_1,
        network.b_1,
        model.read_out.W_out,
    ):
        assert json.dumps(golden.serial(array)) in text
    for name in (*model.stream.slots, *(span.name for span in model.stream.spans)):
        assert json.dumps(name) in text
    third = parameter(["1/3", 1])
    assert golden.serial(third) == ["array", [2], ["1/3", "1"]]
