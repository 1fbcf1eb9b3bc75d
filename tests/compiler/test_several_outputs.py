"""Programs that hand out several named values: interpreted, compiled, certified, saved, run."""

import itertools
import json
import pickle
import random
from dataclasses import replace
from fractions import Fraction

import pytest

import transformist as tf
from command_line import run
from transformist.arithmetic import FLOAT64
from transformist.hosts.named_arrays import answer_from
from transformist.model import Binary, LanguageModel, MultiClass
from transformist.verify.certificate import Unproved

LENGTH = 5

MAKES = {
    "ok": lambda x: (x == "a").any().accept(),
    "ends": lambda x: (x == "b").accept(empty=True),
    "before": lambda x: x.predecessor(default="-").tag(),
    "first": lambda x: (x == "a").first(default=False).tag(),
    "share": lambda x: (x == "a").prefix_mean().tag(),
    "count": lambda x: (x == "b").count("strict-future").tag(),
    "next": lambda x: x.predecessor(default="b").next_token(),
    "fine": lambda x: x.map({"a": 100000, "b": 100001}).tag(),
}

ANSWERS = {
    "ok": lambda x: "a" in x,
    "ends": lambda x: x == "" or x[-1] == "b",
    "before": lambda x: ("-" + x)[: len(x)],
    "first": lambda x: [x[:1] == "a"] * len(x),
    "share": lambda x: [Fraction(x[:i].count("a"), i) for i in range(1, len(x) + 1)],
    "count": lambda x: [x[:i].count("b") for i in range(len(x))],
    "next": lambda x: ("b" + x)[: len(x)],
    "fine": lambda x: [{"a": 100000, "b": 100001}[symbol] for symbol in x],
}
"""The definition of each output, in plain Python."""


def program_of(*names):
    @tf.program(alphabet="ab")
    def several(x):
        return tf.outputs(**{name: MAKES[name](x) for name in names})

    return several


def strings(length):
    return ["".join(x) for n in range(length + 1) for x in itertools.product("ab", repeat=n)]


SETS = [
    ("ok", "ends"),  # all at the last position
    ("share", "before"),  # all at every position, without BOS in one of them
    ("ok", "before", "count"),  # both
    ("fine", "share"),  # a label where the number's margin does not fit
    *(tuple(random.Random(k).sample(sorted(MAKES), 4)) for k in range(3)),
]


@pytest.mark.parametrize("names", SETS, ids=" ".join)
def test_every_output_is_that_of_its_definition(names):
    program = program_of(*names)
    model = tf.compile(program, max_length=LENGTH)
    for x in strings(4):
        wanted = {name: ANSWERS[name](x) for name in names}
        assert program(x) == model(x, "float32") == wanted, x
        assert list(model(x)) == list(names)
        if x or model.embedding.front:
            assert tf.run(model, x) == wanted, x
        assert all(model.part(name)(x) == wanted[name] for name in names)
    assert model.answers(["ab", "", "b"]) == [program(x) for x in ("ab", "", "b")]


def test_in_exact_arithmetic_and_in_intervals():
    program = program_of("ok", "before", "count")
    model = tf.compile(program, max_length=LENGTH, weighting="average-hard")
    for x in strings(3):
        assert model(x, "exact") == model(x, "interval") == program(x)


@pytest.mark.parametrize("names", [("ok", "before"), ("share", "next")], ids=" ".join)
def test_a_decoder_gives_the_outputs_of_each_prefix(names):
    @tf.program(alphabet="ab")
    def causal(x):
        made = {name: MAKES[name](x) for name in names if name != "ok"}
        verdict = {"ok": (x == "a").any_so_far().accept()} if "ok" in names else {}
        return tf.outputs(**made, **verdict)

    decoder, given = tf.decoder(tf.compile(causal, max_length=8)), "abbab"
    for n, symbol in enumerate(given, start=1):
        got, prefix = decoder.take(symbol), given[:n]
        wanted = {name: ANSWERS[name](prefix) for name in names}
        assert got == {name: x if name == "ok" else x[-1] for name, x in wanted.items()}


def test_programs_are_pickled_and_compared():
    program = program_of("ok", "before", "count")
    copy = pickle.loads(pickle.dumps(program))
    assert copy == program and copy("abb") == program("abb") and copy.places == program.places
    assert program != program_of("before", "ok", "count")


def test_a_certificate_needs_the_margins_of_every_output():
    """Symbols are told apart in any format; a count of up to 24 is beyond bfloat16."""

    @tf.program(alphabet="ab")
    def both(x):
        return tf.outputs(same=x.tag(), count=(x == "b").count("future").tag())

    model = tf.compile(both, max_length=24)
    for name, holds in (("float32", True), ("bfloat16", False)):
        found = tf.certify(model, name)
        same, count = (tf.certify(model.part(each), name) for each in ("same", "count"))
        assert same.holds and found.holds == count.holds == holds
        if holds:
            parts = {(each.error, each.allowed) for each in (*same.demands, *count.demands)}
            assert parts == {(each.error, each.allowed) for each in found.demands}
    assert found.grade == 0 and found.stopped.startswith("output count: ")
    assert found.largest_length <= count.largest_length < 24


def test_a_certificate_is_checked_and_saved(tmp_path):
    model, path = tf.compile(program_of("ok", "share"), max_length=20), tmp_path / "m.safetensors"
    found = tf.certify(model)
    assert found.holds and found.grade == 1
    assert {each.place for each in found.demands} >= {"read-out ok", "read-out share"}
    tf.save(model, path, [found])
    loaded = tf.load(path)
    assert loaded == model and hash(loaded) == hash(model) and loaded("aba") == model("aba")
    tf.check_certificate(loaded, *tf.load_certificates(path))
    for forged in (
        tf.certify(model.part("ok")),
        replace(found, demands=found.demands[:-1]),
        replace(found, grade=2, stopped="somewhere"),
    ):
        with pytest.raises(Unproved):
            tf.check_certificate(model, forged)


def test_of_two_outputs_that_fail_by_length_the_refusal_names_the_line():
    @tf.program(alphabet="ab")
    def coarse(x):
        share = (x == "a").prefix_mean()
        return tf.outputs(same=x.tag(), share=share.tag())

    with pytest.raises(
        tf.TransformistError, match="'share', where it is up to .* max_length=.* fits"
    ):
        tf.compile(coarse, max_length=10**6, arithmetic="float16")


def test_answers_are_made_of_numbers_that_other_software_computed():
    program = program_of("ok", "before", "share")
    model = tf.compile(program, max_length=LENGTH)
    for x in strings(3):
        *_, (_, z) = model.streams([x])
        y = model.read_out.values(z[0], FLOAT64)
        assert answer_from(model, y, len(x), "float64") == program(x)


def test_assembled_models_keep_all_outputs():
    model = tf.compile(program_of("share", "before"), max_length=LENGTH)
    both = tf.parallel(model, tf.compile(program_of("before", "next"), max_length=LENGTH))
    assert both("abb") == model("abb")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: tf.outputs(), "outputs must be given by name; received none"),
        (lambda x: tf.outputs(a=x), "each of several outputs must be made by accept, tag or"),
        (lambda x: tf.outputs(a=tf.outputs(b=x.tag())), r"write tf.outputs\(a=y.tag\(\)\)"),
        (lambda x: (x.tag(), tf.outputs(b=x.tag()))[1], "must return one output.*2 outputs"),
        (lambda x: tf.outputs(a=x.tag()) + 1, r"\+ on an output that hands out several values"),
        (lambda x: {"a": x.tag()}, "return tf.outputs"),
    ],
)
def test_refused_in_a_program(make, message):
    with pytest.raises(tf.TransformistError, match=message) as refused:
        tf.program(alphabet="ab")(make)
    assert "\n" not in str(refused.value)


ACCEPTS, LABELS = Binary(W_out=[[1, 0]]), MultiClass(W_out=[[0, 1], [0, 2]], labels="+-")


@pytest.mark.parametrize(
    ("names", "parts", "message"),
    [
        ("aa", [ACCEPTS, LABELS], "must each have a name of its own"),
        ("a", [ACCEPTS, LABELS], "names a of 2 read-outs"),
        ("ab", [ACCEPTS, replace(LABELS, at="cls")], "received MultiClass at cls"),
        ("a", [LanguageModel(W_out=[[1, 0]], labels=["x"])], "received LanguageModel at last"),
        ("ab", [ACCEPTS, Binary(W_out=[[1]])], "received widths 1, 2"),
    ],
)
def test_refused_as_a_read_out(names, parts, message):
    with pytest.raises(tf.TransformistError, match=message):
        tf.Outputs(names=tuple(names), parts=parts)


def test_no_read_out_alone_reads_each_position():
    """A proof covers BOS only for what reads the last position."""
    with pytest.raises(tf.TransformistError, match="received 'each'"):
        replace(ACCEPTS, at="each")


def test_parts_by_name():
    model = tf.compile(program_of("share", "before"), max_length=LENGTH)
    with pytest.raises(tf.TransformistError, match="'shore'.*did you mean share"):
        model.part("shore")
    with pytest.raises(tf.TransformistError, match="received a model with MultiClass"):
        model.part("before").part("before")


def test_on_the_command_line(capsys, tmp_path):
    source = tmp_path / "both.py"
    source.write_text(
        "import transformist as tf\n\n@tf.program(alphabet='ab')\ndef both(x):\n"
        "    a = x == 'a'\n"
        "    return tf.outputs(share=a.prefix_mean().tag(), any=a.any().accept())\n"
    )
    name = f"{source}:both"
    code, out, _ = run(capsys, "run", name, "aba", "--json")
    assert code == 0 and json.loads(out)["answer"] == {"share": [1, "1/2", "2/3"], "any": True}
    assert run(capsys, "run", name, "ab")[1].startswith("share: 1 1/2; any: accepted\n")
    code, out, _ = run(capsys, "show", name, "--json")
    assert code == 0 and json.loads(out)["outputs"] == ["share", "any"]
    code, out, _ = run(capsys, "check", name, "--max-length", "4")
    assert code == 0 and "held" in out
    assert run(capsys, "certify", name, "--max-length", "8")[0] == 0


@pytest.mark.parametrize("name", ["", "a b", "two\nlines"])
def test_names_are_identifiers(name):
    with pytest.raises(tf.TransformistError, match="must be an identifier of Python"):
        tf.program(alphabet="ab")(lambda x: tf.outputs(**{name: x.tag()}))


def test_outputs_without_a_name_are_refused():
    with pytest.raises(tf.TransformistError, match="must be given by name; received 1 without"):
        tf.program(alphabet="ab")(lambda x: tf.outputs(x.tag()))
