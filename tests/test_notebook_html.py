"""What a notebook shows of a value: well-formed HTML that escapes symbols and stays short."""

import subprocess
import sys
from html.parser import HTMLParser

import pytest

import transformist as tf
from transformist.programs import PROGRAMS
from transformist.report import notebook_html

VOID = {"br", "hr"}


class Page(HTMLParser):
    """The cells of tables, and the tags; an unbalanced tag fails."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.attributes = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@tf.program(alphabet=["<b>", "&", "[red]"])
def has_no_bold(x):
    return ((x == "<b>").prefix_mean() == 0).accept()


DYCK = tf.recipe("dyck-1")
MODEL = DYCK.build(max_length=64)
STRANGE = tf.compile(has_no_bold, max_length=8)

VALUES = {
    "recipe": lambda: DYCK,
    "recipe on numbers": lambda: tf.recipe("min"),
    "model": lambda: MODEL,
    "trace": lambda: MODEL.run("(())"),
    "trace of strange symbols": lambda: STRANGE.run(["<b>", "&", "[red]"]),
    "verdict": lambda: tf.check(MODEL, PROGRAMS["dyck-1"], max_length=4),
    "verdict that failed": lambda: tf.check(STRANGE, lambda _: True, max_length=2),
    "certificate": lambda: tf.certify(MODEL, "float32"),
    "certificate that does not hold": lambda: tf.certify(MODEL, "float8_e4m3"),
}
TOLD = {
    "recipe": ["x is in Dyck-1, for n ≤ N, as a slot that is 0 or 1", "dyck-1 (section 9.2.1)"],
    "recipe on numbers": ["min (section 4.4)"],
    "model": ["N = 64", "slot 0"],
    "trace": ["(()) in float64: accepted", "balance"],
    "trace of strange symbols": ["<b>&[red] in float64: rejected"],
    "verdict": ["every string to length 4"],
    "verdict that failed": ["failed"],
    "certificate": ["holds (first grade", "balance"],
    "certificate that does not hold": ["is not shown to hold"],
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_shown_as_a_table_that_names_no_colour(name):
    page = Page(VALUES[name]()._repr_html_())
    assert page.tags.count("table") == 1
    text = "\n".join(page.texts)
    for words in TOLD[name]:
        assert words in text
    # Colours are the notebook's own, so that tables are read on light and dark ground.
    assert not {"b", "script", "font", "pre"} & set(page.tags)
    assert all("color" not in value and "background" not in value for _, value in page.attributes)


def test_every_slot_of_a_model_is_there():
    text = "\n".join(Page(MODEL._repr_html_()).texts)
    assert all(slot in text for slot in MODEL.stream.slots)


def test_symbols_are_text_and_never_tags():
    html = STRANGE.run(["<b>", "&", "[red]"])._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;" in html and "&amp;" in html


def test_a_long_value_is_cut_short_and_says_so():
    words = [f"symbol{number}" for number in range(300)]

    @tf.program(alphabet=words)
    def copy(x):
        return x.tag()

    model = tf.compile(copy, max_length=4)
    html = model._repr_html_()
    rows = Page(html).tags.count("tr")
    assert rows == notebook_html.MOST_ROWS and "more rows" in html
    assert len(html) < 40_000
    assert len(MODEL.run("()" * 32)._repr_html_()) < 40_000


def test_a_long_symbol_is_cut_in_the_middle():
    symbol = "<" + "x" * 10_000 + ">"

    @tf.program(alphabet=[symbol, "b"])
    def copy(x):
        return x.tag()

    html = tf.compile(copy, max_length=2).run([symbol])._repr_html_()
    longest = max(map(len, Page(html).texts))
    assert " … " in html and longest <= 4 * notebook_html.LONGEST_TEXT + 3


def test_the_package_starts_without_what_notebooks_need():
    code = (
        "import sys, transformist as tf; tf.recipe('dyck-1').build(max_length=4)\n"
        "assert 'transformist.report.notebook_html' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
