"""docs/figures.md: its code is run, and draws the figures that stand on it."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_spec = importlib.util.spec_from_file_location("figures_page", ROOT / "docs" / "figures.py")
page = sys.modules["figures_page"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(page)

TEXT = page.PAGE.read_text("utf-8")


def test_every_example_stands_on_the_page_with_its_figure():
    assert re.findall(r"```py\n(.*?)```", TEXT, flags=re.S) == [each.code for each in page.EXAMPLES]
    shown = re.findall(r"\(figures/(.*?)\.svg\)", TEXT)
    assert shown == [each.name for each in page.EXAMPLES]
    assert sorted(shown) == sorted(path.stem for path in page.FOLDER.glob("*.svg"))
    assert all(path.stat().st_size < 60_000 for path in page.FOLDER.iterdir())


@pytest.mark.hosts
def test_the_page_and_its_figures_are_made_by_its_code():
    matplotlib = pytest.importorskip(
        "matplotlib", reason="matplotlib is not installed (extra `figures`)"
    )
    figures = page.drawn()
    assert page.page({name: each.get_label() for name, each in figures.items()}) == TEXT, (
        "run python docs/figures.py"
    )
    is_same = page.VERSION.read_text("utf-8").strip() == matplotlib.__version__
    for name, figure in figures.items():
        kept, made = (page.FOLDER / f"{name}.svg").read_bytes(), figure.bytes_of("svg")
        if is_same:
            assert kept == made, f"{name}: run python docs/figures.py"
        else:  # another version of matplotlib may place the same words elsewhere
            assert words(kept) == words(made), name


def words(svg):
    return sorted(re.findall(r"<text[^>]*>(.*?)</text>", svg.decode(), flags=re.S))
