"""The errata: their data, their page, their tests, and the recipes that heed them."""

import dataclasses
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import transformist as tf
from transformist.cli import main
from transformist.errors import InvalidValue, TransformistError, UnknownName

ROOT = Path(__file__).parents[2]

_spec = importlib.util.spec_from_file_location("errata_page", ROOT / "docs" / "errata.py")
errata = sys.modules["errata_page"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(errata)
ENTRIES = errata.load()


def test_the_page_is_made_of_the_data():
    written = errata.PAGE.read_text(encoding="utf-8")
    assert written == errata.page(ENTRIES), "run python docs/errata.py"


def test_the_page_has_every_entry():
    written = errata.page(ENTRIES)
    for each in ENTRIES:
        assert written.count(f'<a id="{each.id}"></a>') == 1
    changed = dataclasses.replace(ENTRIES[0], correction="something else")
    assert errata.page([changed, *ENTRIES[1:]]) != written


# Recipes that heed them


def unheeded(entries, recipes):
    """Where recipes and entries do not agree."""
    known = {each.id for each in entries}
    for recipe in recipes:
        for name in recipe.errata:
            if name not in known:
                yield f"{recipe.name} heeds {name}, which is no entry"
        if len(set(recipe.errata)) != len(recipe.errata):
            yield f"{recipe.name} names an entry twice"
        for each in entries:
            ruled = each.source == "cookbook" and not errata.KINDS[each.kind].brief
            if not ruled or each.section != recipe.cookbook_section:
                continue
            if (recipe.name in each.apart) == (each.id in recipe.errata):
                yield f"{recipe.name} heeds {each.id}, or is set apart, not both"


def test_recipes_heed_the_entries_of_their_section():
    assert list(unheeded(ENTRIES, tf.recipes())) == []


def test_a_recipe_that_does_not_heed_is_noticed():
    like = ENTRIES[0]
    entries = [
        dataclasses.replace(like, id="a", source="cookbook", section="4.4", kind="wrong", apart={}),
        dataclasses.replace(like, id="b", source="cookbook", section="4.4", kind="scan", apart={}),
        dataclasses.replace(like, id="c", source="extraction", section="4.4", kind="wrong"),
    ]

    def said(*named, apart=()):
        first = dataclasses.replace(entries[0], apart=dict.fromkeys(apart, "a reason"))
        least = dataclasses.replace(tf.recipe("min"), errata=named)
        return list(unheeded([first, *entries[1:]], [least]))

    assert said("a") == said("a", "b", "c") == said(apart=["min"]) == []
    assert said() == ["min heeds a, or is set apart, not both"]
    assert said("a", apart=["min"]) == said()
    assert said("a", "d") == ["min heeds d, which is no entry"]
    assert said("a", "a") == ["min names an entry twice"]
    elsewhere = dataclasses.replace(tf.recipe("min"), document="A paper")
    assert elsewhere.section == "4.4" and list(unheeded(entries, [elsewhere])) == []


def test_show_tells_what_a_recipe_heeds(capsys):
    heeding = next(each for each in tf.recipes() if each.errata)
    assert main(["show", heeding.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["errata"] == list(heeding.errata)
    assert main(["show", heeding.name]) == 0
    shown = capsys.readouterr().out
    assert heeding.errata[0] in shown and "docs/errata.md" in shown.replace("\n", "")
    ignorant = next(each for each in tf.recipes() if not each.errata)
    assert main(["show", ignorant.name]) == 0
    assert "errata" not in capsys.readouterr().out


# Refusals of bad data

GOOD = {
    "id": "some-slip",
    "source": "cookbook",
    "where": "4.4, the weights",
    "section": "4.4",
    "kind": "wrong",
    "printed": "x = y",
    "problem": "x is not y.",
    "correction": "x = z",
    "test": "tests/errata/test_errata.py::test_good_data_are_read",
    "apart": {"min": "it has no x"},
}


def toml(entry):
    """The entry as TOML; `None` leaves a field out."""
    lines = ["[[erratum]]"]
    for name, value in entry.items():
        if isinstance(value, dict):
            inner = ", ".join(f"{key} = {json.dumps(reason)}" for key, reason in value.items())
            lines.append(f"{name} = {{ {inner} }}")
        elif value is not None:
            lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def test_good_data_are_read(tmp_path):
    (tmp_path / "b.toml").write_text(toml(GOOD))
    (tmp_path / "a.toml").write_text(toml({**GOOD, "id": "other", "apart": None, "kind": "scan"}))
    other, found = errata.load(tmp_path)
    assert dataclasses.asdict(found) == {**GOOD, "untested": ""}
    assert other.id == "other" and other.apart == {}


def test_why_recipes_are_set_apart_is_not_on_the_page(tmp_path):
    (tmp_path / "a.toml").write_text(toml({**GOOD, "apart": {"min": "a reason to look for"}}))
    written = errata.page(errata.load(tmp_path))
    assert "reason to look for" not in written and "`min`" not in written


def test_white_space_in_texts_is_single(tmp_path):
    (tmp_path / "a.toml").write_text(toml({**GOOD, "problem": "x\n  is not y.\n"}))
    assert errata.load(tmp_path)[0].problem == "x is not y."


BAD = [
    *[({name: None}, f"an entry has the field {name};") for name in errata.REQUIRED],
    *[
        ({name: " "}, f"the field {name} is not empty")
        for name in errata.REQUIRED
        if name != "section"
    ],
    *[({name: 3}, f"the field {name} is text; received 3") for name in errata.REQUIRED],
    ({"test": ""}, "the field test is not empty"),
    ({"page": "3"}, "no field of an erratum has this name; received 'page'"),
    ({"id": "Some_Slip"}, "the field id is kebab-case, such as clip-bias; received 'Some_Slip'"),
    ({"section": "Table 2"}, "the field section is a section such as 5.3.4, or empty"),
    ({"source": "paper"}, "no source has this name; received 'paper'"),
    ({"kind": "false"}, "no kind of erratum has this name; received 'false'"),
    ({"section": ""}, "received section '' of cookbook"),
    ({"source": "summary"}, "received section '4.4' of summary"),
    ({"test": "tests/test_bounds.py::test_it"}, "is tests/errata/test_FILE.py::test_NAME"),
    *[
        ({"test": f"tests/errata/{name}"}, f"an entry names exists; received tests/errata/{name};")
        for name in ("test_errata.py::test_of_nothing", "test_no.py::test_good_data_are_read")
    ],
    ({"test": None}, "an entry of kind wrong has a test, or says in untested why there is none"),
    ({"untested": "no time"}, "an entry has a test or says why there is none; received both"),
    ({"apart": {"minimum": "why"}}, "no recipe set apart has this name; received 'minimum'"),
    ({"apart": {"add": "why"}}, "only recipes of section 4.4 are set apart; received add of 4.5"),
    ({"apart": {"flag": "why"}}, "section 4.4 are set apart; received flag of another document"),
    ({"apart": {"min": ""}}, "the field apart.min is not empty"),
    ({"apart": "min"}, "the field apart is a table of recipes and reasons; received 'min'"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=lambda part: str(part)[:40])
def test_bad_data_are_refused(tmp_path, change, message):
    (tmp_path / "a.toml").write_text(toml({**GOOD, **change}))
    with pytest.raises((InvalidValue, UnknownName)) as refused:
        errata.load(tmp_path)
    label = "erratum 1" if change.get("id", "some") in (None, " ", 3) else {**GOOD, **change}["id"]
    assert str(refused.value).startswith(f"{tmp_path.name}/a.toml, {label}: ")
    assert message in str(refused.value)


def test_an_untested_entry_says_why_and_is_printed(tmp_path):
    entry = {**GOOD, "test": None, "untested": "it is about a figure"}
    (tmp_path / "a.toml").write_text(toml(entry))
    assert "- Not tested: it is about a figure" in errata.page(errata.load(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[erratum]\n", "the file is TOML"),
        ("", "the file holds tables [[erratum]] and nothing else; received an empty file"),
        ("erratum = []\n", "nothing else; received erratum ([])"),
        ("erratum = [3]\n", "erratum 1: an entry is a table; received 3"),
        ("title = 'x'\n" + toml(GOOD), "nothing else; received title (x), erratum ("),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(InvalidValue) as refused:
        errata.load(tmp_path)
    assert f"{tmp_path.name}/a.toml" in str(refused.value) and message in str(refused.value)


def test_an_id_in_two_files_is_refused(tmp_path):
    (tmp_path / "a.toml").write_text(toml(GOOD))
    (tmp_path / "b.toml").write_text(toml(GOOD))
    with pytest.raises(TransformistError, match=r"b\.toml, some-slip: an id is unique over all"):
        errata.load(tmp_path)


def test_marks_of_markdown_are_escaped_in_prose():
    entry = errata.Erratum(
        **{**GOOD, "problem": "a*b* and `c*d*`, [s](x), x <y", "printed": "f(`x`)"}
    )
    written = errata.page([entry])
    assert r"- Problem: a\*b\* and `c*d*`, [s]\(x), x \<y" in written
    assert "- Printed: `` f(`x`) ``" in written


def test_the_command_takes_no_arguments():
    command = [sys.executable, ROOT / "docs" / "errata.py", "now"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode and done.stderr.strip().endswith("writes docs/errata.md")
