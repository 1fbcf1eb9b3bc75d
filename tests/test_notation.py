"""docs/notation.md: its examples run, its names exist, and no equation is left out."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

import pages
import transformist as tf
from transformist.settings import SETTINGS

PAGE = (Path(__file__).parents[1] / "docs" / "notation.md").read_text()


def rows(heading):
    """The cells of the table under a heading, without its head."""
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    table = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def exists(name):
    return name.startswith("tf.") and pages.code(f"transformist.{name.removeprefix('tf.')}")


def test_its_examples_run():
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, flags=re.S))
    example = doctest.DocTestParser().get_doctest(blocks, {}, "notation", None, 0)
    assert len(example.examples) > 15
    assert doctest.DocTestRunner().run(example).failed == 0


def test_its_names_exist():
    names = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.S))
    assert len([name for name in names if name.startswith("tf.")]) > 25
    for name in names:
        known = name in SETTINGS or exists(name)
        assert known or name in ("interval", "original-transformer"), name
    assert not exists("tf.Attention.W_X") and not exists("tf.Atention")


def test_every_object_has_a_name_in_code():
    for *_, code in rows("Objects"):
        assert "`tf." in code or code == "a string, or a list of symbols"
    assert all(len(row) == 6 for row in rows("Objects"))


def test_no_equation_is_left_out():
    numbers = [row[0] for row in rows("The corrected equations")]
    assert numbers == [f"({number})" for number in range(7, 21)]


def corrected(number):
    return next(row[1] for row in rows("The corrected equations") if row[0] == f"({number})")


@pytest.mark.parametrize("D", [2, 6, 16])
def test_the_sinusoids_are_those_of_equation_15(D):
    """The formula of the page, read as Python, without its index letters."""
    text = corrected(15).split(" = ")[1]
    even, odd = (text.split(", ")[0].split(" for ")[0], text.split(", ")[1].split(" for ")[0])
    names = {"α": "alpha", "Δ": "Delta", "^": "**", "−": "-", "4Delta": "4*Delta", "4(": "4*("}
    for symbol, python in names.items():
        even, odd = even.replace(symbol, python), odd.replace(symbol, python)
    for Delta in range(D):
        for alpha in range(5):
            known = {"sin": np.sin, "cos": np.cos, "alpha": alpha, "Delta": Delta, "D": D}
            value = eval(odd if Delta % 2 else even, {}, known)
            assert abs(tf.Sinusoids(D)(5)[alpha, Delta] - value) <= 2.0**-24
