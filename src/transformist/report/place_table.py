"""Places of the Cookbook for a person: what realises each, and where it differs from print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from transformist.catalogue import recipe as find_recipe
from transformist.catalogue.cookbook_place import PrintedPlace


def place_facts(places: Sequence[PrintedPlace]) -> list[dict[str, Any]]:
    """The facts of each place, as plain values.

    Example:
        >>> from transformist.catalogue.cookbook_place import find_places
        >>> place_facts(find_places("lemma-5.3"))[0]["code"][0]
        'transformist.bounds.softmax_remainder'

    """
    return [
        {
            "place": str(each),
            "title": each.title,
            "recipes": [
                {"name": name, "summary": find_recipe(name).summary}
                for name in each.pointers("recipe")
            ],
            "code": list(each.pointers("code")),
            "left_out": each.left_out,
            "note": each.note,
            "errata": list(each.errata),
        }
        for each in places
    ]


def place_lines(facts: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    """The lines that `show` prints for some places."""
    names = [row["name"] for each in facts for row in each["recipes"]]
    width = max(map(len, names), default=0)
    for number, each in enumerate(facts):
        yield Text(("\n" if number else "") + f"{each['place']}: {each['title']}", style="bold")
        for row in each["recipes"]:
            yield Text(f"  {row['name']:{width}}  {row['summary']}")
        for name in each["code"]:
            yield Text(f"  {name}")
        if not each["recipes"] and not each["code"]:
            yield Text("  no recipe and no code of its own")
        if each["note"]:
            yield Text(f"  {each['note']}")
        if each["left_out"]:
            yield Text(f"  left out: {each['left_out']}")
    if names:
        yield Text(f"\ntransformist show {names[0]} has the claim and the size of a recipe")
