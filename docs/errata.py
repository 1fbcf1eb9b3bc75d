"""Write docs/errata.md: the formulas that are wrong in print. Run: python docs/errata.py"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import pages
from pages import SOURCES
from transformist.catalogue import recipes
from transformist.errors import InvalidValue, UnknownName

DATA = Path(__file__).with_name("errata")
PAGE = Path(__file__).with_name("errata.md")

BY_SECTION = ("cookbook", "extraction")
"""The sources of which an entry is of a section of the Cookbook."""


class Kind(NamedTuple):
    """What an entry can be.

    Attributes:
        meaning: for the page.
        brief: whether it is told in a line, and no recipe has to heed it.

    """

    meaning: str
    brief: bool = False


KINDS = {
    "wrong": Kind("the formula or statement fails as printed"),
    "ambiguous": Kind("it can be read in two ways that differ"),
    "missing": Kind("it fails without a condition that is not printed"),
    "wording": Kind("a slip of words; the formulas beside it hold", brief=True),
    "scan": Kind(
        "a slip that may be of the text and not of the paper: compare the PDF", brief=True
    ),
}

REMEDY = "CONTRIBUTING.md says what an entry holds"


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """One slip.

    Attributes:
        id: kebab-case, unique, stable; the anchor on the page.
        source: a key of `SOURCES`.
        where: the place, for a reader.
        section: of the Cookbook; empty for sources that are not by its sections.
        kind: a key of `KINDS`.
        printed: the formula as printed.
        problem: what is wrong with it.
        correction: what holds.
        test: the test that shows both, `tests/errata/test_FILE.py::test_NAME`.
        untested: why there is none, for kind wrong.
        apart: recipes of the section that it does not concern, with the reason; not on the page.

    """

    id: str
    source: str
    where: str
    section: str
    kind: str
    printed: str
    problem: str
    correction: str
    test: str = ""
    untested: str = ""
    apart: Mapping[str, str] = field(default_factory=dict)


OPTIONAL = ("test", "untested", "apart")
REQUIRED = tuple(each.name for each in fields(Erratum) if each.name not in OPTIONAL)

PATTERNS = {
    "id": (r"[a-z0-9]+(-[a-z0-9]+)*", "kebab-case, such as clip-bias"),
    "section": (r"(\d+(\.\d+)*)?", "a section such as 5.3.4, or empty"),
    "test": (r"(tests/errata/test_\w+\.py::test_\w+)?", "tests/errata/test_FILE.py::test_NAME"),
}


def load(folder: Path = DATA) -> list[Erratum]:
    """All entries, file by file in alphabetical order, each file in its own.

    Raises:
        InvalidValue, UnknownName: for data that are not as `Erratum` says, with file and id.

    """
    entries: dict[str, Erratum] = {}
    for where, table in pages.tables(folder, "erratum"):
        found = _erratum(table, where)
        if found.id in entries:
            raise _refusal("an id is unique over all files", repr(found.id), where)
        entries[found.id] = found
    return list(entries.values())


def _refusal(invariant: str, received: str, where: str) -> InvalidValue:
    return InvalidValue(invariant, received=received, where=where, remedy=REMEDY)


def _erratum(table: Mapping[str, Any], where: str) -> Erratum:
    """One entry, checked."""
    for name in table:
        if name not in (*REQUIRED, *OPTIONAL):
            raise UnknownName.among("field of an erratum", name, (*REQUIRED, *OPTIONAL), where)
    for name in REQUIRED:
        if name not in table:
            raise _refusal(f"an entry has the field {name}", f"only {', '.join(table)}", where)
    texts = {name: value for name, value in table.items() if name != "apart"}
    found = Erratum(
        **{name: _text(name, value, where) for name, value in texts.items()},
        apart=_apart(table.get("apart", {}), where),
    )
    _require_consistent(found, where)
    return found


def _text(name: str, value: Any, where: str) -> str:
    """A field's text, its white space single."""
    if not isinstance(value, str):
        raise _refusal(f"the field {name} is text", repr(value), where)
    text = " ".join(value.split())
    if not text and name != "section":
        raise _refusal(f"the field {name} is not empty", repr(value), where)
    pattern, form = PATTERNS.get(name, (".*", ""))
    if not re.fullmatch(pattern, text):
        raise _refusal(f"the field {name} is {form}", repr(value), where)
    return text


def _apart(table: Any, where: str) -> dict[str, str]:
    if not isinstance(table, dict):
        raise _refusal("the field apart is a table of recipes and reasons", repr(table), where)
    return {name: _text(f"apart.{name}", reason, where) for name, reason in table.items()}


def _require_consistent(found: Erratum, where: str) -> None:
    """Refuse an entry whose fields do not go together."""
    if found.source not in SOURCES:
        raise UnknownName.among("source", found.source, SOURCES, where)
    if found.kind not in KINDS:
        raise UnknownName.among("kind of erratum", found.kind, KINDS, where)
    if bool(found.section) != (found.source in BY_SECTION):
        by = " and ".join(BY_SECTION)
        came = f"section {found.section!r} of {found.source}"
        raise _refusal(f"{by} are by section, and no other source is", came, where)
    if found.kind == "wrong" and not (found.test or found.untested):
        invariant = "an entry of kind wrong has a test, or says in untested why there is none"
        raise _refusal(invariant, "neither", where)
    if found.test and pages.test(found.test) is None:
        raise _refusal("the test that an entry names exists", found.test, where)
    if found.test and found.untested:
        raise _refusal("an entry has a test or says why there is none", "both", where)
    sections = {each.name: each.cookbook_section for each in recipes()}
    for name in found.apart:
        if name not in sections:
            raise UnknownName.among("recipe set apart", name, sections, where)
        if sections[name] != found.section:
            invariant = f"only recipes of section {found.section} are set apart"
            came = f"{name} of {sections[name] or 'another document'}"
            raise _refusal(invariant, came, where)


# The page

INTRODUCTION = """# Errata

Where formulas of the documents below are wrong, ambiguous, or miss a condition. The entries were
made from the text of these documents. The test that an entry names evaluates the printed formula as
it stands, shows where it fails, and shows that the correction does not. Recipes name what they
heed; `transformist show NAME` tells. This page is made by `python docs/errata.py` from the files in
`docs/errata/`.
"""


def page(entries: Sequence[Erratum]) -> str:
    """The whole page."""
    lines = [INTRODUCTION, *_summary(entries), ""]
    for source, title in SOURCES.items():
        chosen = [each for each in entries if each.source == source]
        if chosen:
            lines += [f"## {title}", ""]
        for section in sorted({each.section for each in chosen}, key=_number):
            if section:
                lines += [f"### Section {section}", ""]
            lines += _section([each for each in chosen if each.section == section])
    return "\n".join(lines).rstrip() + "\n"


def _number(section: str) -> list[int]:
    return [int(part) for part in section.split(".") if part]


def _summary(entries: Sequence[Erratum]) -> Iterator[str]:
    """How many there are of each kind."""
    yield "| kind | entries | what it means |"
    yield "|---|---|---|"
    for name, kind in KINDS.items():
        yield f"| {name} | {sum(each.kind == name for each in entries)} | {kind.meaning} |"


def _section(entries: Sequence[Erratum]) -> Iterator[str]:
    """Each entry, those told in a line last."""
    brief = [each for each in entries if KINDS[each.kind].brief]
    for each in entries:
        if each not in brief:
            yield from _long(each)
    yield from map(_short, brief)
    if brief:
        yield ""


def _long(found: Erratum) -> Iterator[str]:
    yield f'<a id="{found.id}"></a>'
    yield f"**{found.id}** ({found.kind}). {_prose(found.where)}:"
    yield ""
    yield f"- Printed: {_formula(found.printed)}"
    yield f"- Problem: {_prose(found.problem)}"
    yield f"- Correction: {_prose(found.correction)}"
    if found.test:
        yield f"- Test: {_link(found.test)}"
    if found.untested:
        yield f"- Not tested: {_prose(found.untested)}"
    heeding = ", ".join(f"`{each.name}`" for each in recipes() if found.id in each.errata)
    if heeding:
        yield f"- Heeded by: {heeding}"
    yield ""


def _short(found: Erratum) -> str:
    test = f" ({_link(found.test)})" if found.test else ""
    return (
        f'- <a id="{found.id}"></a>**{found.id}** ({found.kind}). {_prose(found.where)}: '
        f"{_formula(found.printed)}. {_prose(found.problem)} "
        f"Correction: {_prose(found.correction)}{test}"
    )


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[`{name}`](../{path})"


def _formula(text: str) -> str:
    """A code span, whatever backticks the text holds."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _prose(text: str) -> str:
    """The text with the marks of Markdown escaped, outside code spans."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"[*<~$]|(?<=\])\(", r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    pages.write(PAGE, lambda: page(load()))
