"""docs/notation.md: its examples run, its names exist, and no equation is left out."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

import pages
import transformist as tf
from transformist.settings import SETTINGS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")


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


def sinusoid(alpha, Delta, D):
    """Equation (15), as the page has it."""
    if Delta % 2 == 0:
        return np.sin(alpha / 10 ** (4 * Delta / D))
    return np.cos(alpha / 10 ** (4 * (Delta - 1) / D))


@pytest.mark.parametrize("D", [2, 6, 16])
def test_the_sinusoids_are_those_of_equation_15(D):
    printed = "E_pos^Δ,α = sin(α/10^(4Δ/D)) for even Δ, cos(α/10^(4(Δ−1)/D)) for odd Δ"
    assert corrected(15) == printed
    expected = [[sinusoid(alpha, Delta, D) for Delta in range(D)] for alpha in range(5)]
    assert np.abs(tf.Sinusoids(D)(5) - expected).max() <= 2.0**-52


def equations(where):
    """The numbers of the equations that an erratum is about."""
    numbers = [int(number) for number in re.findall(r"\((\d+)\)", where)]
    return range(numbers[0], numbers[-1] + 1) if " to " in where else numbers


def test_what_is_wrong_is_linked_to_its_errata():
    tables = [table for _, table in pages.tables(ROOT / "docs" / "errata", "erratum")]
    about = {each["id"]: each["where"] for each in tables if each["source"] == "notation"}
    linked = set()
    for number, _, wrong in rows("The corrected equations"):
        for name, anchor in re.findall(r"\[([a-z-]+)\]\(errata\.md#([a-z-]+)\)", wrong):
            assert name == anchor and int(number.strip("()")) in equations(about[name])
            linked.add(name)
    assert linked == about.keys()
