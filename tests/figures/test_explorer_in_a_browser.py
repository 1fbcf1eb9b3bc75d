"""The explorer page in Chromium: its numbers are Python's, and a reader finds them."""

import functools
import itertools
import json
import random
import re
from fractions import Fraction
from importlib.resources import files

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import BFLOAT16
from transformist.figures.explorer_page.guided_paths import GUIDES
from transformist.model import (
    Attention,
    Binary,
    Embedding,
    FeedForward,
    LanguageModel,
    Layer,
    LayerNorm,
    MultiClass,
    NearestFraction,
    NearZero,
    Outputs,
    PositionFunctions,
    RealVector,
    Stream,
    Transformer,
)
from transformist.programs import PROGRAMS

pytestmark = [pytest.mark.hosts, pytest.mark.slow]

RECIPES = (
    "parallel", "parity", "count-modulo", "induction-most-recent", "induction-most-frequent",
    "dyck-1-uniform", "dyck-1", "dyck-1-nonuniform", "dyck-1-exact-uniform", "dyck-1-2", "dyck-k-d",
    "original-transformer",
)  # fmt: skip
COMPILED = ("reverse", "sort", "histogram", "fraction-of-previous", "contains-abc")
CODED = "contains-abc by sines"
EXPONENTIATED = {"original-transformer", "reverse", "contains-abc", "sort", CODED}
"""Models with softmax over unequal scores: `exp` of JavaScript and of numpy differ."""

ULPS = 16
"""Most units in the last place by which a number of these may differ in float64.

The unit is that of the larger of the number and 1. Each `exp` is within 2 of them; norms and
networks multiply the difference.
"""


@functools.cache
def model_of(name):
    if name in COMPILED:
        return tf.compile(PROGRAMS[name], max_length=12)
    if name == CODED:
        options = {"masks": "future", "position_codes": "sinusoidal"}
        return tf.compile(PROGRAMS["contains-abc"], max_length=12, **options)
    settings = {"max_length": 12} if "max_length" in tf.recipe(name).settings({}) else {}
    return tf.recipe(name).build(**settings)


def strings(model, count, longest=12):
    source = random.Random(repr(model.alphabet))
    least = 0 if model.embedding.front or model.embedding.back else 1
    for _ in range(count):
        length = source.randint(least, longest)
        yield [source.choice(model.alphabet) for _ in range(length)]


def rows_of(model, x):
    return [model.embedding.symbols.index(symbol) for symbol in x]


EVALUATE = """([rows, format, changes]) => {
    const run = explorer.evaluate(rows, format, changes);
    return {answer: run.answer, streams: run.streams.map((z) => [...z].map(String))};
}"""


def evaluated(page, model, x, arithmetic, changes=None):
    """The streams and the answer that a page gives."""
    all_changes = {"heads": [], "units": [], "slots": [], "pins": [], **(changes or {})}
    found = page.evaluate(EVALUATE, [rows_of(model, x), arithmetic, all_changes])
    streams = [[float(value.replace("Infinity", "inf")) for value in z] for z in found["streams"]]
    return [np.array(z) for z in streams], found["answer"]


def in_json(answer):
    """An answer of Python as the page has it: labels and fractions as text."""
    if isinstance(answer, dict):
        return {str(key): in_json(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [in_json(each) for each in answer]
    return answer if isinstance(answer, bool | float) else str(answer)


def agree(trace, streams, found, is_near=False):
    """The numbers are the same, or near where exp is involved, and the decisions are the same."""
    for (step, z), got in zip(trace.streams, streams, strict=True):
        wanted = trace.arithmetic.numbers(z).ravel()
        if is_near and trace.arithmetic.name == "float64":
            unit = np.spacing(np.maximum(np.abs(wanted), 1))
            assert (np.abs(wanted - got) <= ULPS * unit).all(), step
        else:
            assert np.array_equal(wanted, got, equal_nan=True), step
    read_out, answer = trace.model.read_out, trace.answer
    if isinstance(read_out, Outputs):
        parts = zip(answer.items(), read_out.parts, strict=True)
        answer = {name: list(x) if part.reads_several else x for (name, x), part in parts}
    is_joined = isinstance(answer, str) and read_out.reads_several
    answer = in_json(list(answer) if is_joined else answer)
    if isinstance(read_out, LanguageModel):
        assert all(wanted == pytest.approx(got) for wanted, got in zip(answer, found, strict=True))
    elif isinstance(read_out, RealVector):  # numbers, on which nothing is decided
        assert np.allclose(answer, found, rtol=0, atol=1e-6)
    else:
        assert answer == found


def as_input(model, x):
    return "".join(x) if all(isinstance(each, str) for each in model.alphabet) else x


@pytest.mark.filterwarnings("ignore::transformist.errors.OutsideClaim")
@pytest.mark.parametrize("name", [*RECIPES, *COMPILED, CODED])
def test_the_numbers_are_those_of_python(opened, name):
    model = model_of(name)
    page = opened(model)
    for x in strings(model, 50, 12 if name != "original-transformer" else 8):
        for arithmetic in ("float64", "float32", "bfloat16"):
            trace = model.run(as_input(model, x), arithmetic)
            agree(trace, *evaluated(page, model, x, arithmetic), is_near=name in EXPONENTIATED)


def drawn(seed):
    """A model with every kind of part, and weights that say nothing."""
    source = random.Random(seed)

    def numbers(*shape):
        values = [
            source.choice((0, 0, 1, -1, Fraction(1, 3), 0.7, -2)) for _ in range(np.prod(shape))
        ]
        return np.array(values, dtype=object).reshape(shape)

    def norm(width, width_in=None):
        W_N = {} if width_in is None else {"W_N": numbers(width, width_in)}
        ones = [source.choice((1, -1, Fraction(1, 3))) for _ in range(width)]
        return LayerNorm(gain=ones, bias=numbers(width), epsilon=0.125, **W_N)

    def head(weighting, mask, with_output):
        rows = 2 if with_output else 4
        W_O = {"W_O": numbers(4, rows)} if with_output else {}
        return Attention(
            W_Q=numbers(3, 4), W_K=numbers(3, 4), W_V=numbers(rows, 4), b_Q=numbers(3),
            b_K=numbers(3), b_V=numbers(rows), b_O=numbers(4), weighting=weighting, mask=mask,
            **W_O,
        )  # fmt: skip

    weightings = ("softmax", "average-hard", "leftmost-hard", "rightmost-hard")
    masks = ("none", "future", "strict-future", "past", "strict-past")
    activation = ("relu", "gelu-tanh", "gelu-sigmoid")[seed % 3]
    network = FeedForward(
        W_1=numbers(3, 4), b_1=numbers(3), W_2=numbers(4, 3), b_2=numbers(4), activation=activation
    )
    heads = [
        head(weightings[seed % 4 if k == 0 else 1 + (seed + k) % 3], masks[(seed + k) % 5], k == 0)
        for k in range(2)
    ]
    pre, post = (norm(4, 4), None) if seed % 2 else (None, norm(4)), (norm(4), None)
    layers = (Layer(heads, network, pre, post), Layer(heads[1:], None))
    names = ("i", None, "i/n", "(-1)^i")
    front, back = (("BOS",), ()) if seed % 3 else ((), ("CLS", "EOS"))
    embedding = Embedding(
        symbols=("a", "b", *front, *back), vectors=numbers(2 + len(front + back), 4),
        positions=PositionFunctions(names), front=front, back=back,
    )  # fmt: skip
    read_outs = (
        lambda: Binary(W_out=numbers(1, 4), at="last" if seed % 3 else "cls"),
        lambda: MultiClass(W_out=numbers(3, 4), labels=("x", "y", "zz"), at="every"),
        lambda: NearestFraction(
            W_out=numbers(1, 4), scale=2, mask="past", with_bos=True, at="every"
        ),
        lambda: NearZero(W_out=numbers(2, 4), powers=(1, 2)),
        lambda: LanguageModel(W_out=numbers(2, 4), labels="ab", at="every"),
        lambda: RealVector(W_out=numbers(2, 4), b_out=numbers(2)),
        lambda: Outputs(
            names=("p", "q"),
            parts=(
                Binary(W_out=numbers(1, 4)),
                MultiClass(W_out=numbers(2, 4), labels="xy", at="every"),
            ),
        ),
    )  # fmt: skip
    read_out = read_outs[seed % (7 if front else 6)]()
    final = norm(4) if seed % 2 else None
    slots = Stream(("p", "q", "r", "s"))
    return Transformer(
        stream=slots, embedding=embedding, layers=layers, read_out=read_out, final_norm=final
    )


@pytest.mark.parametrize("seed", range(28))
def test_drawn_models_are_evaluated_alike(opened, seed):
    model = drawn(seed)
    page = opened(model, "ab")
    is_near = seed % 4 == 0 or seed % 3 > 0 or isinstance(model.read_out, LanguageModel)
    for x in strings(model, 6, 7):
        for arithmetic in ("float64", "float32", "bfloat16"):
            trace = model.run("".join(x), arithmetic)
            agree(trace, *evaluated(page, model, x, arithmetic), is_near=is_near)


def read_only(read_out, *numbers):
    """A model without layers: the read-out of one number for each of the symbols a, b, …"""
    symbols = "abcdef"[: len(numbers)]
    embedding = Embedding(symbols=symbols, vectors=[[each] for each in numbers])
    return Transformer(stream=Stream(("x",)), embedding=embedding, layers=(), read_out=read_out)


@pytest.mark.parametrize(
    ("read_out", "numbers", "answers"),
    [
        # With n = 1 the threshold is 1/(2 · 2): a number there is not near 0.
        (
            NearZero(W_out=[[1]], powers=(1,)),
            (0.25, np.nextafter(0.25, 0), -0.3),
            [False, True, False],
        ),
        (MultiClass(W_out=[[1], [0], [1]], labels="xyz"), (1, 0, -1), ["x", "x", "y"]),
        (Binary(W_out=[[1]]), (0, 5e-324, -1), [False, True, False]),
        (
            NearestFraction(W_out=[[1]], scale=2, mask="none", with_bos=False, at="every"),
            (0.25, np.nextafter(0.25, 0), -0.25),
            [["1/2"], ["0"], ["0"]],
        ),
    ],
    ids=["near zero", "largest", "above zero", "nearest fraction"],
)  # fmt: skip
def test_decisions_at_their_thresholds(opened, read_out, numbers, answers):
    model = read_only(read_out, *numbers)
    page = opened(model, "a")
    for symbol, wanted in zip(model.alphabet, answers, strict=True):
        assert evaluated(page, model, [symbol], "float64")[1] == wanted
        agree(model.run(symbol), *evaluated(page, model, [symbol], "float64"))


def test_bfloat16_is_rounded_once(opened):
    page = opened(model_of("parity"))
    source = random.Random(1)
    numbers = [
        0.0,
        1e300,
        -1e300,
        2.0**-133,
        2.0**-134,
        1.5 * 2.0**-134,
        1e-320,
        -1e-320,
        3.3895e38,
    ]
    for _ in range(2000):
        middle = (2 * source.randrange(128, 256) + 1) * 2.0 ** source.randint(-140, 118)
        numbers += [middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), -middle]
        numbers.append(source.uniform(-2, 2) * 2.0 ** source.randint(-140, 120))
    numbers = [float(each) for each in numbers]
    got = page.evaluate(
        "(list) => list.map((x) => String(NumberFormats.nearestBfloat16(x)))", numbers
    )
    for x, text in zip(numbers, got, strict=True):
        assert float(text.replace("Infinity", "inf")) == nearest_bfloat16(x), x


def nearest_bfloat16(x):
    """By the definition: of the two neighbours the nearer, and of equally near ones the even."""
    if x == 0:
        return x
    size = Fraction(abs(x))
    exponent = max(int(np.frexp(abs(x))[1]) - 8, -133)
    unit = Fraction(2) ** exponent
    whole, rest = divmod(size, unit)
    whole += rest > unit / 2 or (rest == unit / 2 and whole % 2)
    value = whole * unit
    return np.copysign(float(value) if value <= BFLOAT16.largest else np.inf, x)


def changes_and_runs(model, x, arithmetic):
    """Changes as the page has them, with the same by `ablate` and `patch`."""
    a = {"arithmetic": arithmetic}
    for layer, part in enumerate(model.layers):
        for head in range(len(part.heads)):
            yield {"heads": [[layer, head]]}, tf.ablate(model, head=(layer, head)).run(x, **a)
        for unit in range(len(part.feed_forward.W_1) if part.feed_forward else 0):
            yield {"units": [[layer, unit]]}, tf.ablate(model, unit=(layer, unit)).run(x, **a)
    for column, slot in enumerate(model.stream.slots):
        yield {"slots": [column]}, tf.ablate(model, slot=slot).run(x, **a)
        for after in range(1 + sum(len([*each.sublayers()]) for each in model.layers)):
            pin = {"after": after, "column": column, "value": 0.3}
            front = len(model.embedding.front)
            pinned = model.run(x, patch={(after, 2, slot): 0.3}, **a)
            yield {"pins": [pin | {"row": 1 + front}]}, pinned
            places = range(1 - front, len(x) + 1)
            clamped = model.run(x, patch={(after, each, slot): 0.3 for each in places}, **a)
            yield {"pins": [pin | {"row": None}]}, clamped


@pytest.mark.parametrize("arithmetic", ["float64", "bfloat16"])
@pytest.mark.parametrize(("name", "x"), [("dyck-1", ")(()"), ("dyck-k-d", "([)]()")])
def test_changes_are_those_of_python(opened, name, x, arithmetic):
    model = model_of(name)
    page = opened(model)
    for changes, trace in changes_and_runs(model, x, arithmetic):
        agree(trace, *evaluated(page, model, x, arithmetic, changes))


def test_two_changes_at_once(opened):
    model = model_of("dyck-1")
    page = opened(model)
    both = {"heads": [[0, 0]], "slots": [model.stream.index("violation")]}
    changed = tf.ablate(tf.ablate(model, head=(0, 0)), slot="violation")
    agree(changed.run("))(("), *evaluated(page, model, "))((", "float64", both))


def test_each_step_changes_the_picture(opened):
    page = opened(model_of("dyck-k-d"), "([)]()")
    seen = []
    while True:
        stream, grid, why = (
            page.locator(each).inner_text() for each in ("#stream", "#grid", "#explanation")
        )
        seen.append((stream, grid, why))
        if page.locator("#next").is_disabled():
            break
        page.click("#next")
    assert len(seen) == len({stream for stream, _, _ in seen}) == 9
    # Attention and networks change numbers until no pair is left; the read-out changes none.
    assert all(a[1] != b[1] or b[0].endswith("read-out") for a, b in itertools.pairwise(seen))
    page.focus("#slider")
    page.keyboard.press("Home")
    assert page.locator("#stream").inner_text() == seen[0][0]


def shown(page):
    """The grid: for each slot the cells as they are read."""
    rows = page.locator("#grid tbody tr")
    return {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()
    }


def test_typing_computes_and_unknown_symbols_are_marked(opened):
    page = opened(model_of("dyck-1"), "()")
    page.fill("#input", "())")
    assert "rejected" in page.locator("#answer").inner_text()
    assert shown(page)["sign"] == ["0", "1", "−1", "−1"]
    page.fill("#input", "(]x)")
    assert page.locator("#marks mark").all_inner_texts() == ["]", "x"]
    assert "position 2" in page.locator("#message").inner_text()
    assert page.locator("#answer").inner_text() == "" and shown(page) == {}
    page.click("#next")  # stepping does not break what is not computed
    page.fill("#input", "(" * 13)
    assert "at most 12 symbols" in page.locator("#message").inner_text()
    page.fill("#input", "")
    assert "accepted" in page.locator("#answer").inner_text()
    assert page.locator("#message").inner_text() == ""


def test_a_number_says_how_it_came_to_be(opened):
    model = model_of("dyck-1")
    page = opened(model, ")(", certificates=[tf.certify(model, arithmetic="float64")])
    page.locator("#steps button").nth(1).click()
    (changed,) = page.locator("#grid td.changed").all()  # the balance of ) alone is not 0
    assert (changed.get_attribute("data-row"), changed.inner_text()) == ("1", "−0.5")
    page.locator('#grid td[data-row="2"][data-column="1"]').click()
    why = page.locator("#explanation").inner_text()
    assert "balance = 0" in why and "Head 0 (softmax, mask future)" in why
    cells = page.locator("#explanation tbody tr").all_inner_texts()
    assert [re.split(r"\t", each)[1:] for each in cells] == [
        ["0.3333", "0", "0"], ["0.3333", "−1", "−0.3333"], ["0.3333", "1", "0.3333"],
    ]  # fmt: skip
    page.locator("#steps button").nth(2).click()
    page.locator('#grid td[data-row="1"][data-column="3"]').click()
    why = page.locator("#explanation").inner_text()
    # The margin is 1/(2 (N + 1)), rounded down to a power of two: 1/32 for N = 12.
    assert "violation = 1" in why and "ReLU(−balance (−0.5)" in why
    assert re.search(r"the error of a comparison:\s+error at most [\d.e−]+, allowed 0.0", why)


def test_where_a_format_parts_from_exact(opened):
    page = opened(model_of("dyck-1"), "(()")
    assert page.locator("#compared").inner_text().startswith("Exact arithmetic gives the same")
    page.select_option("#format", "bfloat16")
    said = page.locator("#compared").inner_text()
    balance = BFLOAT16.numbers(model_of("dyck-1").run("(()", "bfloat16").streams[1][1])[:, 1]
    wanted = [
        BFLOAT16.numbers(BFLOAT16.array([each]))[0]
        for each in (0, Fraction(1, 2), Fraction(2, 3), Fraction(1, 4))
    ]
    differs = [row for row in range(4) if balance[row] != wanted[row]]
    marked = page.locator("#grid td.differs").count()
    page.locator("#steps button").nth(1).click()
    assert [
        int(each.get_attribute("data-row")) for each in page.locator("#grid td.differs").all()
    ] == differs
    assert marked == 0 and bool(differs) == ("parts from exact" in said)


def test_changes_by_hand(opened):
    page = opened(model_of("dyck-1"), ")(")
    page.locator("#steps button").nth(3).click()
    page.get_by_role("button", name="Switch head 0 off").click()
    assert "accepted" in page.locator("#answer").inner_text()
    page.locator('#grid td[data-row="2"][data-column="4"]').click()
    assert "is switched off and adds 0" in page.locator("#explanation").inner_text()
    assert page.get_by_role("button", name="Switch head 0 on").is_visible()
    page.locator("#changes button").click()
    assert "rejected" in page.locator("#answer").inner_text()
    page.locator('#grid td[data-row="2"][data-column="4"]').click()
    page.fill("#value", "0")
    page.get_by_role("button", name="Pin it here").click()
    assert "accepted" in page.locator("#answer").inner_text()
    page.click("#undo")
    page.locator("#steps button").nth(2).click()
    page.locator('#grid td[data-row="1"][data-column="3"]').click()
    page.get_by_role("button", name="switch off unit").first.click()
    assert "violations" not in page.locator("#changes").inner_text()
    assert "Unit 0 of layer 0 is switched off" in page.locator("#changes").inner_text()
    page.click("#undo")
    page.get_by_role("button", name="Ablate the slot").click()
    assert "accepted" in page.locator("#answer").inner_text()


def test_without_a_mouse(opened):
    page = opened(model_of("dyck-1"), "(())")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the numbers"
    page.focus('#grid td[tabindex="0"]')
    for key in ("ArrowRight", "ArrowDown", "PageDown"):
        page.keyboard.press(key)
    focused = page.evaluate("({...document.activeElement.dataset})")
    assert focused == {"row": "2", "column": "1"}
    assert (
        "balance = 0.6666666666666666 for ( at position 2"
        in page.locator("#explanation").inner_text()
    )
    assert page.locator('#grid td[tabindex="0"]').count() == 1


WANTED = {
    "dyck-1": (["−1", "−0.5", "1", "0.3333", "0", "1", "1"], ["rejected"] * 5 + ["accepted"] * 2),
    "dyck-k-d": (["1", "−1", "−1", "0", "1", "−1", "1", "1", "1"], ["rejected"] * 9),
}
"""For each stop of a guided path the number that its text speaks of, and the answer."""


@pytest.mark.parametrize("name", WANTED)
def test_the_guided_paths_are_true(opened, name):
    page = opened(
        tf.recipe(name).build(**({"max_length": 16} if name == "dyck-1" else {})), name=name
    )
    numbers, answers = WANTED[name]
    page.get_by_role("button", name="Show me").click()
    for k, stop in enumerate(GUIDES[name].stops):
        assert stop.text in page.locator("#guide").inner_text()
        assert page.locator('#grid td[aria-selected="true"]').inner_text() == numbers[k]
        assert answers[k] in page.locator("#answer").inner_text()
        if k + 1 < len(GUIDES[name].stops):
            page.get_by_role("button", name="Go on").click()


def test_a_guided_path_scrolls_to_its_number(opened):
    page = opened(
        tf.recipe("dyck-k-d").build(), name="dyck-k-d", viewport={"width": 400, "height": 900}
    )
    page.get_by_role("button", name="Show me").click()
    for _ in range(7):
        page.get_by_role("button", name="Go on").click()
    cell = page.locator('#grid td[aria-selected="true"]').bounding_box()
    assert cell["x"] >= 0 and cell["x"] + cell["width"] <= 400


def test_what_the_guided_paths_say_of_other_strings():
    balanced = tf.recipe("dyck-k-d").build()
    assert balanced("([])()") and not balanced("([)]()")
    model = tf.recipe("dyck-1").build(max_length=6)
    deaf = tf.ablate(model, head=(0, 0))
    assert all(deaf(x) for x in ("", "((", ")(", "())", ")))"))
    # The read-out of dyck-k-d reads 1/2 − remaining.
    assert np.array_equal(balanced.values(["([)]()"])[0], [[-0.5]])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_axe_finds_no_violation(opened, scheme, width):
    missing = "axe-playwright-python is not installed"
    pytest.importorskip("axe_playwright_python", reason=missing)
    model = model_of("dyck-1")
    certificate = tf.certify(model, arithmetic="float64")
    size = {"width": width, "height": 800}
    page = opened(
        model, ")(", "dyck-1", certificates=[certificate], color_scheme=scheme, viewport=size
    )
    page.evaluate(axe_script())
    # Every step and every stop in one of the four, and one of each kind in the others.
    many = (scheme, width) == ("light", 1280)
    states = [lambda: None, *[lambda: page.click("#next")] * (5 if many else 1)]
    states += [lambda: page.get_by_role("button", name="Show me").click()]
    states += [lambda: page.get_by_role("button", name="Go on").click()] * (6 if many else 0)
    states += [lambda: page.locator("#words summary").click()]
    states += [lambda: page.get_by_role("button", name="Leave the path").click()]
    states += [lambda: page.locator("#steps button").nth(1).click()]
    states += [lambda: page.fill("#value", ""), lambda: page.click("#pin-here")]
    states += [lambda: page.fill("#value", "1/3"), lambda: page.click("#clamp")]
    states += [lambda: page.click("#ablate")]
    states += [lambda: page.fill("#input", ")x(")]
    for number, act in enumerate(states):
        act()
        found = page.evaluate("axe.run()")
        assert len(found["passes"]) > 10
        told = [
            (each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]
        ]
        assert told == [], (number, told)


def axe_script():
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def test_a_long_input(opened):
    model = tf.recipe("dyck-k-d").build()
    x = "()[]" * 125
    page = opened(model, x)
    assert "accepted" in page.locator("#answer").inner_text()
    assert page.locator("#grid tbody tr").first.locator("td").count() == 60
    page.click("#later")
    assert page.locator("#window").inner_text() == "positions 60 to 119 of 500"
    page.focus('#grid td[tabindex="0"]')
    page.keyboard.press("End")
    assert page.locator("#window").inner_text() == "positions 480 to 500 of 500"
    assert page.locator("#later").is_disabled()
    page.locator("#steps button").nth(7).click()
    # Every pair is gone, so that the last head finds 501 positions with equal scores.
    told = page.locator("#head").inner_text()
    assert "attends to 501 positions, each with weight 0.001996. 480 of them are not drawn" in told


@pytest.mark.parametrize("arithmetic", ["float64", "float32", "bfloat16"])
def test_more_keys_than_bfloat16_counts(opened, arithmetic):
    """Of 257 equal scores each has the weight 1/256 in bfloat16, where 257 is rounded to 256."""
    head = Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]], weighting="average-hard")
    model = Transformer(
        stream=Stream(("is b",)),
        embedding=Embedding(symbols=("a", "b"), vectors=[[0], [1]]),
        layers=(Layer((head,)),),
        read_out=RealVector(W_out=[[1]]),
    )
    page, x = opened(model, "ab"), "b" + "a" * 256
    trace = model.run(x, arithmetic)
    assert (trace.answer[0] == 1 / 256) == (arithmetic == "bfloat16")
    agree(trace, *evaluated(page, model, x, arithmetic))


def test_symbols_of_several_characters(opened):
    model = tf.recipe("induction-most-recent").build(alphabet=("no", "yes", "<b>"))
    page = opened(model, ["no", "<b>", "no"])
    assert page.locator("#input").input_value() == "no <b> no"
    page.fill("#input", "no  yes no")
    _, found = evaluated(page, model, ["no", "yes", "no"], "float64")
    assert found == [str(each) for each in model(["no", "yes", "no"])]
    page.fill("#input", "no maybe")
    assert page.locator("#marks mark").all_inner_texts() == ["maybe"]


def test_it_prints(opened):
    """Paper has the string, the answer and the numbers, and nothing to press."""
    page = opened(model_of("dyck-1"), ")(", "dyck-1")
    page.get_by_role("button", name="Show me").click()
    for _ in range(5):
        page.get_by_role("button", name="Go on").click()
    assert page.pdf()[:4] == b"%PDF"
    page.emulate_media(media="print")
    for shown_part in ("#title", "#input", "#answer", "#guide-text", "#grid", "#explanation"):
        assert page.locator(shown_part).is_visible(), shown_part
    pressed = "button, input[type=range], summary, #pin input, #keys"
    assert [each.inner_text() for each in page.locator(pressed).all() if each.is_visible()] == []


def test_a_browser_without_what_it_needs(opened):
    page = opened(model_of("dyck-1"), "(())", before="delete window.BigInt;")
    assert "needs a browser that knows BigInt" in page.get_by_role("alert").first.inner_text()
    assert not page.locator("#main").is_visible()
    page = opened(model_of("dyck-1"), "(())", java_script_enabled=False)
    assert "needs JavaScript" in page.locator("noscript").inner_text()


@pytest.mark.parametrize("early", ["window.setTimeout = (act) => act();", ""])
def test_a_browser_with_what_it_needs(opened, early):
    """A timeout may run before the scripts of a large page are read."""
    page = opened(model_of("dyck-1"), "(())", before=early)
    page.wait_for_load_state("load")
    assert page.locator("#main").is_visible() and not page.locator("#unsupported").is_visible()


def test_the_data_of_the_page_is_json_that_python_reads(opened):
    page = opened(model_of("dyck-1"), "(())")
    assert json.loads(page.locator("#data").text_content())["title"] == "Transformer"
