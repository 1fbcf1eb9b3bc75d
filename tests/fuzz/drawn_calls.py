"""Calls of the library, drawn as Python text, so that what fails can be pasted into a session."""

import copy
import inspect
import itertools
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import transformist as tf
from transformist.programs import PROGRAMS

WRONG = [
    "None", "True", "0", "1", "-1", "2", "3.5", "10**30", "-10**30", "10**400", "Fraction(1, 3)",
    "Fraction(1, 2**22)", "float('nan')", "float('inf')", "''", "'a'", "'none'", "'é'", "'1/0'",
    "'1e400'", "'float32'", "'ab\\n'", "'[red]'", "'\\udcff'", "[]", "()", "{}", "[None]",
    "['a', 1]", "[[1], [2, 3]]", "[[[1]]]", "{'a': 1}", "np.array([])", "np.array([[np.nan]])",
    "np.zeros((2, 0))", "np.array([1, np.inf])", "np.array([[1, 2]], dtype='f2')",
    "np.array([[True]])", "np.array(['1/3'])", "np.float32(2)", "np.int64(1)", "np.zeros(3)[::-1]",
    "[1] * 300", "model", "head", "network", "program", "stream", "trace", "certificate", "recipe",
]  # fmt: skip
"""What somebody may well give by mistake: the library refuses it in its own words."""

ABSURD = [
    "1j", "b'ab'", "set()", "range(3)", "object()", "object", "print", "(lambda: 1)",
    "(c for c in 'ab')", "np.array('a')", "np.array([None])", "np.array([[1j]])", "np.bool_(True)",
    "np.datetime64('2020')", "np.ma.array([1])", "NotImplemented", "...", "slice(None)",
    "slice(5, 2)", "ValueError", "Path('.')", "memoryview(b'ab')", "Odd()",
]  # fmt: skip
"""What nobody gives by mistake: Python's own TypeError and the like may come of it."""

MATRICES = [
    "[[1]]", "[[1, 0]]", "[[1, 2], [3, 4]]", "[['1/3', 0]]", "np.eye(2)", "[[1e300, 1e-300]]",
    "[[1], [2]]", "np.ones((2, 3))", "[[Fraction(1, 3)] * 2] * 2", "[[0] * 6]", "np.eye(6)",
]  # fmt: skip
VECTORS = ["[1]", "[1, 2]", "['1/3', 2]", "np.zeros(2)", "None", "[0] * 6"]
STRINGS = ["''", "'a'", "'ab'", "'(())'", "')('", "'abab'", "['a', 'b']", "'()' * 20", "'c'"]
LISTS = ["[[1, 2]]", "[[1], [2]]", "np.ones((3, 2))", "[[0] * 6] * 2", "[1, 2]", "[['1/3', 1]]"]
SYSTEMS = [
    "'exact'", "'float64'", "'float32'", "'bfloat16'", "'float16'", "'interval'", "'float8_e4m3'",
    "'saturating'", "'float32:2'", "'float8_e5m2'",
]  # fmt: skip
SHORT = ["0", "1", "3", "5", "True", "-1", "2.5", "10**9", "'a'", "np.int64(2)"]
WEIGHTINGS = ["'softmax'", "'average-hard'", "'leftmost-hard'", "'rightmost-hard'"]
MASKS = ["'none'", "'future'", "'strict-future'", "'past'", "'strict-past'"]
MODELS = ["model", "copies", "compiled", "hard", "uniform", "fractions", "stranger"]

RIGHT = {
    **dict.fromkeys(
        ["W_Q", "W_K", "W_V", "W_O", "W_1", "W_2", "W_out", "W_N", "vectors"], MATRICES
    ),
    **dict.fromkeys(["b_Q", "b_K", "b_V", "b_O", "b_1", "b_2", "b_out", "gain", "bias"], VECTORS),
    "weighting": WEIGHTINGS,
    "mask": MASKS,
    "arithmetic": SYSTEMS,
    "epsilon": ["0", "1", "'1/8'"],
    "at": ["'last'", "'every'", "'first'"],
    "activation": ["'relu'", "'gelu'", "'gelu-tanh'"],
    "labels": ["('a', 'b')", "('yes', 0)", "('a', 'EOS')", "('a',)"],
    "powers": ["(1, 2)", "(1,)"],
    "scale": ["1", "4", "20"],
    "with_bos": ["True", "False"],
    "model": MODELS,
    "x": [*STRINGS, *LISTS],
    "z": LISTS,
    "inputs": ["['a', 'ab']", "['()', ')(']", "[]"],
    "strings": ["['ab', 'ba']", "['()']"],
    "prompt": STRINGS,
    "max_new_tokens": ["0", "1", "3"],
    "max_length": ["1", "2", "3", "8", "None"],
    "length": ["1", "9", "None"],
    "positions": [
        "None",
        "['i']",
        "['i', 'n']",
        "2",
        "tf.PositionFunctions(('i/n', '1'))",
        "tf.Sinusoids(2)",
        "tf.PositionTable([[1, 2]] * 9)",
        "{'i': 'i'}",
    ],
    "engine": ["'reference'", "'structured'", "'auto'"],
    "order": ["'any'", "'reference'", "'structured'"],
    "reference": [
        "len",
        "lambda x: True",
        "program",
        "lambda x: x",
        "lambda x: [1] * len(x)",
        "sorted",
    ],
    "program": ["program", "tagger"],
    "heads": ["'many'", "'one'", "(head,)", "[head]", "2", "()"],
    "feed_forward": ["network", "None"],
    "layers": ["()", "(layer,)", "[layer]", "model.layers"],
    "pre_norms": ["(None, None)", "(norm, None)"],
    "post_norms": ["(None, None)", "(None, norm)"],
    "final_norm": ["None", "norm"],
    "stream": ["stream", "tf.Stream(('a', 'b'))", "model.stream"],
    "embedding": ["model.embedding", "tf.Embedding(symbols='ab', vectors=[[1, 0], [0, 1]])"],
    "read_out": ["model.read_out", "tf.Binary(W_out=[[1, 0]])", "None"],
    "built_for": ["None", "'float32'"],
    "symbols": ["('a', 'b')", "'ab'", "('a', 'BOS')"],
    "front": ["()", "('BOS',)"],
    "back": ["()", "('EOS',)"],
    "slots": ["('a', 'b')", "('a',)", "['a', 'b']"],
    "spans": ["()"],
    "names": ["('i',)", "('i', 'n')", "(None,)"],
    "d": ["2", "4", "1"],
    "parts": ["(network,)", "(network, network)", "()"],
    "function": ["network", "tf.Heads((head,))"],
    "pre_norm": ["None", "norm"],
    "post_norm": ["None", "norm"],
    "norm": ["'l1'", "'l2'", "'linf'"],
    "size": ["None", "1", "'1/2'"],
    "delta": ["1", "'1/8'", "0"],
    "part": ["network", "head", "layer", "stack", "model"],
    "first": ["stack", "model", "network", "1"],
    "second": ["stack", "model", "copies"],
    "head": ["head", "0", "'head'"],
    "sharpness": ["1", "'1/2'", "10**6"],
    "layer": ["0", "1", "layer"],
    "read": ["[{'a': 1}]", "[{'a': 1}, {'b': 2}]", "['a']"],
    "write": ["[{'a': 1}]", "[{'b': 1}]", "['b']"],
    "shift": ["0", "[1]", "'1/2'"],
    "state": ["{}", "{'layers.0.linear1.weight': np.eye(2)}"],
    "norm_epsilon": ["1e-5", "0"],
    "norm_first": ["True", "False"],
    "path": [
        "Path('good.safetensors')",
        "'good.safetensors'",
        "'none'",
        "'.'",
        "''",
        "b'good.safetensors'",
        "'a\\0'",
        "'made.safetensors'",
        "3",
    ],
    "certificates": ["()", "[certificate]", "certificate", "[None]"],
    "certificate": ["certificate", "refused"],
    "name": ["'dyck-1'", "'min'", "'accept'", "'a'", "'parity'", "'none'"],
    "alphabet": ["'ab'", "['a', 1]", "'()'"],
    "slot": ["'a'", "'accept'", "0", "'balance'"],
    "after": ["None", "0", "1", "2"],
    "stack": ["stack"],
    "inputs_": ["('a',)"],
    "outputs": ["('b',)", "('a',)"],
    "form": ["{'a': 1}", "'a'"],
    "words": ["{'a': {'a': 1}}"],
    "string": STRINGS,
    "symbol": ["'a'", "'('"],
    "arithmetic_": SYSTEMS,
    "width": ["2", "1"],
    "n": ["0", "1", "4"],
    "given": ["{}", "{'max_length': 4}"],
    "settings": ["{}", "{'max_length': 4}"],
    "token": ["'('", "'a'"],
}
"""Arguments by the names of parameters, most of which fit; a parameter of another name gets any."""

RECEIVERS = [
    "model", "copies", "compiled", "hard", "uniform", "fractions", "stranger", "head", "network",
    "layer", "norm", "stream", "stack", "trace", "certificate", "refused", "verdict", "program",
    "tagger", "recipe", "planned", "decoder", "model.embedding", "model.read_out",
    "fractions.read_out", "tf.Sinusoids(4)", "tf.PositionFunctions(('i', '1/i'))",
    "tf.PositionTable([[1, 2]] * 3)", "tf.Heads((head,))", "tf.FeedForwardStack((network,))",
    "tf.boolean_representations()[0]", "tf.recipes()[0]", "tf.recipe('min').build()",
    "tf.recipe('soften')", "tf.NearZero(W_out=[[1]], powers=(1,))",
]  # fmt: skip
FORMS = [
    "{0}({1})", "{0}[{1}]", "{0} == {1}", "{0} != {1}", "{0} < {1}", "hash({0})", "repr({0})",
    "str({0})", "bool({0})", "pickle.loads(pickle.dumps({0}))", "copy.deepcopy({0})",
    "copy.copy({0})", "len({0})", "list(itertools.islice({0}, 99))", "{0} + {1}", "{1} * {0}",
    "vars({0})", "dir({0})", "{0}.none", "np.asarray({0})", "{{{0}: 1}}", "sorted([{0}, {0}])",
    "dataclasses.replace({0})",
]  # fmt: skip
"""What is done with any object."""


class Odd:
    """What raises whatever is asked of it."""

    def __eq__(self, other):
        raise ValueError("not comparable")

    def __bool__(self):
        raise ValueError("neither")

    def __repr__(self):
        raise ValueError("no text")

    __hash__ = None


def names():
    """What the texts may name."""
    import dataclasses

    head = tf.Attention(W_Q=[[1, 0]], W_K=[[0, 1]], W_V=[[1, 1]], W_O=[[1], [0]])
    network = tf.FeedForward(W_1=[[1, 0], [0, 1]], W_2=[[1, 0], [0, "1/3"]])
    layer, stream = tf.Layer(heads=(head,), feed_forward=network), tf.Stream(("a", "b"))
    model = tf.recipe("dyck-1").build(max_length=20)
    compiled = tf.compile(PROGRAMS["dyck-1"], max_length=20)
    fractions = tf.compile(PROGRAMS["fraction-of-previous"], max_length=8)
    return {
        "tf": tf, "np": np, "pickle": pickle, "copy": copy, "itertools": itertools, "Path": Path,
        "Fraction": Fraction, "dataclasses": dataclasses, "Odd": Odd,
        "head": head, "network": network, "layer": layer, "stream": stream, "model": model,
        "norm": tf.LayerNorm(gain=[1, 1], epsilon=1), "compiled": compiled, "fractions": fractions,
        "copies": tf.recipe("induction-most-recent").build(max_length=9),
        "hard": tf.compile(PROGRAMS["reverse"], max_length=8, weighting="average-hard"),
        "uniform": tf.recipe("dyck-1-uniform").build(),
        "stranger": tf.Transformer(
            stream=stream, embedding=tf.Embedding(symbols=("a", "b"), vectors=[[1, 0], ["1/3", 1]]),
            layers=(layer, layer), read_out=tf.LanguageModel(W_out=np.eye(2), labels=("a", "EOS")),
            final_norm=tf.LayerNorm(gain=[1, 1], epsilon="1/8"),
        ),
        "stack": tf.LayerStack(stream, ("a",), (layer,), ("b",)), "trace": model.run("(())"),
        "certificate": tf.certify(model), "refused": tf.certify(model, "float8_e4m3"),
        "verdict": tf.check(model, PROGRAMS["dyck-1"], 3), "program": PROGRAMS["dyck-1"],
        "tagger": PROGRAMS["reverse"], "recipe": tf.recipe("dyck-1"),
        "planned": tf.plan(model, "()"),
        "decoder": tf.decoder(copies_decoder()),
    }  # fmt: skip


def copies_decoder():
    return tf.recipe("induction-most-recent").build(max_length=9)


def functions():
    """The public functions and classes, by their texts, with the names of their parameters."""
    found = {}
    for name in tf.__all__:
        each = getattr(tf, name)
        if name not in (
            "program",
            "Certificate",
            "Diagnosis",
            "Verdict",
            "Trace",
            "Program",
            "TransformistError",
        ):
            found[f"tf.{name}"] = inspect.signature(each).parameters
    return found


def methods(known):
    """Those of the receivers, and properties; none that takes arrays of an arithmetic."""
    found = {}
    for receiver in RECEIVERS:
        value = eval(receiver, known)
        for name in dir(type(value)):
            if name.startswith("_"):
                continue
            if not callable(getattr(type(value), name, None)):
                found[f"{receiver}.{name}"] = None
                continue
            parameters = dict(inspect.signature(getattr(value, name)).parameters)
            is_inner = any(str(p.annotation) in INTERNAL for p in parameters.values())
            if is_inner or name in BETWEEN_PARTS:
                continue
            found[f"{receiver}.{name}"] = parameters
    return found


BETWEEN_PARTS = (
    "encode",
    "held",
    "of",
    "rows_read",
    "scores",
    "weights",
    "reading",
    "writing",
    "vector",
)
"""Methods by which parts of the library build and evaluate models, which know what they give."""

INTERNAL = ("Arithmetic", "Array", "NDArray[Any]")
"""Annotations of parameters by which a method is one of the definitions among themselves."""


class Table(dict):
    """What may be called, by its text: its parameters, or None of a property."""

    def __repr__(self):
        return f"{len(self)} names"


def lines(known):
    """Lines of Python: a function, a method, or what is done with any object."""
    return st.one_of(
        calls(Table(functions())),
        calls(Table(methods(known))),
        calls(Table(methods(known))),
        st.tuples(st.sampled_from(FORMS), st.sampled_from(RECEIVERS), arguments("x")).map(
            lambda parts: parts[0].format(*parts[1:])
        ),
    )


@st.composite
def calls(draw, table):
    """A call, most arguments of which fit."""
    name = draw(st.sampled_from(sorted(table)))
    if table[name] is None:
        return name
    given = []
    for parameter in table[name].values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        is_optional = parameter.default is not parameter.empty
        is_needed = name == "tf.check" and parameter.name == "max_length"  # else it takes long
        if is_optional and not is_needed and draw(st.booleans()):
            continue
        value = draw(st.sampled_from(SHORT) if is_needed else arguments(parameter.name))
        is_named = parameter.kind is parameter.KEYWORD_ONLY or is_optional
        given.append(f"{parameter.name}={value}" if is_named else value)
    return f"{name}({', '.join(given)})"


def arguments(name):
    """Texts for a parameter, most of which fit."""
    right = st.sampled_from(RIGHT.get(name, WRONG))
    pools = {0: WRONG, 1: WRONG, 2: WRONG, 3: ABSURD}
    return st.integers(0, 12).flatmap(lambda k: st.sampled_from(pools[k]) if k in pools else right)


# The language: an expression in a program, so that a refusal has a line.

WHATEVER = [
    "3", "None", "'a'", "'none'", "-1", "1.5", "'1/3'", "float('nan')", "10**400", "[]", "{}",
    "['a', 'b']", "{'a': 1, 'b': 0}", "{'a': 'b', 'b': 'a'}", "{'a': 1}", "[0, 1]", "'01'",
    "[1, 0]", "np.array([1, 2])", "np.bool_(True)", "(1, 2)", "True", "'future'", "'past'",
    "Fraction(1, 2**22)", "0.1", "1e-300",
]  # fmt: skip
RESULTS = [
    "{0}", "{0}.tag()", "{0}.accept()", "{0}.next_token()", "{0}.any().accept()",
    "{0}.mean().tag()", "({0} > 0).accept()", "({0} == 1).accept()", "{0}.tag().accept()",
]  # fmt: skip
OPERATORS = [
    "({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / {1})", "({0} == {1})", "({0} < {1})",
    "({0} & {1})", "({0} | {1})", "(~{0})", "(-{0})", "abs({0})", "({0} % {1})", "({0} ** {1})",
    "({0} @ {1})", "{0}[{1}]", "({0} and {1})", "(not {0})", "({1} in {0})", "float({0})",
    "({1} if {0} else {0})", "max({0}, {1})", "sum({0})", "(0 < {0} < {1})", "({0} // {1})",
]  # fmt: skip


def language_methods():
    """Of all that a program can hold: each name, and its parameters."""
    held = {}

    def seen(x):
        output = x.tag()
        each_kind = (x, x == "a", x.map({"a": 1, "b": 0}), x.select(x), output)
        for kind in map(type, each_kind):
            for name in dir(kind):
                is_theirs = not name.startswith("_") and name != "answer"  # the interpreter's
                if is_theirs and callable(getattr(kind, name)):
                    held[name] = inspect.signature(getattr(kind, name)).parameters
        return output

    tf.program(alphabet="ab")(seen)
    return held


@st.composite
def in_language(draw, held, depth=2):
    """An expression of the language, most of which are refused."""
    if not depth or not draw(st.integers(0, 5)):
        return draw(
            st.sampled_from(["x", "x", "(x == 'a')", "x.map({'a': 1, 'b': 0})", "x.position('i')"])
        )
    inner = in_language(held, depth - 1)
    other = st.one_of(inner, st.sampled_from(WHATEVER))
    if not draw(st.integers(0, 2)):
        return draw(st.sampled_from(OPERATORS)).format(draw(inner), draw(other))
    name = draw(st.sampled_from(sorted(held)))
    given = []
    for parameter in list(held[name].values())[1:]:
        if parameter.default is not parameter.empty and draw(st.booleans()):
            continue
        is_named = parameter.kind is parameter.KEYWORD_ONLY
        value = draw(st.sampled_from(MASKS) if parameter.name == "mask" else other)
        given.append(f"{parameter.name}={value}" if is_named else value)
    return f"{draw(inner)}.{name}({', '.join(given)})"


def written_programs():
    """Programs as lines of Python, their expression in a function of one argument."""
    held = Table(language_methods())
    body = st.tuples(st.sampled_from(RESULTS), in_language(held)).map(lambda p: p[0].format(p[1]))
    return body.map(lambda text: f"tf.program(alphabet='ab')(lambda x: {text})('abb')")
