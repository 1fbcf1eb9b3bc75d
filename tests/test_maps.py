"""The maps of the sources beside the Cookbook: that they are whole, and lead to what exists."""

import importlib.util
import re
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.errors import InvalidValue, UnknownName
from transformist.model.weighting import softmax

ROOT = Path(__file__).parents[1]

_spec = importlib.util.spec_from_file_location("maps_page", ROOT / "docs" / "maps.py")
page = sys.modules["maps_page"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(page)

MAPS = page.read()

# What stands in the documents, by their headings, numbers and first cells of rows

EXTRACTION = """
1 1.1 1.2 1.3 1.4 1.5 1.6 1.7 1.8 1.9 2 2.1 2.2 2.3 2.4 2.5 2.6
3 3.1 3.2 3.3 3.4 3.5 3.6 3.7 3.8 3.9 3.10 3.11 3.12 4 4.1 4.2 4.3 4.4 4.5 5 5.1 5.2 5.3
6 6.1 6.2 6.3 6.4 7 7.1 7.2 7.3 8 9 9.1 9.2 9.3 9.4 9.5 9.6 10 11 12 13 13.1 13.2 13.3 13.4 14
"""

SECTIONS = {
    "extraction": EXTRACTION.split(),
    "notation": [
        "Letters",
        "reshaping",
        "concatenation",
        "Hadamard product",
        "Matrix multiplication",
        "Positional Encoding Matrix",
        "ReLU",
        "Feed Forward neural net",
        "softmax",
    ],
    "summary": [
        "Quick Facts",
        "Executive Summary",
        "Method Summary",
        "Key Results",
        "Mechanism 1: Feed-Forward Networks as Continuous Piecewise Linear Function Approximators",
        "Mechanism 2: Self-Attention as Position-Retrieval via Score Maximization",
        "Mechanism 3: Residual Stream as Straight-Line Program with Routing",
        "Foundational Learning",
        "Architecture Onboarding",
        "First 3 experiments",
        "Open Questions the Paper Calls Out",
        "Limitations",
        "Confidence",
        "Next Checks",
    ],
    "primitives": [
        "Embedding with flags",
        "Add one specific vector to the i th",
        "Make the i th vector zero",
        "ATTN y FF controlling which coordinates are affected",
        "Linear transformations",
        "Linear transformation storing to the right",
        "Linear transformation doubling the embedding size",
        "Maximum of two numbers",
        "Special operation",
    ],
}

ROWS = {
    ("extraction", "2.2"): "1/i, i/n, (-1)^i, i, i^2, i^3",
    ("extraction", "2.6"): "One-hot, Almost-orthogonal, Layernorm-hash, Quadratic maximization",
    ("extraction", "8"): 7,
    ("extraction", "10"): "(2), (3-4), (5), (6), (7), (8), (9-10), (11), (12), (13), (14-16), "
    "(17), (18), (19), (20), (23-26), (27), (28), (29), (33), (35), (36-37), (38), (39), (40), "
    "(41)",
    ("extraction", "11"): "Identity, Min / Max, Add / Subtract, Multiply by c, Multiply (xy), "
    "Comparators, Boolean functions, Conditional (if), CPWL f, Cancel Residual",
    ("extraction", "12"): "Identity, Uniform Average, First, Predecessor, Index Lookup, "
    "Tie-breaking, Multi-head",
    ("summary", "First 3 experiments"): "1, 2, 3",
    ("summary", "Open Questions the Paper Calls Out"): "Open Question 1, Open Question 2, "
    "Open Question 3",
    ("summary", "Next Checks"): "1, 2, 3",
}


def test_the_page_is_made_of_the_data():
    assert page.PAGE.read_text("utf-8") == page.page(MAPS), "run python docs/maps.py"


@pytest.mark.parametrize("source", SECTIONS)
def test_every_section_stands_there(source):
    assert [p.number for p in MAPS[source] if p.kind == "section"] == SECTIONS[source]


def test_every_equation_of_the_tensor_notation_stands_there():
    equations = [p.number for p in MAPS["notation"] if p.kind == "equation"]
    assert equations == [str(number) for number in range(1, 24)]


def test_every_row_of_a_table_stands_there():
    found = {
        (source, section.number): [p.number for p in parts if p.kind == "row"]
        for source, places in MAPS.items()
        for section, parts in page.cookbook.by_section(places)
    }
    found = {key: rows for key, rows in found.items() if rows}
    assert set(found) == set(ROWS)
    for key, expected in ROWS.items():
        if isinstance(expected, int):
            assert len(found[key]) == expected
        else:
            assert found[key] == expected.split(", ")


@pytest.mark.parametrize(
    "scores", [[1, 0, 0], [10, 0, 0], ["1/3", "1/3", "1/3"]], ids=["21", "22", "23"]
)
def test_the_printed_examples_of_softmax(scores):
    a = number_system("float64")
    got = softmax(a.array([scores]), np.full((1, 3), True), a)[0]
    first = float(np.exp(float(Fraction(scores[0]) - Fraction(scores[1]))))
    expected = np.array([first, 1, 1]) / (first + 2)
    assert np.abs(got - expected).max() < 1e-15
    assert scores[0] != 10 or np.abs(got - [1, 0, 0]).max() < 1e-4


# Faults, each refused


def changed(source, number, **given):
    """The maps with another place."""
    places = [replace(p, **given) if p.number == number else p for p in MAPS[source]]
    return {**MAPS, source: places}


def without(source, number):
    return {**MAPS, source: [p for p in MAPS[source] if p.number != number]}


FAULTS = {
    "a pointer to nothing": (
        lambda: changed("primitives", "Special operation", realised=("recipe:gate",)),
        "received recipe:gate",
    ),
    "neither realised nor left out": (
        lambda: changed("summary", "Confidence", left_out=""),
        "a place says what realises it",
    ),
    "an erratum of another document": (
        lambda: changed("extraction", "9.6", errata=("clip-bias",)),
        "erratum of the document extraction",
    ),
    "an erratum that is not there": (lambda: without("primitives", "Special operation"), "no spe"),
    "a recipe that is not there": (
        lambda: changed("primitives", "Embedding with flags", realised=("recipe:min",)),
        "no recipe:flag in Embedding with flags",
    ),
    "a place twice": (
        lambda: {**MAPS, "notation": [*MAPS["notation"], MAPS["notation"][-1]]},
        "received Eq. 23",
    ),
    "a place before every section": (
        lambda: {**MAPS, "summary": MAPS["summary"][10:]},
        "begins with a section",
    ),
    "a document without a map": (
        lambda: {name: places for name, places in MAPS.items() if name != "summary"},
        "each document has a map",
    ),
    "an unknown kind": (lambda: changed("notation", "23", kind="theorem"), "received theorem"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused(fault):
    maps, words = FAULTS[fault]
    with pytest.raises((InvalidValue, UnknownName)) as refused:
        page.page(maps())
    assert words in str(refused.value)


def test_a_pointer_to_the_paper_leads_to_a_realised_place_of_its_map():
    place = MAPS["extraction"][0]
    assert page.link("paper:Eq. 29", place) == "[`Eq. 29`](cookbook.md#47-comparisons)"
    for name in ("Eq. 50", "Section 10"):  # one that is not there, one that nothing realises
        with pytest.raises(InvalidValue, match=f"received paper:{name}"):
            page.link(f"paper:{name}", place)


def test_links_to_headings_of_the_map_of_the_paper_lead_somewhere():
    headings = re.findall(r"^#+ (.*)$", page.cookbook.PAGE.read_text("utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in headings}
    found = set(re.findall(r"cookbook\.md#([^)]*)\)", page.PAGE.read_text("utf-8")))
    assert len(found) > 40 and found <= anchors


def test_recipes_of_the_documents_are_some():
    assert sum(each.document == page.pages.SOURCES["primitives"] for each in tf.recipes()) == 9
