"""`transformist show` of a place of the Cookbook."""

import pytest

import transformist as tf
from command_line import answer, run
from transformist.catalogue.cookbook_place import cookbook_places, find_places


def written(place):
    """A place as a user writes it, from what is printed."""
    if place.kind == "table":
        return place.number.partition(",")[0]
    return f"{place.kind}-{place.number}"


def test_every_place_is_found_by_what_is_printed():
    for place in cookbook_places():
        assert place in find_places(written(place))


@pytest.mark.parametrize("name", [each.name for each in tf.recipes() if each.cookbook_section])
def test_the_section_of_a_recipe_shows_it(name):
    found = find_places(tf.recipe(name).cookbook_section)
    assert name in {shown for place in found for shown in place.pointers("recipe")}


def test_a_section_has_those_below_it_and_no_other():
    assert [place.number for place in find_places("5.1")] == ["5.1", "5.1.1", "5.1.2"]
    assert [str(place) for place in find_places("4.8")] == ["Section 4.8", "Eq. 35"]
    assert {place.number for place in find_places("1")} == {"1"}  # and neither 10 nor 11


def test_a_table_has_its_rows_alone():
    numbers = [place.number for place in find_places("table-2")]
    assert len(numbers) == 8
    assert all(number.startswith("Table 2, ") for number in numbers)


@pytest.mark.parametrize("name", ["lemma-5.3", "Lemma 5.3", "LEMMA-5.3"])
def test_a_lemma_shows_the_code_that_realises_it(capsys, name):
    (place,) = answer(capsys, "show", name)["places"]
    assert place["place"] == "Lemma 5.3"
    assert "transformist.bounds.softmax_remainder" in place["code"]


@pytest.mark.parametrize(
    "short, whole",
    [("eq", "equation"), ("sec", "section"), ("def", "definition"), ("prop", "proposition")],
)
def test_short_forms(short, whole):
    number = next(place.number for place in cookbook_places() if place.kind == whole)
    assert find_places(f"{short}-{number}") == find_places(f"{whole}-{number}")


def test_the_text_names_recipes_with_their_summaries(capsys):
    code, out, _ = run(capsys, "show", "5.7")
    assert code == 0
    assert out.startswith("Section 5.7: Hard attention by softmax")
    assert tf.recipe("soften-by-precision").summary in " ".join(out.split())


@pytest.mark.parametrize(
    "name, near", [("lemma-5.4", "lemma-5.3"), ("12", "section-11"), ("table-9", "table-")]
)
def test_an_unknown_place_is_refused_with_its_neighbours(capsys, name, near):
    code, _, err = run(capsys, "show", name)
    assert code == 2
    assert "no place of the Cookbook" in err
    assert near in err


@pytest.mark.parametrize("option", [["--weights"], ["--plot", "a.svg"], ["--set", "max_length=4"]])
def test_an_option_of_models_is_refused(capsys, option):
    code, _, err = run(capsys, "show", "5.7", *option)
    assert code == 2
    assert f"{option[0]} must come with a model" in err


def test_a_file_of_that_name_is_the_model(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tf.save(tf.recipe("dyck-1").build(max_length=4), "model.safetensors")
    (tmp_path / "model.safetensors").rename(tmp_path / "5.7")
    assert answer(capsys, "show", "5.7")["max_length"] == 4
