"""Places of the Cookbook: sections, definitions, equations, lemmas, tables, and what realises them.

The files in `cookbook_places/`, one a chapter, are also the source of the page docs/cookbook.md.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from transformist.errors import InvalidValue, UnknownName

LABELS = {
    "section": "Section {}",
    "definition": "Definition {}",
    "equation": "Eq. {}",
    "lemma": "Lemma {}",
    "proposition": "Proposition {}",
    "table": "{}",
    "row": "{}",
}
"""Printed name of each kind of place."""

KINDS = {
    "sec": "section",
    "section": "section",
    "def": "definition",
    "definition": "definition",
    "eq": "equation",
    "equation": "equation",
    "lemma": "lemma",
    "prop": "proposition",
    "proposition": "proposition",
    "table": "table",
}
"""Kind of place for each word that may stand before a number."""


@dataclass(frozen=True, kw_only=True)
class PrintedPlace:
    """A place of the paper.

    Attributes:
        kind: a key of `LABELS`.
        number: as printed; for a row of a table, "Table 2, First".
        title: what it is about.
        realised: what realises it: `recipe:NAME`, `code:IMPORTABLE.NAME`, `test:FILE::NAME`,
            `page:FILE`.
        left_out: what is not realised, and why.
        note: where what is realised differs from what is printed.
        errata: the entries of docs/errata.md on what the note says is corrected, by id.

    """

    kind: str
    number: str
    title: str
    realised: tuple[str, ...] = ()
    left_out: str = ""
    note: str = ""
    errata: tuple[str, ...] = ()

    def __str__(self) -> str:
        return LABELS.get(self.kind, f"{self.kind} {{}}").format(self.number)

    def pointers(self, kind: str) -> tuple[str, ...]:
        """The names in `realised` of one kind: recipe, code, test or page."""
        prefix = f"{kind}:"
        return tuple(each.removeprefix(prefix) for each in self.realised if each.startswith(prefix))


@functools.cache
def cookbook_places() -> tuple[PrintedPlace, ...]:
    """Every place of the Cookbook, in the order of the paper.

    Example:
        >>> str(cookbook_places()[0])
        'Section 1'

    """
    folder = files("transformist.catalogue") / "cookbook_places"
    chapters = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".toml")), key=lambda f: f.name
    )
    return tuple(
        _place(entry)
        for chapter in chapters
        for entry in tomllib.loads(chapter.read_text(encoding="utf-8"))["place"]
    )


def _place(entry: Mapping[str, Any]) -> PrintedPlace:
    lists = {name: tuple(entry.get(name, ())) for name in ("realised", "errata")}
    return PrintedPlace(**{**entry, **lists})


def is_place(given: str) -> bool:
    """True if a name has the form of a place: `5.7`, `lemma-5.3`, `eq-25`, `table-2`.

    Example:
        >>> is_place("5.7"), is_place("Table 2"), is_place("min"), is_place("theorem-1")
        (True, True, False, False)

    """
    return _split(given) is not None


def find_places(given: str) -> tuple[PrintedPlace, ...]:
    """The places of the Cookbook that a name refers to.

    A section comes with all that stands in it and in the sections below it, a table with its rows.

    Args:
        given: `5.7` or `section-5.7`, `definition-4.1`, `equation-25`, `lemma-5.3`,
            `proposition-7.1`, `table-2`; short forms are `sec`, `def`, `eq` and `prop`. Capital
            letters and spaces for hyphens are accepted.

    Raises:
        UnknownName: for a place that the paper does not have, with those of its kind.
        InvalidValue: for a name of another form.

    Example:
        >>> [str(place) for place in find_places("lemma-5.3")]
        ['Lemma 5.3']
        >>> [str(place) for place in find_places("5.1")]
        ['Section 5.1', 'Section 5.1.1', 'Section 5.1.2']

    """
    split = _split(given)
    if split is None:
        raise InvalidValue(
            "a place of the Cookbook must be a number of a section, or a kind and a number",
            received=repr(given),
            remedy="write 5.7, lemma-5.3, equation-25 or table-2",
        )
    kind, number = split
    reached = [(each, _numbers(each, section)) for each, section in _in_sections(kind)]
    found = tuple(each for each, numbers in reached if number in numbers)
    if not found:
        known = dict.fromkeys(f"{kind}-{each}" for _, numbers in reached for each in numbers)
        raise UnknownName.among("place of the Cookbook", f"{kind}-{number}", known)
    return found


def _split(given: str) -> tuple[str, str] | None:
    """The kind and the number of a place; `None` for a name of another form."""
    match = re.fullmatch(r"(?:([a-z]+)\.?[ -])?(\d+(?:\.\d+)*)", given.strip().lower())
    if match is None or (match[1] or "section") not in KINDS:
        return None
    return KINDS[match[1] or "section"], match[2]


def _in_sections(kind: str) -> Iterator[tuple[PrintedPlace, str]]:
    """The places that a name of this kind can refer to, each with the section it stands in.

    The name of a section refers to all that stands in it.
    """
    section = ""
    for each in cookbook_places():
        section = each.number if each.kind == "section" else section
        if kind in (each.kind, "section"):
            yield each, section if kind == "section" else ""


def _numbers(place: PrintedPlace, section: str) -> tuple[str, ...]:
    """The numbers that lead to a place: its own or its table's, or its section and those above."""
    if section:
        parts = section.split(".")
        return tuple(".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return (place.number.removeprefix("Table ").partition(",")[0],)
