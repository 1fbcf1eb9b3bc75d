"""Write docs/maps.md, the maps of the sources beside the Cookbook. Run: python docs/maps.py"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import cookbook
import pages
from cookbook import PrintedPlace
from transformist.catalogue import recipes
from transformist.errors import InvalidValue

PAGE = Path(__file__).with_name("maps.md")
DATA = Path(__file__).with_name("maps")

KINDS = {"section": ".+", "equation": r"\d+", "row": ".+"}
"""By kind of place, what its number looks like; most headings have none, and stand for it."""

SOURCES = [name for name in pages.SOURCES if name != "cookbook"]
"""The documents, by the names that they have in the errata."""

Map = Sequence[PrintedPlace]


# Reading, and what a pointer leads to


def read(folder: Path = DATA) -> dict[str, tuple[PrintedPlace, ...]]:
    """The map of each document, read from the file of its name.

    Raises:
        InvalidValue: as `cookbook.read`.

    """
    maps: dict[str, list[PrintedPlace]] = {}
    for where, entry in pages.tables(folder, "place"):
        source = Path(where.partition(",")[0]).stem
        maps.setdefault(source, []).append(cookbook.place_of(entry, where))
    return {source: tuple(places) for source, places in maps.items()}


def link(pointer: str, place: PrintedPlace) -> str:
    """A pointer as a link from the page; `paper:PLACE` leads to the map of the Cookbook.

    Raises:
        InvalidValue: where it leads to nothing.

    """
    kind, _, name = pointer.partition(":")
    if kind != "paper":
        return cookbook.link(pointer, place)
    if name not in _paper():
        raise InvalidValue(
            "a pointer paper: leads to a place on the map of the Cookbook that is realised there",
            received=pointer,
            where=str(place),
            remedy="name it as docs/cookbook.md does, such as Section 5.3.1",
        )
    return f"[`{name}`](cookbook.md#{_paper()[name]})"


@functools.cache
def _paper() -> Mapping[str, str]:
    """The places of the Cookbook that something realises, with the anchors of their sections."""
    return {
        str(place): _anchor(f"{section.number} {section.title}")
        for section, parts in cookbook.by_section(cookbook.read())
        for place in (section, *parts)
        if place.realised
    }


def _anchor(heading: str) -> str:
    """The anchor that Markdown gives to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


# What a map must be


def check(maps: Mapping[str, Map]) -> None:
    """Refuse maps that are not whole.

    Raises:
        InvalidValue: for a document without a map; for a place of an unknown kind, twice in its
            section, or before every section; for one that points to nothing, or says neither what
            realises it nor why nothing does; for an erratum or a recipe of the document that does
            not stand on its map.
        UnknownName: for an erratum that the document does not have.

    """
    if set(maps) != set(SOURCES):
        _refuse("each document has a map", ", ".join(maps), "docs/maps/")
    for source, places in maps.items():
        known = cookbook.errata_of(source)
        for place in places:
            cookbook.check_place(place, KINDS)
            cookbook.check_errata(place, known, f"the document {source}")
            for pointer in place.realised:
                link(pointer, place)
        _check_once(source, places)
        named = {name for place in places for name in place.errata}
        for missing in [name for name in known if name not in named]:
            _refuse("every erratum of a document stands on its map", f"no {missing}", source)
        _check_recipes(source, places)


def _check_once(source: str, places: Map) -> None:
    if places[0].kind != "section":
        _refuse("a map begins with a section", str(places[0]), source)
    seen = set()
    for section, parts in cookbook.by_section(places):
        for place in (section, *parts):
            key = section.number, place.kind, place.number
            if key in seen:
                _refuse("each place stands once in its section", str(place), source)
            seen.add(key)


def _check_recipes(source: str, places: Map) -> None:
    """Each recipe that is from the document stands in its section."""
    here = {
        (section.number, pointer)
        for section, parts in cookbook.by_section(places)
        for place in (section, *parts)
        for pointer in place.realised
    }
    for each in recipes():
        pointer = f"recipe:{each.name}"
        if each.document == pages.SOURCES[source] and (each.section, pointer) not in here:
            _refuse(
                "every recipe of a document stands on its map, in its section",
                f"no {pointer} in {each.section}",
                source,
            )


def _refuse(invariant: str, received: str, source: str) -> None:
    raise InvalidValue(
        invariant, received=received, where=source, remedy="correct docs/maps/*.toml"
    )


# The page

INTRODUCTION = """# Maps of the other sources

Made by `python docs/maps.py` from `docs/maps/*.toml`. [cookbook.md](cookbook.md) maps the paper
itself. This page maps the other documents that recipes and errata refer to, in their own order and
under their own headings: every section, numbered equation and row of a table, and what realises it
here. *Paper* leads to the place of the same formula on the map of the paper, which has its recipes,
code and tests. *Left out* says what is not here, and why. *Corrected* says where the document is
wrong; the [errata](errata.md) that it names have the counterexamples.
"""


def page(maps: Mapping[str, Map]) -> str:
    """The whole page."""
    check(maps)
    lines = [INTRODUCTION]
    for source in SOURCES:
        places = maps[source]
        part = sum(bool(place.left_out) for place in places)
        lines += [f"## {pages.SOURCES[source]}", ""]
        lines += [f"{len(places)} places, of which {part} are left out as a whole or in part.", ""]
        for section, parts in cookbook.by_section(places):
            lines += [f"### {_heading(section)}", "", cookbook.content(section, link), ""]
            for place in parts:
                text = cookbook.content(place, link)
                lines.append(f"- **{place}**, {place.title}: {text}")
            lines += [""] if parts else []
    return "\n".join(lines).rstrip() + "\n"


def _heading(section: PrintedPlace) -> str:
    """The heading of a section, and its subject after it where that says more."""
    separator = " " if re.fullmatch(r"[\d.]+", section.number) else ": "
    return f"{section.number}{separator}{section.title}"


if __name__ == "__main__":
    pages.write(PAGE, lambda: page(read()))
