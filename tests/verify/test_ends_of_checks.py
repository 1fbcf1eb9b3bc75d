"""How checks end: a journal that is gone, a model without the symbols, answers of any keys."""

import json
import sys

import pytest

import transformist as tf
from command_line import run
from transformist.errors import InvalidValue, UnreadableInput
from transformist.verify import Drawn


def is_balanced(x):
    while "()" in x:
        x = x.replace("()", "")
    return x == ""


@pytest.mark.parametrize("how", ["removed", "emptied", "replaced"])
def test_a_journal_that_is_gone_at_the_end_is_named(tmp_path, how):
    journal = tmp_path / "a.journal"

    def reference(x):
        if x == "((":
            content = journal.read_bytes()
            journal.unlink() if how != "emptied" else journal.write_bytes(b"")
            if how == "replaced":
                (tmp_path / "other").write_bytes(content)
                (tmp_path / "other").rename(journal)
        return x in ("", "()")

    model = tf.recipe("dyck-1").build(max_length=4)
    with pytest.raises(UnreadableInput, match="removed, replaced or emptied"):
        tf.check(model, reference, 2, journal=journal)


@pytest.mark.parametrize(("name", "other"), [("dyck-1", "parity"), ("dyck-k-d", "dyck-1")])
def test_a_model_over_another_alphabet_is_refused(name, other):
    recipe = tf.recipe(name).replace(construct=lambda **_: tf.recipe(other).build())
    with pytest.raises(InvalidValue, match="must have the symbols of the claim"):
        tf.check(recipe, None, 3)


def test_an_answer_with_any_keys_is_json(capsys, tmp_path):
    (tmp_path / "file.py").write_text("def f(x): return {(1, 2): 3}\n")
    against = f"{tmp_path / 'file.py'}:f"
    code, out, _ = run(
        capsys, "check", "dyck-1", "--against", against, "--max-length", "1", "--json"
    )
    assert code == 1 and json.loads(out)["recipes"][0]["counterexample"]["expected"] == {
        "(1, 2)": 3
    }


def test_a_number_of_any_length_is_named():
    found = tf.check(tf.recipe("dyck-1").build(), lambda x: 10**5000, 1)
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(4300)  # as Python begins
    try:
        assert not found.held and "too long to write" in str(found.counterexample)
    finally:
        sys.set_int_max_str_digits(before)


def test_a_journal_of_another_seed_names_both(tmp_path):
    model, journal = tf.recipe("dyck-1").build(max_length=12), tmp_path / "a.journal"
    for seed in (1, 2):
        drawn = Drawn(5, 0, 12, seed=seed)
        if seed == 1:
            tf.check(model, is_balanced, 2, drawn=drawn, journal=journal)
            continue
        with pytest.raises(InvalidValue, match="seed 1.*seed 2"):
            tf.check(model, is_balanced, 2, drawn=drawn, journal=journal)
