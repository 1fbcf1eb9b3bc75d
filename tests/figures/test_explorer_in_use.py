"""The explorer page as a reader uses it, in Chromium: what it takes, says, shows and keeps."""

import shutil
import subprocess
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from test_explorer_in_a_browser import agree, axe_script, evaluated

import transformist as tf
from transformist.arithmetic import FLOAT64
from transformist.figures.explorer_page.guided_paths import GUIDES
from transformist.figures.explorer_page.page import SCRIPTS
from transformist.model import (
    Attention,
    Binary,
    Embedding,
    FeedForward,
    LanguageModel,
    Layer,
    MultiClass,
    PositionFunctions,
    PositionTable,
    RealVector,
    Sinusoids,
    Stream,
    Transformer,
)

pytestmark = [pytest.mark.hosts, pytest.mark.slow]

DYCK = tf.recipe("dyck-1").build(max_length=12)
ROOM = files("transformist.figures.explorer_page")


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def step(page, number):
    page.locator("#steps button").nth(number).click()


def select(page, row, slot, model=DYCK):
    column = model.stream.index(slot)
    page.locator(f'#grid td[data-row="{row}"][data-column="{column}"]').click()


def text(page, place):
    return " ".join(page.locator(place).inner_text().split())


def focused(page):
    return page.evaluate("document.activeElement.id || document.activeElement.tagName")


# --- the focus -----------------------------------------------------------------------------------


def test_the_focus_stays_where_the_reader_works(opened):
    page = opened(DYCK, ")(")
    step(page, 2)
    select(page, 1, "violation")
    for button in ("unit-0-0", "pin-here", "clamp", "ablate"):
        page.focus(f"#{button}")
        page.keyboard.press("Enter")
        assert focused(page) == button
    assert page.locator("#changes li").count() == 3  # the clamp has replaced the pin
    for rest in (2, 1):
        page.focus("#undo-0")
        page.keyboard.press("Enter")
        assert (page.locator("#changes li").count(), focused(page)) == (rest, "undo-0")
    page.focus("#undo")
    page.keyboard.press("Enter")
    assert focused(page) == "changes-heading"
    step(page, 1)
    for button in ("switch-head", "head-0"):
        page.focus(f"#{button}")
        page.keyboard.press("Enter")
        assert focused(page) == button
    page.focus("#undo-0")
    page.keyboard.press("Enter")
    assert focused(page) == "changes-heading"
    page.focus("#next")
    for _ in range(4):
        page.keyboard.press("Enter")
    assert page.locator("#next").is_disabled() and focused(page) == "previous"


def test_the_order_of_the_focus_is_that_of_the_page(opened):
    page = opened(DYCK, ")(", "dyck-1")
    wanted = ["input", "format", "guide-start", "previous"]
    seen = []
    page.focus("#input")
    for _ in range(40):
        seen.append(focused(page))
        page.keyboard.press("Tab")
    places = [seen.index(each) for each in (*wanted[:3], "slider", "next", "value", "pin-here")]
    assert places == sorted(places)


# --- the number that is put in -------------------------------------------------------------------


def test_enter_puts_the_number_in(opened):
    page = opened(DYCK, ")(")
    step(page, 3)
    select(page, 2, "violations")
    page.fill("#value", "0")
    page.keyboard.press("Enter")
    assert "accepted" in text(page, "#answer") and focused(page) == "value"
    assert text(page, "#told") == "violations is 0 at position 2 after layer 1 attention."


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("", "the number is missing"),
        ("  ", "the number is missing"),
        ("abc", '"abc" is no number'),
        ("0,5", "with a decimal point"),
        ("0x10", "is no number"),
        ("1/0", "divides by 0"),
        ("1/2/3", "is no number"),
        ("16777217/3", "at most 16777216"),
        ("1e400", "too large for float64"),
    ],
)
def test_what_is_no_number_is_not_put_in(opened, typed, says):
    page = opened(DYCK, ")(")
    page.fill("#value", typed)
    for button in ("Pin it here", "Clamp it at every position"):
        press(page, button)
        assert says in text(page, "#put-message") and focused(page) == "value"
        assert page.locator("#value").get_attribute("aria-invalid") == "true"
        assert page.locator("#changes li").count() == 0
    page.fill("#value", "1")
    press(page, "Pin it here")
    assert text(page, "#put-message") == "" and page.locator("#changes li").count() == 1


@pytest.mark.parametrize("arithmetic", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize(
    "typed", ["1/3", "-5/7", "−16777215/16777216", "0.3", "2e-3", "1/16777215"]
)
def test_a_number_is_rounded_as_in_python(opened, arithmetic, typed):
    page = opened(DYCK, ")(")
    page.select_option("#format", arithmetic)
    select(page, 1, "sign")
    assert f"rounded once, to {arithmetic}" in text(page, "#value-help")
    page.fill("#value", typed)
    press(page, "Pin it here")
    plain = typed.replace("−", "-")
    number = Fraction(plain) if "/" in plain else float(plain)
    trace = DYCK.run(")(", arithmetic, patch={("embedding", 1, "sign"): number})
    agree(trace, *evaluated_as_shown(page, arithmetic))
    value = float(trace.arithmetic.numbers(trace.streams[0][1])[1, 0])
    if value != number:
        assert f" in {arithmetic}) at position 1 after the embedding" in text(page, "#changes")


def evaluated_as_shown(page, arithmetic):
    """The streams and the answer of the run that the page shows."""
    assert page.evaluate("explorer.state.run.format.name") == arithmetic
    found = page.evaluate("""(() => {
        const {streams, answer} = explorer.state.run;
        return {streams: streams.map((z) => [...z].map(String)), answer};
    })()""")
    numbers = [[float(each.replace("Infinity", "inf")) for each in z] for z in found["streams"]]
    return [np.array(z) for z in numbers], found["answer"]


def test_a_number_beyond_a_format_is_refused_and_can_be_undone(opened):
    page = opened(DYCK, ")(")
    page.fill("#value", "1e300")
    press(page, "Pin it here")
    page.select_option("#format", "bfloat16")
    assert "1e+300 is not finite in bfloat16" in text(page, "#message")
    press(page, "Undo all changes")
    assert "rejected" in text(page, "#answer") and text(page, "#message") == ""
    page.fill("#value", "1e300")
    press(page, "Pin it here")
    assert "1e300 is too large for bfloat16" in text(page, "#put-message")


def test_a_change_with_which_nothing_can_be_computed_is_undone(opened):
    model = tf.recipe("dyck-k-d").build()
    page = opened(model, "()")
    select(page, 1, "active", model)
    page.fill("#value", "1e308")
    press(page, "Clamp it at every position")
    assert "an attention score overflows in float64" in text(page, "#message")
    press(page, "Undo all changes")
    assert text(page, "#message") == "" and "accepted" in text(page, "#answer")


# --- several changes at one place ----------------------------------------------------------------


@pytest.mark.parametrize("clamp_first", [True, False])
def test_an_ablation_and_a_clamp_of_one_slot_work_together(opened, clamp_first):
    page, slot, after = opened(DYCK, ")("), "violation", "layer 0 feed-forward"
    step(page, 2)
    select(page, 1, slot)
    page.fill("#value", "1/4")
    for name in ("Clamp it at every position", "Ablate the slot")[:: 1 if clamp_first else -1]:
        page.fill("#value", "1/4")
        press(page, name)
    said = text(page, "#told")
    if clamp_first:
        assert "What you put in stays, as numbers are put in after the ablation: violation" in said
    else:
        assert "The slot is ablated, too: nothing is added to it" in said
    assert "First parts are switched off; then" in text(page, "#changes-help")
    patch = {(after, position, slot): Fraction(1, 4) for position in range(3)}
    trace = tf.ablate(DYCK, slot=slot).run(")(", patch=patch)
    agree(trace, *evaluated_as_shown(page, "float64"))
    press(page, "Switch the slot on")
    assert text(page, "#told") == "The slot violation is on again."


def test_a_number_that_replaces_another_says_so(opened):
    page = opened(DYCK, ")(")
    step(page, 2)
    select(page, 1, "violation")
    for typed, name in (("0.25", "Pin it here"), ("0.5", "Pin it here")):
        page.fill("#value", typed)
        press(page, name)
    said = "This replaces: violation is 0.25 at position 1 after layer 0 feed-forward."
    assert said in text(page, "#told")
    page.fill("#value", "3")
    press(page, "Clamp it at every position")
    assert "This replaces: violation is 0.5 at position 1" in text(page, "#told")
    select(page, 2, "violation")
    page.fill("#value", "7")
    press(page, "Pin it here")
    assert "Elsewhere the slot stays clamped." in text(page, "#told")
    assert "You put it there: violation is 7 at position 2" in text(page, "#explanation")
    after = "layer 0 feed-forward"
    patch = {(after, 0, "violation"): 3, (after, 1, "violation"): 3, (after, 2, "violation"): 7}
    agree(DYCK.run(")(", patch=patch), *evaluated_as_shown(page, "float64"))
    page.fill("#value", "1")
    press(page, "Clamp it at every position")
    assert "at every position after layer 0 feed-forward; violation is 7" in text(page, "#told")


# --- ablations that are those of Python ----------------------------------------------------------


def small(positions=None, front=(), W_1=((1, 0),), vectors=((1, 0), (-1, 0)), **parts):
    network = FeedForward(W_1=W_1, W_2=parts.pop("W_2", ((0,), (1,))))
    symbols = ("a", "b", *front)
    vectors = (*vectors, *[(0, 0)] * len(front))
    return Transformer(
        stream=Stream(("x", "y")),
        embedding=Embedding(symbols=symbols, vectors=vectors, positions=positions, front=front),
        layers=(Layer(parts.pop("heads", ()), network),),
        read_out=Binary(W_out=[[1, 0]]),
    )


def test_an_ablated_slot_has_no_position(opened):
    """1/i has no value at BOS, so that the model runs without the slot alone, as in Python."""
    model = small(PositionFunctions((None, "1/i")), ("BOS",))
    page = opened(small(), "ab")
    page.evaluate("(model) => { window.other = model; }", page_model(model))
    changes = {"heads": [], "units": [], "slots": [1], "pins": []}
    with pytest.raises(tf.TransformistError, match="i = 0"):
        model.run("ab")
    refused = """(changes) => {
        try { return Evaluator.evaluate(other, [0, 1], "float64", changes).answer; }
        catch (error) { return error.message; }
    }"""
    assert "no value at i = 0" in page.evaluate(refused, changes | {"slots": []})
    trace = tf.ablate(model, slot="y").run("ab")
    got = page.evaluate(
        '(changes) => Evaluator.evaluate(other, [0, 1], "float64", changes)'
        ".streams.map((z) => [...z])",
        changes,
    )
    assert np.array_equal(got, [z.ravel() for _, z in trace.streams])


def page_model(model):
    from transformist.figures.explorer_page.model_data import model_data

    return model_data(model)


def test_an_ablated_slot_of_a_table_of_positions(opened):
    model = small(PositionTable(vectors=[[1, 2], [3, 4], [5, 6]]))
    page = opened(model, "ab")
    for column, slot in enumerate(("x", "y")):
        trace = tf.ablate(model, slot=slot).run("aba")
        agree(trace, *evaluated(page, model, "aba", "float64", {"slots": [column]}))


def test_slots_that_sinusoids_fill_are_not_ablated(opened):
    model = small(Sinusoids(2))
    with pytest.raises(tf.TransformistError, match="Sinusoids, which fill every slot"):
        tf.ablate(model, slot="x")
    page = opened(model, "ab")
    assert "The slot cannot be ablated: the positions are sinusoids" in text(page, "#pin")
    assert page.locator("#ablate").count() == 0
    changes = {"heads": [], "units": [], "slots": [0], "pins": []}
    refused = """(changes) => {
        try { explorer.evaluate([0, 1], "float64", changes); return ""; }
        catch (error) { return error.message; }
    }"""
    assert "sinusoids" in page.evaluate(refused, changes)


HUGE = 2.0**1000


@pytest.mark.parametrize("arithmetic", ["float64", "float32", "bfloat16"])
def test_parts_that_overflow_are_ablated_as_in_python(opened, arithmetic):
    """A weight of 0 times an infinite unit is NaN, where another row of weights reads the unit."""
    huge = HUGE if arithmetic == "float64" else 2.0**100
    network = {"W_1": ((huge, 0), (1, 0)), "W_2": ((0, 1), (1, 0)), "vectors": ((huge, 0), (1, 0))}
    model = small(**network)
    page = opened(model, "ab")
    a = {"arithmetic": arithmetic}
    infinite = 0
    for changes, changed in (
        ({"slots": [1]}, tf.ablate(model, slot="y")),
        ({"units": [[0, 0]]}, tf.ablate(model, unit=(0, 0))),
        ({"units": [[0, 1]]}, tf.ablate(model, unit=(0, 1))),
        ({"slots": [1], "units": [[0, 1]]}, tf.ablate(tf.ablate(model, slot="y"), unit=(0, 1))),
        ({"slots": [0]}, tf.ablate(model, slot="x")),
    ):
        for x in ("ab", "bb"):
            streams, error = python_streams(changed, x, a)
            got = page_streams(page, [0 if each == "a" else 1 for each in x], arithmetic, changes)
            assert error == (got is None)
            if not error:
                infinite += not all(np.isfinite(z).all() for z in streams)
                for wanted, found in zip(streams, got, strict=True):
                    assert np.array_equal(wanted, found, equal_nan=True), (changes, x)
    assert infinite


def test_values_that_overflow_are_ablated_as_in_python(opened):
    """A head without W_O gets one when a slot is ablated: infinite values then meet zeros."""
    head = Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[1, 0], [0, HUGE]])
    model = Transformer(
        stream=Stream(("x", "y")),
        embedding=Embedding(symbols=("a", "b"), vectors=[[1, 1], [1, HUGE]]),
        layers=(Layer((head,)),),
        read_out=Binary(W_out=[[0, 1]]),
    )
    page, nowhere = opened(model, "aa"), 0
    for column, slot in enumerate(("x", "y")):
        for rows, x in (([0, 0], "aa"), ([0, 1], "ab")):
            trace = tf.ablate(model, slot=slot).run(x)
            got = page_streams(page, rows, "float64", {"slots": [column]})
            for (_, z), found in zip(trace.streams, got, strict=True):
                nowhere += np.isnan(z).sum()
                assert np.array_equal(z.ravel(), found, equal_nan=True), (slot, x)
    assert nowhere


def python_streams(model, x, options):
    """The streams of a run; none where the numbers that are read out are NaN."""
    try:
        trace = model.run(x, **options)
    except tf.TransformistError:
        return None, True
    return [trace.arithmetic.numbers(z).ravel() for _, z in trace.streams], False


def page_streams(page, rows, arithmetic, changes):
    full = {"heads": [], "units": [], "slots": [], "pins": [], **changes}
    found = page.evaluate(
        """([rows, format, changes]) => {
            try {
                const run = explorer.evaluate(rows, format, changes);
                return run.streams.map((z) => [...z].map(String));
            } catch (error) { return null; }
        }""",
        [rows, arithmetic, full],
    )
    if found is None:
        return None
    return [np.array([float(each.replace("Infinity", "inf")) for each in z]) for z in found]


# --- what is compared with what ------------------------------------------------------------------


def test_the_page_says_what_is_compared_with_what(opened):
    page = opened(DYCK, ")(")
    said = lambda: text(page, "#compared")  # noqa: E731
    same = "Exact arithmetic gives the same answer. Every number is that of exact arithmetic"
    assert said() == f"{same}, rounded to float64."
    page.fill("#input", ")()")
    assert "only for the string with which it began, )(." in said()
    page.select_option("#format", "float32")
    assert said().startswith("float64 gives the same answer.")
    page.fill("#input", ")(")
    step(page, 3)
    press(page, "Switch head 0 off")
    assert said().startswith("The model without changes gives the answer rejected.")
    assert "Every number is that of float64, rounded to float32." in said()
    page.select_option("#format", "float64")
    assert "as the exact ones in the page are those without changes" in said()


def test_a_number_that_parts_names_all_that_is_rounded(opened):
    model = tf.recipe("dyck-1").build(max_length=12)
    page = opened(model, "(((((")
    page.select_option("#format", "bfloat16")
    words = text(page, "#compared")
    trace, exact = model.run("(((((", "bfloat16"), model.run("(((((", "exact")
    a, e = trace.arithmetic, exact.arithmetic
    for number, (_, z) in enumerate(trace.streams):
        got, wanted = a.numbers(z), e.numbers(exact.streams[number][1])
        rounded = a.numbers(a.array(wanted))
        places = np.argwhere(got != rounded)
        if len(places):
            row, column = places[0]
            break
    name = trace.streams[number][0]
    fraction = str(Fraction(wanted[row, column]))
    assert f"parts from exact arithmetic after {name}: {model.stream.slots[column]} for " in words
    assert (
        f" is {float(got[row, column])!r}, but exact arithmetic has {fraction}, to which " in words
    )
    assert f"{float(rounded[row, column])!r} is nearest in bfloat16." in words
    step(page, number)
    select(page, row, model.stream.slots[column])
    assert f"Exact arithmetic has {fraction}, to which" in text(page, "#explanation")


def readings(*numbers):
    """A model without layers that reads out a vector, of thirds say."""
    return Transformer(
        stream=Stream(("x",)),
        embedding=Embedding(symbols=("a",), vectors=[[1]]),
        layers=(),
        read_out=RealVector(W_out=[[each] for each in numbers]),
    )


def test_answers_in_numbers_are_compared_within_a_bound(opened):
    page = opened(readings(Fraction(1, 3), 2), "a")
    assert text(page, "#compared").startswith(
        "Exact arithmetic gives the same answer, taken in float64."
    )
    page.select_option("#format", "float32")
    error = abs(float(np.float32(1 / 3)) - 1 / 3)
    said = text(page, "#compared")
    units = error / 2.0**-23
    assert said.startswith("Exact arithmetic gives the same answer within 16 units: the numbers")
    assert f"by at most {error:.2e}".replace("e-0", "e−") in said
    assert f"which is {units:.4g} units in the last place of float32." in said
    page.fill("#input", "aa")
    assert text(page, "#compared").startswith("float64 gives the same answer within 16 units")


def test_answers_that_differ_by_more_say_so(opened):
    # 4097 is rounded to 4096 in bfloat16; of 1 − 8193 + 8192 = 0 this makes 1 − 8192 + 8192 = 1.
    model = Transformer(
        stream=Stream(("x", "y")),
        embedding=Embedding(symbols=("a",), vectors=[[4096, 1]]),
        layers=(
            Layer((), FeedForward(W_1=[[1, 1]], W_2=[[1], [0]])),
            Layer((), FeedForward(W_1=[[1, 0]], W_2=[[-1], [-1]], b_2=[0, 8192])),
        ),
        read_out=RealVector(W_out=[[0, 1]]),
    )
    assert [float(model.run("a", each).answer[0]) for each in ("bfloat16", "exact")] == [1, 0]
    page = opened(model, "a")
    page.select_option("#format", "bfloat16")
    assert text(page, "#compared").startswith(
        "Exact arithmetic gives another answer, 0: the numbers differ by at most 1, which is 128 "
        "units in the last place of bfloat16."
    )
    found = page.evaluate(
        'Comparison.compare([1, {p: 2}], [1, {p: 2.5}], NumberFormats.FORMATS["float32"])'
    )
    assert (found["isSame"], found["difference"]) == (False, 0.5)
    words = page.evaluate(
        'Comparison.comparedWords("float64", [1], [1.5], NumberFormats.FORMATS["float32"])'
    )
    assert words.startswith("float64 gives another answer, 1.5: the numbers differ by at most 0.5")


def test_probabilities_are_compared_in_numbers(opened):
    model = Transformer(
        stream=Stream(("x",)),
        embedding=Embedding(symbols=("a",), vectors=[[1]]),
        layers=(),
        read_out=LanguageModel(W_out=[[0], [0], [0]], labels="abc", at="every"),
    )
    page = opened(model, "aa")
    assert text(page, "#compared").startswith(
        "Exact arithmetic gives the same answer, taken in float64."
    )
    page.select_option("#format", "bfloat16")
    assert "Exact arithmetic gives the same answer within 16 units" in text(page, "#compared")


# --- certificates --------------------------------------------------------------------------------


def test_a_certificate_that_is_missing_has_a_reason_and_a_way(opened):
    page = opened(DYCK, ")(", certificates=[tf.certify(DYCK, arithmetic="float32")])
    said = text(page, "#margins")
    assert "no certificate in float64: none was given" in said and "N = 12" in said
    assert 'tf.certify(model, arithmetic="float64") makes one' in said
    page.select_option("#format", "float32")
    assert "The certificate for float32 and N = 12 holds." in text(page, "#margins")
    said = text(page, "#margins")
    found = len(tf.certify(DYCK, arithmetic="float32").demands)
    assert f"No margin of the certificate is at this step. Its {found} margins are at " in said
    assert "layer 0 feed-forward" in said
    page = opened(tf.recipe("dyck-k-d").build(), "([)]")
    said = text(page, "#margins")
    assert (
        "Built for any length, the model needs an N" in said and "max_length=N) makes one" in said
    )


def test_a_certificate_for_shorter_strings_says_so(opened):
    model = tf.recipe("dyck-k-d").build()
    certificate = tf.certify(model, arithmetic="float64", max_length=4)
    page = opened(model, "()()()", certificates=[certificate])
    assert "It says nothing of this string, which has 6 symbols." in text(page, "#margins")
    page.fill("#input", "()()")
    assert "It says nothing" not in text(page, "#margins")


# --- attention -----------------------------------------------------------------------------------


def test_the_attention_is_that_of_the_selected_number(opened):
    model = tf.recipe("dyck-k-d").build()
    page = opened(model, "([])" * 14)
    step(page, 1)
    for row, slot, head in ((1, "left", 0), (30, "right", 1), (56, "left", 0)):
        select(page, row, slot, model)
        symbol = ("BOS", *"([])" * 14)[row]
        place = f"{symbol} at position {row}"
        assert text(page, "#attention-heading") == f"Attention of {place}"
        assert " ".join(page.locator("#head p").first.inner_text().split()).startswith(place)
        assert page.locator("#heads [aria-pressed=true]").inner_text() == f"Head {head}"
        label = page.locator("#arcs text.query")
        box, at = page.locator("#arcs").bounding_box(), label.bounding_box()
        assert label.text_content() == symbol
        assert box["x"] <= at["x"] and at["x"] + at["width"] <= box["x"] + box["width"]
        if row == 30:
            page.keyboard.press("ArrowRight")
            assert text(page, "#attention-heading").endswith("at position 31")


@pytest.mark.parametrize(("number", "layer", "head"), [(1, 0, 0), (1, 0, 1), (7, 3, 0)])
def test_the_arcs_and_the_matrix_are_the_weights_of_the_head(opened, number, layer, head):
    model, x = tf.recipe("dyck-k-d").build(), "([)]()"
    page = opened(model, x)
    step(page, number)
    press(page, f"Head {head}")
    weights = FLOAT64.numbers(model.run(x).attention(layer=layer, head=head))
    symbols = ("BOS", *x)
    wanted = [
        f"{symbols[i]} → {symbols[j]}: {weights[i, j]:.4g}".replace("-", "−")
        for i, j in np.argwhere(weights)
    ]
    assert page.locator("#head .matrix .weight title").all_text_contents() == wanted
    for row in range(len(symbols)):
        select(page, row, "left", model)
        press(page, f"Head {head}")
        arcs = page.locator("#arcs .arc")
        found = [float(each.get_attribute("stroke-width")) for each in arcs.all()]
        assert found == pytest.approx([0.75 + 3.25 * each for each in weights[row] if each])
        cells = page.locator("#head tbody td:last-child").all_inner_texts()
        assert cells == [f"{each:.4g}" for each in weights[row] if each]


# --- the guided paths ----------------------------------------------------------------------------


def guided(opened, name, **viewport):
    settings = {"max_length": 16} if name == "dyck-1" else {}
    return opened(tf.recipe(name).build(**settings), name=name, viewport=viewport)


VISIBLE = """([evidence, panel]) => {
    const inView = (box) => box.top >= 0 && box.bottom <= innerHeight && box.left >= 0
        && box.right <= innerWidth;
    const boxes = [...document.querySelectorAll(panel)].map((each) => each.getBoundingClientRect());
    const cells = [...document.querySelectorAll(evidence)];
    const isOnTop = (each) => {
        const {left, right, top, bottom} = each.getBoundingClientRect();
        return each.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
    };
    return {panel: boxes.length > 0 && boxes.every(inView), found: cells.length,
        cells: cells.every((each) => inView(each.getBoundingClientRect()) && isOnTop(each))};
}"""

EVIDENCE = {
    ("dyck-k-d", 4): [f'#grid td[data-column="2"][data-row="{row}"]' for row in (1, 2, 3, 4)],
    ("dyck-k-d", 8): ["#explanation tbody td:last-child", '#grid td[aria-selected="true"]'],
}
"""What a stop speaks of, beside the selected number; at the read-out the value is read, too."""


@pytest.mark.parametrize("name", GUIDES)
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (360, 640)])
def test_the_text_and_what_it_speaks_of_are_on_screen_together(opened, name, width, height):
    page = guided(opened, name, width=width, height=height)
    press(page, "Show me")
    for number, stop in enumerate(GUIDES[name].stops):
        cells = EVIDENCE.get((name, number), ['#grid td[aria-selected="true"]'])
        if stop.step == "read-out" and width < 1280:
            cells = cells[:1]  # the sum has the number of the slot as well
        else:
            cells = [*cells, f"#grid thead th:nth-child({stop.position + 2}) .symbol"]
        found = page.evaluate(VISIBLE, [", ".join(cells), "#guide-text, #guide-where, #guide-on"])
        assert found == {"panel": True, "found": len(cells), "cells": True}, (number, stop.text)
        where = text(page, "#guide-where")
        assert stop.input in where and text(page, "#answer strong") in where
        for layer, head in stop.heads:
            assert f"head {head} of layer {layer} switched off" in where
        if number + 1 < len(GUIDES[name].stops):
            press(page, "Go on")


def test_a_guided_path_is_left_as_it_was_entered(opened):
    page = guided(opened, "dyck-1", width=1280, height=800)
    page.fill("#input", "(())")
    step(page, 1)
    select(page, 3, "balance")
    page.fill("#value", "0.5")
    press(page, "Pin it here")
    before = [text(page, each) for each in ("#answer", "#grid", "#changes", "#explanation")]
    press(page, "Show me")
    for _ in range(6):
        press(page, "Go on")
    assert page.locator("#input").input_value() == "(("
    assert "switched off" in text(page, "#changes")
    press(page, "Leave the path, back to (())")
    assert page.locator("#input").input_value() == "(())"
    shown = [text(page, each) for each in ("#answer", "#grid", "#changes", "#explanation")]
    assert shown == before and focused(page) == "guide-start"
    assert text(page, "#guide-where") == "" and page.locator("#guide-text").count() == 0


# --- narrow windows, words, large models ---------------------------------------------------------


def test_nothing_is_cut_in_a_narrow_window(opened):
    page = opened(DYCK, ")(", "dyck-1", viewport={"width": 360, "height": 740})
    for number in range(6):
        step(page, number)
        if number < 5:
            select(page, 1, ("sign", "balance", "violation", "violations", "accept")[number])
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360
        tables = page.locator("#explanation .wide")
        for table in tables.all():
            assert table.evaluate("(each) => each.scrollWidth <= each.clientWidth"), number
        for button in page.locator("button:visible").all():
            box = button.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= 360


def test_the_page_says_what_the_model_computes(opened):
    claim = tf.recipe("dyck-1").claim.statement
    page = opened(DYCK, ")(", "dyck-1", claim=claim)
    assert text(page, "#title") == "dyck-1"
    assert text(page, "#claim") == f"What it computes: {claim}."
    assert "Built for at most N = 12 symbols." in text(page, "#size")


def test_a_claim_that_is_a_sentence_keeps_its_full_stop_alone(opened):
    page = opened(DYCK, ")(", "dyck-1", claim="the brackets match.")
    assert text(page, "#claim") == "What it computes: the brackets match."


def test_the_words_of_the_page_are_explained(opened):
    page = opened(tf.recipe("dyck-k-d").build(), "([)]")
    step(page, 1)
    said = text(page, "#head")
    assert "Weighting average-hard: the keys with the largest score share the weight" in said
    assert "Mask strict-future: later positions and the position itself are masked" in said
    assert not page.locator("#words dl").is_visible()
    page.focus("#words summary")
    page.keyboard.press("Enter")
    words = page.locator("#words dt").all_inner_texts()
    assert {"Slot", "BOS", "Mask strict-past", "Hidden unit", "Margin"} <= {*words}
    assert "Mask none" in words and "Mask future" not in words  # those of the model alone
    assert all(len(each) > 20 for each in page.locator("#words dd").all_inner_texts())


MANY = 130_000
"""More arguments than Chromium passes to a function."""


def test_a_model_of_many_labels(opened):
    """A call with a spread of this length is a RangeError."""
    labels = tuple(f"label {k}" for k in range(MANY))
    W_out = np.zeros((MANY, 1))
    W_out[MANY - 1] = 1
    model = Transformer(
        stream=Stream(("x",)),
        embedding=Embedding(symbols=("a",), vectors=[[1]]),
        layers=(),
        read_out=MultiClass(W_out=W_out, labels=labels),
    )
    page = opened(model, "a")
    assert text(page, "#answer strong") == labels[-1] == model("a")
    press(page, "read-out")
    assert f"the largest 12 of {MANY} at each" in text(page, "#explanation")
    assert page.locator("#explanation tbody tr").count() == 12
    assert labels[-1] in text(page, "#explanation tbody")


def test_a_long_text_that_is_no_input(opened):
    page = opened(DYCK, ")(")
    page.fill("#input", "(" * MANY + "x" * MANY)
    assert f'"x" at position {MANY + 1}' in text(page, "#message")
    assert 0 < page.locator("#marks mark").count() <= 200
    page.fill("#input", "()" * MANY)
    assert f"at most 12 symbols, for which the model is built; it has {2 * MANY}" in text(
        page, "#message"
    )
    page.fill("#input", "()")
    assert "accepted" in text(page, "#answer")


# --- the tests of the page itself ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("planted", "rule"),
    [
        ("document.getElementById('input-label').remove()", "label"),
        ("document.getElementById('answer').style.color = '#eeeeee'", "color-contrast"),
        ("document.getElementById('next').textContent = ''", "button-name"),
        ("document.getElementById('grid').setAttribute('role', 'gird')", "aria-roles"),
    ],
)
def test_axe_finds_what_is_planted(opened, planted, rule):
    missing = "axe-playwright-python is not installed"
    pytest.importorskip("axe_playwright_python", reason=missing)
    page = opened(DYCK, ")(")
    page.evaluate(axe_script())
    assert page.evaluate("axe.run()")["violations"] == []
    page.evaluate(planted)
    assert rule in [each["id"] for each in page.evaluate("axe.run()")["violations"]]


STRICT = (
    "number_formats.js", "typed_numbers.js", "weightings.js", "ablation.js", "read_outs.js",
    "evaluator.js",
)  # fmt: skip
"""The scripts that compute: every parameter has a type, and null is told from a value."""


def typescript(*arguments):
    """Run the type checker of TypeScript on scripts of the page."""
    checker = shutil.which("tsc")
    if checker is None:
        pytest.skip("tsc is not installed (npm install --global typescript@5.9.3)")
    options = ("--allowJs", "--checkJs", "--noEmit", "--target", "ES2022")
    command = [checker, *options, "--lib", "ES2022,DOM,DOM.Iterable", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_scripts_have_the_types_that_they_say(tmp_path):
    scripts = [str(ROOM / each) for each in SCRIPTS]
    found = typescript(*scripts)
    assert (found.returncode, found.stdout) == (0, "")
    strict = [str(ROOM / each) for each in STRICT]
    found = typescript("--strict", *strict)
    assert (found.returncode, found.stdout) == (0, "")
    # The checker reads the types in the comments: a wrong argument is found.
    wrong = tmp_path / "wrong.js"
    wrong.write_text('Evaluator.evaluate("model", [0], "float16");\n')
    found = typescript("--strict", *strict, str(wrong))
    assert found.returncode != 0 and "wrong.js(1,20)" in found.stdout


def test_every_script_is_in_the_page():
    found = {each.name for each in Path(str(ROOM)).glob("*.js")}
    assert found == {*SCRIPTS}
