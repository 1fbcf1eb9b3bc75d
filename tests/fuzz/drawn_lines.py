"""Command lines, drawn: right ones, wrong ones, and right ones with one thing wrong."""

from given_files import SAVED, SOURCES, TEXTS
from hypothesis import strategies as st

import transformist as tf
from transformist.arithmetic import SYSTEMS
from transformist.programs import PROGRAMS
from transformist.settings import SETTINGS

RECIPES = [each.name for each in tf.recipes()]
ON_STRINGS = [each.name for each in tf.recipes() if isinstance(each.build(), tf.Transformer)]
IN_FILES = ["good.py:dyck", "good.py:copies", "good.py:numbers"]

NUMBERS = st.sampled_from(
    ["0", "1", "2", "3", "5", "8", "-1", "1/2", "1/8", "0.1", "-3/4", "1e-3", "2.5", " 4 ", "+3"]
)
TOO_LARGE = ["1" + "0" * 30, "1" + "0" * 400, "1e99999", "1e9_9_9_9_9_9_9_9", "1e９９９９９９９９",
             "-1e400", "1/1" + "0" * 500, "9" * 5000]  # fmt: skip
NO_NUMBERS = [
    "", " ", "nan", "NaN", "inf", "-Infinity", "None", "null", "true", "1/0", "0/0", "1_0", "٣",
    "½", "0x10", "1e", "--", "-", "é", "\udcff", "a\nb", "{}", "[", "[]", "[[]]", '["1/3"]',
    "[1e999]", "[NaN]", '{"a": 1}', "self", "%s", "[red]", "[/red]", "$HOME", "[" * 2000,
    "." * 500,
]  # fmt: skip
JUNK = st.one_of(
    st.sampled_from(NO_NUMBERS), st.sampled_from(TOO_LARGE), st.text(max_size=6), NUMBERS
).filter(lambda given: "\x00" not in given)
"""No operating system hands over a zero byte."""


def mostly(right):
    """One of these texts, and seldom one that fits nothing."""
    return st.integers(0, 5).flatmap(lambda k: st.sampled_from(right) if k else JUNK)


FORMATS = st.sampled_from(
    [*SYSTEMS, "float32:2", "saturating:8:3", "saturating:0:0", "float32:", "float128", ""]
)
LISTS = st.lists(
    st.one_of(NUMBERS, st.integers(-3, 3).map(str), st.sampled_from(['"1/3"', "1e3", "NaN"])),
    max_size=5,
)
VALUES = st.one_of(
    NUMBERS,
    JUNK,
    LISTS.map(lambda each: f"[{', '.join(each)}]"),
    st.sampled_from(
        [
            '[["1/2", 1], [0, 2]]',
            "0110",
            "01",
            "ab",
            "abc",
            "abcd",
            '["ab", 3]',
            "softmax",
            "average-hard",
            "leftmost-hard",
            "rightmost-hard",
            "future",
            "strict-future",
            "past",
            "none",
            "many",
            "one",
            '["i"]',
            '["i", "n"]',
            "gelu",
            "gelu-tanh",
            "-1/i",
            "i/n",
            "one-hot",
            "integer",
            "float32",
            "exact",
            "float8_e4m3",
        ]
    ),
)
PARAMETERS = st.sampled_from(
    [*SETTINGS, "max-length", "arithmetic", "positions", "self", "width", "name", "program", ""]
)


@st.composite
def set_values(draw):
    name = draw(PARAMETERS)
    if name in ("max_length", "max-length"):
        value = draw(st.one_of(st.sampled_from(["1", "2", "7", "16", "40", "None"]), JUNK))
    elif name in SIZES:
        value = draw(st.one_of(st.sampled_from(["1", "2", "3", "4", "8"]), JUNK))
    else:
        value = draw(VALUES)
    return draw(st.sampled_from([f"{name}={value}"] * 9 + [name, f"={value}", f"{name}={value}="]))


SIZES = ("d_model", "d_ff", "layers", "vocabulary", "width", "kinds", "categories", "depth",
         "times", "heads", "largest", "flagged")  # fmt: skip
"""Parameters that a large value makes slow: what they are is small, or refused."""

NAMES = st.one_of(
    st.sampled_from(RECIPES),
    st.sampled_from(ON_STRINGS),
    st.sampled_from([f"programs/{name}" for name in PROGRAMS]),
    st.sampled_from(IN_FILES),
    st.sampled_from(SAVED),
    st.sampled_from(
        [*SOURCES, *TEXTS, *(f"{name}:f" for name in SOURCES), "exits.py:k", "prints.py:f",
         "good.py:", "good.py:none", "good.py:constant", "good.py:always", ":f", "none.py:f",
         "directory", "directory:f", "other.safetensors", "none.safetensors", "programs/",
         "programs/none", "dyck", "Dyck-1", ".", "/", "/dev/null", "/dev/zero", "a" * 5000]
    ),
    JUNK,
)  # fmt: skip
SYMBOLS = st.text("()[]ab01c-", max_size=12)
INPUTS = st.one_of(
    SYMBOLS,
    st.sampled_from(["(" * 60, "()" * 1000, "ab" * 300, "01", "", "-", "--trace", "[1, 2]", "1"]),
    LISTS.map(lambda each: f"[{', '.join(each)}]"),
    st.lists(LISTS, max_size=4).map(
        lambda rows: f"[{', '.join('[' + ', '.join(row) + ']' for row in rows)}]"
    ),
    st.sampled_from([f"[{each}, 1]" for each in (*TOO_LARGE, *(f'"{x}"' for x in TOO_LARGE))]),
    JUNK,
)
FUNCTIONS = st.one_of(
    st.sampled_from([*(f"programs/{name}" for name in PROGRAMS), *IN_FILES]),
    st.sampled_from(["good.py:always", "good.py:balanced", "good.py:constant", "exits.py:k",
                     "prints.py:f", "raises.py:f", "syntax.py:f", "good.py", "directory:f"]),
    JUNK,
)  # fmt: skip
SHORT = mostly(["0", "1", "2", "3"])
LENGTHS = mostly(["1", "2", "8", "40", "256"])
OUTPUT_FILES = st.sampled_from(
    [
        "made.safetensors",
        "directory",
        "directory/made",
        "none/made",
        "",
        "/dev/full/x",
        "good.txt",
        "a" * 300,
    ]
)
FIGURE_FILES = mostly(["figure.svg", "figure.png", "none/figure.pdf", "directory"])
PAGE_FILES = mostly(["page.html", "page.HTM", "none/page.html", "directory", "page.pdf"])
OPTIONS = {
    "list": {"--chapter": mostly(["feed-forward", "4", "examples"])},
    "show": {"--set": set_values(), "--weights": None, "--plot": FIGURE_FILES},
    "run": {
        "--set": set_values(),
        "--arithmetic": FORMATS,
        "--engine": st.sampled_from(["auto", "structured", "reference", "dense", ""]),
        "--file": st.sampled_from([*TEXTS, "none.txt", "directory", "-", "", "/dev/null"]),
        "--ignore-others": None,
        "--trace": None,
        "--plot": FIGURE_FILES,
    },
    "check": {
        "--against": FUNCTIONS,
        "--max-length": SHORT,
        "--set": set_values(),
        "--arithmetic": FORMATS,
        "--timeout": mostly(["1", "1/2", "0.001"]),
    },
    "compile": {
        "--output": OUTPUT_FILES,
        "--set": set_values(),
        "--max-length": LENGTHS,
        "--arithmetic": FORMATS,
        "--width": mostly(["20", "3", "1"]),
    },
    "certify": {
        "--max-length": LENGTHS,
        "--arithmetic": FORMATS,
        "--order": st.sampled_from(["any", "reference", "structured", "none"]),
        "--lines": None,
        "--output": OUTPUT_FILES,
        "--check": None,
        "--set": set_values(),
    },
    "precision": {
        "--arithmetic": FORMATS,
        "--max-length": LENGTHS,
        "--work": mostly(["1", "1000", "100000"]),
        "--set": set_values(),
    },
    "diagnose": {
        "--arithmetic": FORMATS,
        "--set": set_values(),
    },
    "explain": {"--output": PAGE_FILES, "--no-certificates": None, "--set": set_values()},
    "plan": {
        "--arithmetic": FORMATS,
        "--length": mostly(["1", "10", "5000"]),
        "--set": set_values(),
    },
}
"""Of each command; None where an option takes no value."""

MISTYPED = ["--maxlength", "--verbose", "-x", "--jsn", "--set", "--arithmetic=float32", "--", "-"]


@st.composite
def command_lines(draw):
    """A command, what it is given, its options, and what stands on standard input."""
    command = draw(st.sampled_from([*OPTIONS, "run", "check", "certify"]))
    given = [draw(NAMES)] if command != "list" else []
    if command in ("certify", "explain") and given[0] in LONG_TO_CERTIFY:
        given = ["dyck-1"]
    if command == "diagnose" or (command in ("run", "plan", "explain") and draw(st.booleans())):
        given.append(draw(INPUTS))
    options = OPTIONS[command]
    chosen = draw(st.lists(st.sampled_from([*options]), max_size=3)) if options else []
    if command == "compile" and draw(st.integers(0, 9)):
        chosen = ["--output", *(each for each in chosen if each != "--output")]
    if command == "explain" and draw(st.integers(0, 9)):
        chosen = ["--output", *(each for each in chosen if each != "--output")]
    chosen = bounded(command, given, chosen)
    if "--set" in chosen and draw(st.integers(0, 2)):  # few models take what is drawn
        chosen = [each for each in chosen if each != "--set"]
    words = []
    for option in chosen:
        value = options[option]
        words += [option] if value is None else [option, draw(value)]
    if not draw(st.integers(0, 20)):
        words.insert(0, draw(st.sampled_from(MISTYPED)))
    elif draw(st.booleans()):
        words.append("--json")
    line = (command, *given, *words)
    stdin = draw(st.one_of(st.none(), st.sampled_from(STANDARD_INPUTS), st.binary(max_size=9)))
    return line, stdin


def bounded(command, given, chosen):
    """What is left to a command that takes long where it is not told how much to do.

    A claim on strings takes up to a minute: such a model is checked against a function.
    """
    needed = {"check": ["--max-length"], "certify": ["--max-length"], "precision": ["--work"]}
    needed = needed.get(command, [])
    if command == "check" and {*given} & {*ON_STRINGS}:
        needed = [*needed, "--against"]
    if "--check" in chosen:
        needed = []
    return [*chosen, *(each for each in needed if each not in chosen)]


LONG_TO_CERTIFY = ("dyck-k-d", "programs/dyck-k-d")
"""They take some ten seconds on a busy machine, which is no failure."""

STANDARD_INPUTS = [b"", b"(())", b"(())\n", b"[1, 2]", b"abab", b"\xff(", b"\n", b"()" * 1000]

ODD_LINES = [
    (), ("--help",), ("--version",), ("none",), ("",), ("--json",), ("run",), ("show",),
    ("compile",), ("certify",), ("plan",), ("diagnose",), ("bench", "none"), ("bench", "--help"),
    ("check", "--max-length"), ("list", "--json", "--json"), ("precision", "none"), ("demo", "x"),
    ("--version", "list"), ("run", "--help"), ("check", "--help"), ("list", "extra"),
]  # fmt: skip
"""Few words, of which there are few."""
