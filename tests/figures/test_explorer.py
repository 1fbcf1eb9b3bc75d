"""The explorer page: its data and its refusals, without a browser."""

import json
import random
import re
import string
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest

import transformist as tf
from command_line import answer, run
from transformist import errors
from transformist.arithmetic import number_system
from transformist.figures.explorer_page.guided_paths import GUIDES, guide_of
from transformist.figures.explorer_page.model_data import MOST_WEIGHTS, model_data
from transformist.programs import PROGRAMS


def data_of(page):
    return page_data(page.html)


def page_data(html):
    """The data of a page, read as a browser does: the text up to the first end of an element."""
    text = html.split('<script type="application/json" id="data">', 1)[1]
    return json.loads(re.split("</script", text, maxsplit=1, flags=re.IGNORECASE)[0])


def renamed(model, symbols):
    """The model with other symbols."""
    return replace(model, embedding=replace(model.embedding, symbols=symbols))


@pytest.mark.parametrize("arithmetic", ["float64", "float32", "bfloat16"])
def test_the_weights_of_a_page_are_those_of_the_format(arithmetic):
    model = tf.recipe("original-transformer").build()
    data = model_data(model)
    system = number_system(arithmetic)
    for step, sublayer in ((0, model.layers[0].heads[0]), (1, model.layers[0].feed_forward)):
        names = ("W_Q", "W_K", "W_V") if step == 0 else ("W_1", "W_2", "b_1")
        part = data["steps"][step]["heads"][0] if step == 0 else data["steps"][step]["network"]
        for name in names:
            given = part[name]
            dense = np.zeros(int(np.prod(given["shape"])))
            dense[given["at"]] = given.get(arithmetic, given["float64"])
            exact = np.atleast_2d(getattr(sublayer, name))
            assert np.array_equal(dense.reshape(exact.shape), system.numbers(system.array(exact)))


def test_a_page_refers_to_nothing_outside():
    class Links(HTMLParser):
        found = ()

        def handle_starttag(self, tag, attributes):
            names = ("src", "href", "action", "data")
            self.found += tuple(value for name, value in attributes if name in names)

    links = Links()
    links.feed(tf.figures.explorer(tf.recipe("dyck-1").build(max_length=4)).html)
    assert links.found == ("#stream",)


def test_symbols_cannot_end_the_data():
    alphabet = ("</script><b>", "<!--", "&amp;", '"', "\\u003c")
    model = tf.recipe("induction-most-recent").build(alphabet=alphabet)
    page = tf.figures.explorer(model, ["<!--", '"'], name="</title><script>")
    data = data_of(page)
    symbols = data["model"]["embedding"]["symbols"]
    assert [symbols[k] for k in data["input"]] == ["<!--", '"']
    assert {*alphabet} < {*symbols}
    assert "<title>&lt;/title&gt;&lt;script&gt;" in page.html


UNKNOWN = "gelu", "sigmoid", "tanh", "elu"
"""Activations of networks that pages do not have."""


def small(symbols=("a", "b"), activation="relu", factor=1, **embedding):
    """A model of one network, which reads out its first coordinate."""
    network = tf.FeedForward(W_1=[[factor, 0]], W_2=[[1], [0]], activation=activation)
    return tf.Transformer(
        stream=tf.Stream(("x", "y")),
        embedding=tf.Embedding(symbols=symbols, vectors=[[1, 0], [-1, 0]], **embedding),
        layers=(tf.Layer((), network),),
        read_out=tf.Binary(W_out=[[1, 0]]),
    )


def test_an_exact_number_beyond_float64_is_no_run_of_a_page():
    data = data_of(tf.figures.explorer(small(factor=10**200 * 10**108), "a"))["exact"]
    assert data["streams"] is not None
    model = small(factor=10**300)
    layers = (*model.layers, *model.layers)
    data = data_of(tf.figures.explorer(replace(model, layers=layers), "a"))["exact"]
    assert data["streams"] is None and "too large for float64" in data["refusal"]


def test_any_text_can_be_written(tmp_path):
    page = tf.figures.explorer(small(symbols=("a", "\ud800")), "a")
    page.save(tmp_path / "page.html")
    assert "\ud800" in json.dumps(data_of(page)["model"]["embedding"], ensure_ascii=False)


def test_an_empty_label_is_an_answer():
    labels = tf.MultiClass(labels=("", "x"), W_out=[[1, 0], [-1, 0]])
    data = data_of(tf.figures.explorer(replace(small(), read_out=labels), "a"))["exact"]
    assert data["answer"] == ""


@pytest.mark.parametrize(
    ("read_out", "answer"),
    [
        (tf.RealVector(W_out=[["1/3", 0], [2, 0]]), [2 / 3, 4.0]),
        (tf.LanguageModel(W_out=[[0, 0]] * 3, labels="abc"), dict.fromkeys("abc", 1 / 3)),
        (
            tf.Outputs(
                names=("p", "q"),
                parts=(
                    tf.Binary(W_out=[[1, 0]]),
                    tf.MultiClass(W_out=[[1, 0], [0, 0]], labels="xy", at="every"),
                ),
            ),
            {"p": True, "q": ["x"]},
        ),
        (tf.MultiClass(W_out=[[1, 0], [0, 0]], labels=("xx", "y"), at="every"), ["xx"]),
    ],
    ids=["vector", "probabilities", "parts", "labels"],
)
def test_the_exact_answer_has_numbers_where_it_is_numbers(read_out, answer):
    page = tf.figures.explorer(replace(small(), read_out=read_out), "a")
    assert data_of(page)["exact"]["answer"] == answer


@pytest.mark.parametrize("what", ["name", "claim", "uncertified"])
def test_the_texts_of_a_page_are_texts(what):
    with pytest.raises(errors.InvalidValue, match="of a page must be a text; received 3"):
        tf.figures.explorer(small(), "a", **{what: 3})


def test_the_exact_run_of_the_first_input():
    model = tf.recipe("dyck-1").build(max_length=8)
    data = data_of(tf.figures.explorer(model, "(()"))["exact"]
    assert data["answer"] is False
    assert data["words"][1][1::6] == ["0", "1/2", "2/3", "1/4"]  # balance, BOS among the positions
    softmax = tf.compile(PROGRAMS["reverse"], max_length=4)
    data = data_of(tf.figures.explorer(softmax, "ab"))["exact"]
    assert data["answer"] is None and "softmax" in data["refusal"]


def test_the_margins_are_those_of_the_certificates():
    model = tf.compile(PROGRAMS["dyck-1"], max_length=8)
    found = tf.certify(model, arithmetic="float32")
    data = data_of(tf.figures.explorer(model, certificates=[found]))["certificates"]
    assert [*data] == ["float32"]
    assert [tuple(each) for each in data["float32"]["demands"]] == [
        (each.place, each.what, each.error, each.allowed) for each in found.demands
    ]
    other = tf.recipe("dyck-1").build(max_length=8)
    for wrong in (found, tf.certify(other, host="gpt2"), "float32"):
        with pytest.raises(errors.InvalidValue, match="must be of its model"):
            tf.figures.explorer(other, certificates=[wrong])
    with pytest.raises(errors.InvalidValue, match="must be of its model"):
        tf.figures.explorer(other, certificates=None)


@pytest.mark.parametrize("name", GUIDES)
def test_a_guided_path_belongs_to_the_recipe_as_it_is_built(name):
    assert guide_of(name, tf.recipe(name).build()) is not None
    assert guide_of("dyck-1-2", tf.recipe(name).build()) is None
    assert guide_of(name, tf.recipe("parity").build()) is None


def test_a_path_whose_layers_are_not_there_is_left_out():
    for depth in (1, 4):
        assert guide_of("dyck-k-d", tf.recipe("dyck-k-d").build(depth=depth)) is None
    assert guide_of("dyck-1", tf.recipe("dyck-1").build(max_length=1)) is None


@pytest.mark.parametrize(
    ("build", "x", "says"),
    [
        (
            lambda: tf.recipe("original-transformer").build(d_model=64),
            None,
            "at most 20,000 weights",
        ),
        (lambda: tf.recipe("dyck-1").build(max_length=4), "(((((", "at most N = 4"),
        (lambda: tf.recipe("dyck-k-d").build(), "(" * 600, "at most 512 symbols"),
        (lambda: tf.recipe("dyck-1").build(max_length=4), "(x", "'x' at position 2"),
        (lambda: tf.recipe("dyck-1").build(max_length=4), 3, "a string, or a sequence"),
        (lambda: tf.recipe("min").build(), None, "must be a Transformer"),
        (
            lambda: renamed(tf.recipe("dyck-1").build(max_length=4), (1, "1", "BOS")),
            None,
            "must differ as texts",
        ),
        (
            lambda: tf.recipe("induction-most-recent").build(alphabet=("a b", "c")),
            None,
            "none may have a space",
        ),
        (lambda: small(symbols=("a", "\n")), None, "hold no line break"),
        (lambda: small(symbols=(" ", "bb")), None, "none may have a space"),
        (lambda: small(symbols=("a", "b\ufeffb")), None, "none may have a space"),
        *((lambda each=each: small(activation=each), None, f"received {each}") for each in UNKNOWN),
        (lambda: small(positions=tf.Sinusoids(2), front=("b",)), None, "no symbol in front"),
    ],
)
def test_what_a_page_cannot_have_is_refused(build, x, says):
    with pytest.raises(errors.TransformistError, match=re.escape(says)):
        tf.figures.explorer(build(), x)


def test_the_largest_model_is_taken():
    model = tf.recipe("induction-most-frequent").build(alphabet=string.ascii_letters[:32])
    count = sum(np.count_nonzero(matrix.values) for _, matrix in model.weights_table())
    assert 0.9 * MOST_WEIGHTS < count <= MOST_WEIGHTS
    page = tf.figures.explorer(model)
    assert data_of(page)["model"]["longest"] >= 60
    assert 5.5e5 < len(page.html) < 6.5e5  # as MOST_WEIGHTS says


def test_the_page_of_fractions_that_every_format_rounds():
    d = 97
    numbers = [Fraction(10007 + k, 99991) for k in range(d * d)]
    W = np.array(numbers, dtype=object).reshape(d, d)
    model = tf.Transformer(
        stream=tf.Stream(tuple(f"slot {k}" for k in range(d))),
        embedding=tf.Embedding(symbols=("a",), vectors=[[1] * d]),
        layers=(tf.Layer((), tf.FeedForward(W_1=W, W_2=W)),),
        read_out=tf.Binary(W_out=[[1] * d]),
    )
    count = sum(np.count_nonzero(matrix.values) for _, matrix in model.weights_table())
    assert count == 19_012
    assert 1.4e6 < len(tf.figures.explorer(model, "a").html) < 1.6e6  # as MOST_WEIGHTS says


def test_the_command_writes_a_page(capsys, tmp_path):
    file = tmp_path / "page.html"
    facts = answer(capsys, "explain", "programs/dyck-1", "(())", "-o", file)
    assert facts["certificates"] == ["float64", "float32", "bfloat16"]
    text = file.read_text(encoding="utf-8")
    assert facts["characters"] == len(text) and facts["max_length"] >= 32
    code, out, err = run(capsys, "explain", "dyck-1", "--no-certificates", "-o", file)
    assert (code, out, err) == (0, f"wrote {file}\n", "")
    data = page_data(file.read_text(encoding="utf-8"))
    assert data["certificates"] == {} and data["title"] == "dyck-1"
    assert data["claim"] == tf.recipe("dyck-1").claim.statement
    assert "in float32: --no-certificates was given." in data["uncertified"]["float32"]
    assert "N = 32" in data["uncertified"]["float32"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("dyck-k-d",), "explain makes none for models without max_length"),
        (("dyck-1", "--set", "max_length=300"), "makes none for models that are built for N > 256"),
        (("count-modulo",), "inputs must stand behind BOS or nothing"),
    ],
)
def test_the_command_says_why_there_is_no_certificate(capsys, tmp_path, arguments, why):
    file = tmp_path / "page.html"
    code, _, err = run(capsys, "explain", *arguments, "-o", file)
    assert code == 0
    reasons = page_data(file.read_text(encoding="utf-8"))["uncertified"]
    assert [*reasons] == ["float64", "float32", "bfloat16"]
    assert all(why in each for each in reasons.values()), (reasons, err)


def test_an_input_may_begin_with_a_dash(capsys, tmp_path):
    (tmp_path / "f.py").write_text(
        "import transformist as tf\n@tf.program(alphabet='-+')\ndef f(x):\n    return x.tag()\n"
    )
    file = tmp_path / "p.html"
    program = f"{tmp_path}/f.py:f"
    answer(capsys, "explain", program, "--no-certificates", "-o", file, "-+-")
    data = page_data(file.read_text(encoding="utf-8"))
    assert [data["model"]["embedding"]["symbols"][k] for k in data["input"]] == ["-", "+", "-"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("dyck-1", "(("), "must be told where to write the page"),
        (("dyck-1", "-o", "page.pdf"), "a file that ends in .html"),
        (("dyck-1", "-o", "none/page.html"), "a file in a writable directory"),
        (("dyck-1", "(a", "-o", "page.html"), "'a' at position 2"),
        (("min", "[1]", "-o", "page.html"), "explain with min; choose a program, or a recipe"),
        (("dyck-1", "(((", "-o", "page.html", "--set", "max_length=2"), "at most N = 2"),
    ],
)
def test_what_the_command_refuses(capsys, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "explain", *arguments)
    assert (code, out) == (2, "")
    assert says in err and len(err.splitlines()) == 1
    assert [*tmp_path.iterdir()] == []


def test_the_same_model_gives_the_same_page():
    model, again = (tf.recipe("dyck-k-d").build() for _ in range(2))
    x = "".join(random.Random(1).choices("()[]", k=9))
    assert tf.figures.explorer(model, x).html == tf.figures.explorer(again, x).html
