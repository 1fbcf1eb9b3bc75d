"""The map of the Cookbook: that it is whole, and leads to what exists."""

import importlib.util
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import transformist as tf
from transformist.errors import InvalidValue, UnknownName

ROOT = Path(__file__).parents[1]

_spec = importlib.util.spec_from_file_location("cookbook_page", ROOT / "docs" / "cookbook.py")
page = sys.modules["cookbook_page"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(page)

PLACES = page.read()

# What stands in the paper, by the numbers of its headings, formulas and tables

SECTIONS = """
1 2 2.1 2.2 2.2.1 2.2.2 2.2.3 2.3 3 3.1 3.2 3.3 3.4 3.5 3.5.1 3.5.2
4 4.1 4.2 4.3 4.4 4.5 4.6 4.7 4.8 4.9
5 5.1 5.1.1 5.1.2 5.2 5.3 5.3.1 5.3.2 5.3.3 5.3.4 5.4 5.5 5.6 5.7
6 6.1 6.2 6.3 6.4 7 7.1 7.1.1 7.2 8 8.1 8.2 8.3
9 9.1 9.1.1 9.1.2 9.2 9.2.1 9.2.2 9.2.3 10 11
"""

EQUATIONS = {
    "2.2": range(1, 6),
    "2.2.2": range(6, 17),
    "2.2.3": range(17, 21),
    "4.3": range(21, 23),
    "4.6": range(23, 29),
    "4.7": range(29, 35),
    "4.8": range(35, 36),
    "5.3.1": range(36, 37),
    "5.3.2": range(37, 39),
    "5.6": range(39, 40),
    "8.3": range(40, 41),
    "9.2.1": range(41, 45),
    "9.2.2": range(45, 50),
}

STATEMENTS = {
    ("definition", "2.2"): "2.1",
    ("definition", "2.2.2"): "2.2 2.3 2.4 2.5",
    ("definition", "4.1"): "4.1",
    ("definition", "4.6"): "4.2",
    ("definition", "5"): "5.1",
    ("definition", "5.7"): "5.2",
    ("definition", "6"): "6.1",
    ("definition", "6.1"): "6.2 6.3",
    ("lemma", "5.7"): "5.3",
    ("lemma", "8.2"): "8.1",
    ("lemma", "8.3"): "8.2 8.3",
    ("proposition", "7.2"): "7.1 7.2 7.3 7.4 7.5",
}

ROWS = {"1": 10, "2": 8, "3": 6, "4": 7, "5": 4}


def numbers(kind):
    """The numbers of this kind, by section."""
    found = {}
    for section, parts in page.by_section(PLACES):
        if here := [each.number for each in parts if each.kind == kind]:
            found[section.number] = here
    return found


def test_the_page_is_made_of_the_data():
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.page(PLACES), "run python docs/cookbook.py"


def test_every_section_stands_there():
    assert [each.number for each in PLACES if each.kind == "section"] == SECTIONS.split()


def test_every_equation_stands_in_its_section():
    assert numbers("equation") == {key: list(map(str, eqs)) for key, eqs in EQUATIONS.items()}
    assert max(map(max, EQUATIONS.values())) == page.EQUATIONS


@pytest.mark.parametrize("kind", ["definition", "lemma", "proposition"])
def test_every_statement_stands_in_its_section(kind):
    expected = {key[1]: text.split() for key, text in STATEMENTS.items() if key[0] == kind}
    assert numbers(kind) == expected


def test_every_row_of_a_table_stands_there():
    rows = [each.number.split(", ")[0] for each in PLACES if each.kind == "table"]
    assert {f"Table {table}": count for table, count in ROWS.items()} == {
        table: rows.count(table) for table in sorted(set(rows))
    }
    booleans = [f"Table 4, {each.name}" for each in tf.boolean_representations()]
    assert numbers("table")["3.1"] == booleans


def test_the_map_is_one():
    page.check(PLACES)


def test_links_of_the_page_lead_to_files():
    links = re.findall(r"\]\(([^)]+)\)", page.PAGE.read_text(encoding="utf-8"))
    local = {each for each in links if "://" not in each}
    assert len(local) > 30
    for each in local:
        path, _, anchor = each.partition("#")
        file = ROOT / "docs" / path
        assert file.is_file(), each
        assert not anchor or f'<a id="{anchor}"></a>' in file.read_text("utf-8"), each


def test_errata_are_linked_after_the_note():
    place = replace(PLACES[0], note="corrected: it is 3", errata=("one-hot-gap", "clip-bias"))
    links = "[one-hot-gap](errata.md#one-hot-gap), [clip-bias](errata.md#clip-bias)"
    assert f" *Corrected:* it is 3 ({links})." in page.page([place, *PLACES[1:]])


@pytest.mark.parametrize(
    ("pointer", "text"),
    [
        ("recipe:min", "[`min`](../src/transformist/catalogue/feed_forward.py)"),
        ("code:transformist.parallel", "[`parallel`](../src/transformist/assembly/joining.py)"),
        (
            "code:transformist.model.Attention.W_V",
            "[`model.Attention.W_V`](../src/transformist/model/attention.py)",
        ),
        (
            "code:transformist.bounds",
            "[`bounds`](../src/transformist/bounds.py)",
        ),
        (
            "code:transformist.model.mask.Mask",
            "[`model.mask.Mask`](../src/transformist/model/mask.py)",
        ),
        (
            "test:tests/test_cookbook.py::test_the_map_is_one",
            "[`tests/test_cookbook.py::test_the_map_is_one`](../tests/test_cookbook.py)",
        ),
        ("page:docs/precision.md", "[`docs/precision.md`](precision.md)"),
    ],
)
def test_a_pointer_becomes_a_link(pointer, text):
    assert page.link(pointer, PLACES[0]) == text


# Faults, each refused


def test_nothing_but_what_exists_is_pointed_to():
    place = next(each for each in PLACES if str(each) == "Eq. 9")
    for pointer in (
        "recipe:no-such-recipe",
        "recipe:",
        "code:transformist.model.Attention.W_X",
        "code:transformist.model.no_such_module.softmax",
        "code:transformist.model.weighting._or_one",
        "code:numpy.array",
        "code:numpy.parallel",
        "test:tests/model/test_attention.py::test_no_such_thing",
        "test:tests/model/test_attention.py::by_definition",
        "test:tests/model/test_attention.py",
        "test:tests/model/test_parts.py::test_equals_the_definition",
        "test:tests/no_such_file.py::test_it",
        "page:docs/no_such_page.md",
        "page:../map.md",
        "page:docs",
        "figure:1",
        "min",
    ):
        with pytest.raises(InvalidValue, match=r"^Eq\. 9: .* that exists; received ") as refused:
            page.check(_changed(place, realised=("recipe:min", pointer)))
        assert f"received {pointer}; name what realises it now" in str(refused.value)


def _changed(place, **given):
    return [replace(each, **given) if each is place else each for each in PLACES]


def _without(*names):
    return [each for each in PLACES if str(each) not in names]


def _exchanged(one, other):
    places = {str(each): each for each in PLACES}
    swapped = {one: places[other], other: places[one]}
    return [swapped.get(str(each), each) for each in PLACES]


def _by_name(name):
    return next(each for each in PLACES if str(each) == name)


FAULTS = {
    "an equation is missing": (
        lambda: _without("Eq. 36"),
        "equations 1 to 49 all stand there, in order; received Eq. 37 where Eq. 36 is due",
    ),
    "the last equation is missing": (
        lambda: _without("Eq. 49"),
        "received none where Eq. 49 is due",
    ),
    "an equation too many": (
        lambda: [*PLACES, replace(_by_name("Eq. 49"), number="50")],
        "received Eq. 50 where none is due",
    ),
    "equations exchanged": (
        lambda: _exchanged("Eq. 7", "Eq. 8"),
        "received Eq. 8 where Eq. 7 is due",
    ),
    "sections exchanged": (
        lambda: _exchanged("Section 5.1.1", "Section 5.1.2"),
        "sections stand in their order; received 5.1.1 after 5.1.2",
    ),
    "a place twice": (
        lambda: [*PLACES, _by_name("Lemma 8.1")],
        "each place stands once, in a section; received Lemma 8.1",
    ),
    "a place before every section": (
        lambda: [_by_name("Lemma 8.1"), *_without("Lemma 8.1")],
        "each place stands once, in a section; received Lemma 8.1",
    ),
    "a recipe is missing": (
        lambda: _changed(_by_name("Section 4.9"), realised=("recipe:min",)),
        "received no recipe:conditional in section 4.9; add it",
    ),
    "a recipe in another section only": (
        lambda: _changed(_by_name("Section 5.5"), realised=("recipe:tie-break",)),
        "received no recipe:split-heads in section 5.5; add it",
    ),
    "neither realised nor left out": (
        lambda: _changed(_by_name("Section 10"), left_out=""),
        "Section 10: a place says what realises it, or in left_out why nothing does",
    ),
    "an unknown kind": (
        lambda: _changed(_by_name("Lemma 8.1"), kind="theorem"),
        "theorem 8.1: a place is a section, definition, equation, lemma, proposition, table",
    ),
    "a number of another kind": (
        lambda: _changed(_by_name("Eq. 9"), number="2.3"),
        "received equation '2.3'",
    ),
    "an erratum that is none": (
        lambda: _changed(_by_name("Eq. 38"), errata=("one-hot-gap", "one-hot-gp")),
        "Eq. 38: no erratum of the Cookbook has this name; received 'one-hot-gp'",
    ),
    "an erratum of another document": (
        lambda: _changed(_by_name("Eq. 38"), errata=("notation-width",)),
        "Eq. 38: no erratum of the Cookbook has this name; received 'notation-width'",
    ),
    "errata of a note that corrects nothing": (
        lambda: _changed(_by_name("Eq. 9"), note="it is 3", errata=("one-hot-gap",)),
        "Eq. 9: a place names errata where its note says what is corrected:; received errata",
    ),
    "no title": (lambda: _changed(_by_name("Eq. 9"), title=""), "title ''; write it as"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused(fault):
    places, words = FAULTS[fault]
    with pytest.raises((InvalidValue, UnknownName)) as refused:
        page.page(places())
    assert words in str(refused.value)


def test_recipes_of_other_documents_need_no_place(monkeypatch):
    other = replace(tf.recipe("min"), name="other", document="A paper", section="4.4")
    monkeypatch.setattr(page, "recipes", lambda: (*tf.recipes(), other))
    page.check(PLACES)
    for section in ("4.4", "4.10", "The encoder"):
        here = replace(tf.recipe("min"), name="other", section=section)
        monkeypatch.setattr(page, "recipes", lambda each=here: (*tf.recipes(), each))
        with pytest.raises(InvalidValue, match=f"no recipe:other in section {section}; add it in"):
            page.check(PLACES)


PLACE = '[[place]]\nkind = "equation"\nnumber = "1"\ntitle = "one"\nrealised = ["recipe:min"]\n'


@pytest.mark.parametrize(
    "text",
    [
        PLACE.replace("kind", "kin"),
        PLACE.replace('title = "one"\n', ""),
        PLACE.replace('"1"', "1"),
        PLACE.replace('["recipe:min"]', '"recipe:min"'),
        PLACE.replace('["recipe:min"]', "[1]"),
        PLACE + "note = 3\n",
        PLACE + 'errata = "clip-bias"\n',
        PLACE + "errata = [3]\n",
        PLACE + 'other = ""\n',
    ],
)
def test_a_field_that_is_wrong_is_refused_with_its_place(text, tmp_path):
    (tmp_path / "01.toml").write_text(PLACE, "utf-8")
    (tmp_path / "02.toml").write_text(PLACE + text, "utf-8")
    with pytest.raises(InvalidValue, match=r"/02\.toml, place 2: a place has the strings kind"):
        page.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PLACE.replace("[[place]]", "[[places]]"), r"received places \("),
        (PLACE.replace("[[place]]", "[place]"), r"received place \("),
        (PLACE + "[[places]]", r"received place \(.*, places \("),
        ("", "received an empty file; write"),
        ("place = []", r"received place \(\[\]\)"),
    ],
)
def test_a_file_of_something_else_is_refused(text, words, tmp_path):
    (tmp_path / "01.toml").write_text(text, "utf-8")
    with pytest.raises(InvalidValue, match=rf"/01\.toml: the file holds tables .* {words}"):
        page.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PLACE + "note", r"/01\.toml: the file is TOML"),
        ("place = [3]", "place 1: an entry is a table"),
    ],
)
def test_what_is_no_table_is_refused(text, words, tmp_path):
    (tmp_path / "01.toml").write_text(text, "utf-8")
    with pytest.raises(InvalidValue, match=words):
        page.read(tmp_path)


def test_files_are_read_in_the_order_of_their_names(tmp_path):
    for name in ("10", "02"):
        (tmp_path / f"{name}.toml").write_text(PLACE.replace('"1"', f'"{int(name)}"'), "utf-8")
    assert [each.number for each in page.read(tmp_path)] == ["2", "10"]
