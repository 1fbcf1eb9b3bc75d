"""Write docs/cookbook.md, the map of the Cookbook. Run: python docs/cookbook.py"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pages
from transformist.catalogue import recipes
from transformist.catalogue.cookbook_place import PrintedPlace
from transformist.errors import InvalidValue, UnknownName

PAGE = Path(__file__).with_name("cookbook.md")
DATA = pages.ROOT / "src" / "transformist" / "catalogue" / "cookbook_places"
ERRATA = Path(__file__).with_name("errata")

EQUATIONS = 49
"""The number of the last equation of the paper."""

NUMBERS = {
    "section": r"\d+(\.\d+)*",
    "definition": r"\d+\.\d+",
    "equation": r"\d+",
    "lemma": r"\d+\.\d+",
    "proposition": r"\d+\.\d+",
    "table": r"Table \d+, .+",
}
"""By kind of place, what its number looks like; a row of a table is numbered by its name."""

CORRECTED = "corrected:"
"""What a note on a formula that does not hold begins with."""


# Reading


def read(folder: Path = DATA) -> tuple[PrintedPlace, ...]:
    """The places of every file of a folder, in the order of their names.

    Raises:
        InvalidValue: for a file of anything but places, and a place with a field too few, too many
            or of the wrong kind.

    """
    return tuple(place_of(entry, where) for where, entry in pages.tables(folder, "place"))


def place_of(entry: dict[str, Any], where: str) -> PrintedPlace:
    """The place of a table in a file.

    Raises:
        InvalidValue: for a field too few, too many or of the wrong kind.

    """
    lists = {name: entry.get(name, []) for name in ("realised", "errata")}
    strings = [value for name, value in entry.items() if name not in lists]
    known = {each.name for each in dataclasses.fields(PrintedPlace)}
    if (
        not {"kind", "number", "title"} <= entry.keys() <= known
        or not all(isinstance(each, list) for each in lists.values())
        or not all(isinstance(each, str) for each in itertools.chain(strings, *lists.values()))
    ):
        raise InvalidValue(
            "a place has the strings kind, number and title, and may have the lists realised and "
            "errata of strings and the strings left_out and note",
            received=repr(entry),
            where=where,
            remedy="correct its fields",
        )
    return PrintedPlace(**{**entry, **{name: tuple(each) for name, each in lists.items()}})


# What a pointer leads to


def _recipe(name: str) -> Path | None:
    modules = {each.name: each.construct.__module__ for each in recipes()}
    return pages.file_of(modules[name]) if name in modules else None


def _page(name: str) -> Path | None:
    return Path(name) if pages.is_file(name) else None


LEADS: dict[str, Callable[[str], Path | None]] = {
    "recipe": _recipe,
    "code": pages.code,
    "test": pages.test,
    "page": _page,
}
"""By kind of pointer, the file it leads into, from the root of the project; `None` for none."""


def link(pointer: str, place: PrintedPlace) -> str:
    """A pointer as a link from the page.

    Raises:
        InvalidValue: where it leads to nothing.

    """
    kind, _, name = pointer.partition(":")
    path = LEADS[kind](name) if kind in LEADS else None
    if path is None:
        raise InvalidValue(
            "a place of the map points to a recipe:, code:, test: or page: that exists",
            received=pointer,
            where=str(place),
            remedy="name what realises it now, or say in left_out why nothing does",
        )
    target = path.relative_to("docs") if path.is_relative_to("docs") else ".." / path
    return f"[`{name.removeprefix('transformist.')}`]({target.as_posix()})"


# What a map must be


def check(places: Sequence[PrintedPlace]) -> None:
    """Refuse a map that is not one.

    Raises:
        InvalidValue: for a place that is not of the paper, twice there, or out of order; that says
            neither what realises it nor why nothing does, or points to nothing; that names errata
            and corrects nothing; for an equation that is missing; for a recipe of a section of the
            paper that does not stand there.
        UnknownName: for a place that names an erratum of the Cookbook that does not exist.

    """
    known = errata_of("cookbook")
    for place in places:
        check_place(place, NUMBERS)
        check_errata(place, known, "the Cookbook")
        for pointer in place.realised:
            link(pointer, place)
    _check_order(places)
    _check_recipes(places)


def errata_of(source: str) -> list[str]:
    """The ids of the errata of one of the documents."""
    errata = (table for _, table in pages.tables(ERRATA, "erratum"))
    return [str(each.get("id")) for each in errata if each.get("source") == source]


def check_place(place: PrintedPlace, numbers: Mapping[str, str]) -> None:
    """Refuse a place of an unknown kind, without a number or title, or that says nothing."""
    if not re.fullmatch(numbers.get(place.kind, "(?!)"), place.number) or not place.title:
        raise InvalidValue(
            f"a place is a {', '.join(numbers)}, with its number and a title",
            received=f"{place.kind} {place.number!r}, title {place.title!r}",
            where=str(place),
            remedy="write it as the places beside it",
        )
    if not place.realised and not place.left_out:
        raise InvalidValue(
            "a place says what realises it, or in left_out why nothing does",
            received="neither",
            where=str(place),
            remedy="add realised or left_out",
        )


def check_errata(place: PrintedPlace, known: Sequence[str], document: str) -> None:
    """Refuse errata that the document does not have, and errata without a correction."""
    for name in place.errata:
        if name not in known:
            raise UnknownName.among(f"erratum of {document}", name, known, str(place))
    if place.errata and not place.note.startswith(CORRECTED):
        raise InvalidValue(
            f"a place names errata where its note says what is {CORRECTED}",
            received=f"errata {', '.join(place.errata)} and the note {place.note!r}",
            where=str(place),
            remedy="say it in the note, or leave them out",
        )


def _check_order(places: Sequence[PrintedPlace]) -> None:
    sections = [_order(each.number) for each in places if each.kind == "section"]
    equations = [int(each.number) for each in places if each.kind == "equation"]
    seen: set[tuple[str, str]] = set()
    for place in places:
        if (place.kind, place.number) in seen or places[0].kind != "section":
            _disorder("each place stands once, in a section", str(place))
        seen.add((place.kind, place.number))
    for before, after in itertools.pairwise(sections):
        if before >= after:
            _disorder("sections stand in their order", f"{_dotted(after)} after {_dotted(before)}")
    for expected, number in itertools.zip_longest(range(1, EQUATIONS + 1), equations):
        if number != expected:
            _disorder(
                f"equations 1 to {EQUATIONS} all stand there, in order",
                f"{_equation(number)} where {_equation(expected)} is due",
            )


def _equation(number: int | None) -> str:
    return "none" if number is None else f"Eq. {number}"


def _order(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def _dotted(order: tuple[int, ...]) -> str:
    return ".".join(map(str, order))


def _disorder(invariant: str, received: str) -> None:
    raise InvalidValue(
        invariant, received=received, where="the map", remedy="go through cookbook_places/*.toml"
    )


def _check_recipes(places: Sequence[PrintedPlace]) -> None:
    """Each recipe of the Cookbook stands in its section."""
    here = {
        (section.number, pointer)
        for section, parts in by_section(places)
        for place in (section, *parts)
        for pointer in place.realised
    }
    for each in recipes():
        due = each.cookbook_section
        if due is not None and (due, f"recipe:{each.name}") not in here:
            raise InvalidValue(
                "every recipe of a section of the Cookbook stands on the map there",
                received=f"no recipe:{each.name} in section {due}",
                where="the map",
                remedy="add it in cookbook_places/ where it realises something",
            )


def by_section(places: Sequence[PrintedPlace]) -> Iterator[tuple[PrintedPlace, list[PrintedPlace]]]:
    """Each section, with the places between its heading and the next."""
    starts = [index for index, place in enumerate(places) if place.kind == "section"]
    for start, end in zip(starts, [*starts[1:], len(places)], strict=True):
        yield places[start], list(places[start + 1 : end])


# The page

INTRODUCTION = """# A map of the Cookbook

Made by `python docs/cookbook.py` from `src/transformist/catalogue/cookbook_places/*.toml`.
`transformist show 5.7`, `show lemma-5.3` and `show table-2` look a place up. Every section,
definition, numbered equation, lemma, proposition and row of a table of *The Transformer Cookbook*
([arXiv 2510.00368](https://arxiv.org/abs/2510.00368)), in the order of the paper, and what realises
it here: a recipe (`transformist show NAME` has its claim, which `tests/catalogue/test_claims.py`
checks in every arithmetic that it names), code that can be imported, a test, or a page.
*Left out* says what is not here, and why. *Corrected* says where the printed formula does not hold
and another one is realised; the [errata](errata.md) that it names have the counterexamples.

{count} places, of which {whole} are left out as a whole and {part} in part.
"""


def page(places: Sequence[PrintedPlace]) -> str:
    """The whole page."""
    check(places)
    whole = sum(not place.realised for place in places)
    part = sum(bool(place.left_out) for place in places) - whole
    lines = [INTRODUCTION.format(count=len(places), whole=whole, part=part)]
    for section, parts in by_section(places):
        level = section.number.count(".") + 2
        lines += [f"{'#' * level} {section.number} {section.title}", "", content(section), ""]
        lines += [f"- **{place}**, {place.title}: {content(place)}" for place in parts]
        lines += [""] if parts else []
    return "\n".join(lines).rstrip() + "\n"


def content(place: PrintedPlace, link: Callable[[str, PrintedPlace], str] = link) -> str:
    """The text of a place: links to what realises it, the note, and what is left out."""
    kinds = itertools.groupby(place.realised, key=lambda pointer: pointer.partition(":")[0])
    links = "; ".join(
        f"{kind} {', '.join(link(pointer, place) for pointer in group)}" for kind, group in kinds
    )
    left_out = f"*Left out:* {place.left_out}." if place.left_out else ""
    note = re.sub(f"^{CORRECTED}", f"*{CORRECTED.capitalize()}*", place.note)
    if place.errata:
        note += f" ({', '.join(f'[{name}](errata.md#{name})' for name in place.errata)})"
    sentences = [f"{links}." if links else "", f"{note}." if note else ""]
    return " ".join(each for each in [*sentences, left_out] if each)


if __name__ == "__main__":
    pages.write(PAGE, lambda: page(read()))
