"""Files of Python that commands read, drawn: functions and programs, whole and broken."""

from dataclasses import dataclass

from hypothesis import strategies as st

RETURNED = [
    "True", "False", "None", "0", "1", "-1", "2.5", "x", "'a' * len(x)", "x[::-1]", "list(x)",
    "tuple(x)", "[1] * len(x)", "[Fraction(1, 2)] * len(x)", "Fraction(1, 3)", "[]", "''", "{}",
    "{'a': x}", "set(x)", "b'ab'", "float('nan')", "[float('nan')] * len(x)", "float('inf')",
    "10**400", "1j", "np.bool_(True)", "np.array(True)", "np.array([])", "np.array([1, 2])",
    "np.array([[1, 2]])", "np.array(list(x))", "np.array([1.5, np.nan])", "np.int64(3)", "np.nan",
    "np.array([True] * len(x))", "np.array([None, 'a'], dtype=object)", "(c for c in x)",
    "iter(x)", "map(str, x)", "range(len(x))", "range(10**12)", "lambda: 1", "f", "object()",
    "NotImplemented", "...", "Odd()", "[Odd()] * len(x)", "Text('a')", "type", "self", "'\\udcff'",
    "'[red]'", "'[/red]'", "'\\n' * 3", "'a' * 10**6", "open(__file__)", "itertools.count()",
    "nested(200)", "nested(5000)",
]  # fmt: skip
RAISED = [
    "ValueError('two\\nlines')", "KeyError('a')", "Exception()", "BaseException('b')",
    "GeneratorExit()", "SystemExit()", "SystemExit(0)", "SystemExit(3)", "SystemExit('words')",
    "StopIteration()", "StopAsyncIteration()", "MemoryError()", "RecursionError('deep')",
    "AssertionError()", "OSError(28, 'No space')", "BrokenPipeError()", "UnicodeError('u')",
    "FileNotFoundError('x')", "Own('own')", "Silent()",
    "tf.TransformistError('a', received='b', " "remedy='c')",
    "ExceptionGroup('g', [ValueError(1)])", "BaseExceptionGroup('g', [Own('a')])", "Warning('w')",
    "TimeoutError()", "EOFError()", "click_exit(0)", "click_exit(7)", "ValueError('\\udcff')",
    "ValueError('[red]')", "ArithmeticError(10**5000)", "KeyboardInterrupt()",
]  # fmt: skip
DONE = [
    "pass", "print('a line')", "print(x if 'x' in dir() else 1)", "print('e', file=sys.stderr)",
    "sys.stdout.write('no newline')", "sys.stdout.close()", "sys.stderr.close()", "sys.exit()",
    "sys.exit(1)", "sys.exit(130)", "sys.stdout = None", "sys.stdin.read()", "input()", "exit()",
    "sys.setrecursionlimit(60)", "sys.set_int_max_str_digits(640)", "warnings.warn('careful')",
    "warnings.simplefilter('error')", "np.seterr(all='raise')", "Fraction.__eq__ = None",
    "logging.warning('logged')", "sys.argv.clear()", "deep()", "1 / 0", "undefined", "[][0]",
    "import none", "from transformist import none", "del sys.modules['transformist']", "raise",
    "breakpoint", "assert False", "json.dumps = None", "threading.Thread(target=print).start()",
]  # fmt: skip
UNDONE = ("Fraction.__eq__ = None", "json.dumps = None", "del sys.modules['transformist']")
"""What changes this very process for good: left out, as it is a file that breaks Python itself."""

ENDLESS = ["while True: pass", "time.sleep(10**6)", "[0 for _ in itertools.count()]",
           "while True: print('again')"]  # fmt: skip

HEAD = """\
import itertools, json, logging, sys, threading, time, warnings
from fractions import Fraction
import numpy as np
import transformist as tf

class Own(BaseException): pass

class Silent(Exception):
    def __str__(self): raise ValueError('no words')
    __repr__ = __str__

class Odd:
    def __eq__(self, other): raise ValueError('not comparable')
    def __bool__(self): raise TypeError('neither')
    def __repr__(self): raise RuntimeError('no text')
    __hash__ = None

class Text(str):
    def __eq__(self, other): return NotImplemented
    __hash__ = str.__hash__

def click_exit(code):
    import click
    return click.exceptions.Exit(code)

def deep(): return deep()

def nested(depth):
    found = []
    for _ in range(depth): found = [found]
    return found
"""
WHOLE = [
    "", "\n", "(", "def f(x", "f = ", "  f = 1", "return 1", "yield 1", "\tif 1:\n  f = 1", "f(",
    "'" * 3, "(" * 300, "f = " + "(" * 150 + ")" * 150, "-" * 5000 + "1", "f = 1" + " + 1" * 3000,
    "# coding: none\nf = 1", "# coding: utf-16\nf = 1", "\ufefff = 1", "f = 'é'", "f = '\x0c'",
    "from __future__ import none", "import transformist.none", "lambda: (yield)", "await x",
    "f: int", "class f: pass", "f = print", "f = len", "f = str", "f = sorted", "f = 3",
    "async def f(x): return True", "def f(): return True", "def f(x, y): return True",
    "def f(x): yield True", "def f(*, x): return True", "f = lambda x: f(x)",
    "f = type('F', (), {})", "f = exit", "f = __import__('sys').exit", "f = input", "f = eval",
    "f = iter", "f = set",
]  # fmt: skip
"""Files of their own."""

EXPRESSIONS = [
    "x", "x == 'a'", "x.tag()", "x.tag().accept()", "(x == 'a').accept()",
    "(x == 'a').any().accept()", "(x == 'a').mean().tag()", "x.predecessor(default='a').tag()",
    "x.predecessor().tag()", "None", "x.map({'a': 1, 'b': 0}).mean().tag()",
    "x.map({'a': 1}).tag()", "x.map(3).tag()", "True", "3", "x.none()", "x.next_token()", "x[0]",
    "x + x", "len(x)", "list(x)", "not x", "x and x", "x.tag", "(x == 'a').count().tag()",
    "x.position('i').tag()", "x.position('none').tag()", "print(x)",
    "x.select(x).rightmost(x, default='a').tag()", "x.select(x, mask='none').any().accept()",
    "x.lookup(x.position('i'), default='a').tag()", "np.array([x])", "(x == 'c').accept()",
    "(x == 'a').table(values='01').accept()", "(x == 'a').table(values='0').accept()", "f",
    "(x == 'a').mean() == (x == 'b').mean()", "((x == 'a').mean() == (x == 'b').mean()).accept()",
    "(x.map({'a': 10**400, 'b': 1}).mean() > 0).accept()",
    "(x.map({'a': float('nan'), 'b': 1})).tag()",
    "x.map({'a': 1, 'b': 2}).relu().clip(2, 1).tag()", "[x.tag()]", "x.tag().tag()",
    "x.tag() == 1", "x.map({'a': '1/0', 'b': 1}).tag()",
    "x.map({'a': 1e-300, 'b': 1}).mean().tag()", "deep()",
    "(x.map({'a': 1, 'b': 0}).cpwl([0, 0], [1, 2]) > 0).accept()", "sys.exit(4)", "1 / 0",
    "x.select(3)",
]  # fmt: skip
ALPHABETS = ["'ab'", "'abc'", "['a', 'b', 7]", "[1, 2]", "'a'", "''", "None", "3", "['ab', 'c']",
             "'aa'", "['BOS', 'a']", "[True, False]", "{'a': 1, 'b': 2}", "range(12)", "'ab' * 2",
             "['', 'a']", "['[red]', '\\n']", "'abcdefghijklmnop'"]  # fmt: skip
MODELS = [
    "dyck-1", "programs/dyck-1", "programs/reverse", "programs/double-histogram", "parity",
    "programs/fraction-of-previous", "induction-most-recent", "dyck.safetensors",
    "original-transformer", "programs/histogram", "good.py:dyck", "good.py:numbers",
]  # fmt: skip


@dataclass(frozen=True)
class File:
    """A file `drawn.py`, and how it is called."""

    source: str
    line: tuple[str, ...]

    def __repr__(self):
        return f"{self.line}\n--- drawn.py\n{self.source.removeprefix(HEAD)}\n---"


def indented(statements):
    return "".join(f"    {each}\n" for each in statements)


STATEMENTS = st.one_of(
    st.sampled_from([each for each in DONE if each not in UNDONE]),
    st.sampled_from(RAISED).map("raise {}".format),
)
RETURNS = st.sampled_from(RETURNED).map("return {}".format)
CONDITIONS = st.sampled_from(["if len(x) > 1: ", "if x: ", "if not x: ", ""])
BODIES = st.tuples(st.lists(st.tuples(CONDITIONS, STATEMENTS).map("".join), max_size=1), RETURNS)
WHOLE_FUNCTIONS = BODIES.map(lambda body: "def f(x):\n" + indented([*body[0], body[1]]))
FUNCTIONS = st.one_of(
    *[WHOLE_FUNCTIONS] * 9,
    st.tuples(CONDITIONS, st.sampled_from(ENDLESS)).map(
        lambda pair: "def f(x):\n" + indented(["".join(pair), "return True"])
    ),
)
PROGRAMS = st.tuples(
    st.sampled_from(ALPHABETS), st.lists(STATEMENTS, max_size=1), st.sampled_from(EXPRESSIONS)
).map(
    lambda parts: (
        f"@tf.program(alphabet={parts[0]})\ndef f(x):\n"
        + indented([*parts[1], f"return {parts[2]}"])
    )
)
LAST = st.lists(st.one_of(STATEMENTS, st.sampled_from(ENDLESS[:2])), max_size=1).map("\n".join)


@st.composite
def program_files(draw):
    """A file, and a command that reads it."""
    what = draw(st.sampled_from(["function", "function", "program", "whole"]))
    is_endless = False
    if what == "whole":
        source = draw(st.sampled_from(WHOLE))
    else:
        made = draw(FUNCTIONS if what == "function" else PROGRAMS)
        last = draw(LAST) if not draw(st.integers(0, 7)) else ""
        source = f"{HEAD}\n{made}{last}\n"
        is_endless = last in ENDLESS
    length = draw(st.sampled_from(["0", "1", "2", "3"]))
    against = ("check", draw(st.sampled_from(MODELS)), "--against", "drawn.py:f")
    against = (*against, "--max-length", length, "--timeout", "0.2")
    own = [
        ("check", "drawn.py:f", "--max-length", length),
        ("check", "drawn.py:f", "--against", "drawn.py:f", "--max-length", length,
         "--timeout", "1"),
        ("run", "drawn.py:f", draw(st.sampled_from(["", "a", "abab", "b" * 40]))),
        ("show", "drawn.py:f"), ("compile", "drawn.py:f", "-o", "made.safetensors"),
        ("certify", "drawn.py:f", "--max-length", "8"), ("plan", "drawn.py:f", "--length", "9"),
        ("precision", "drawn.py:f", "--max-length", "9"), ("show", "drawn.py"),
    ]  # fmt: skip
    usual = [against] * 3 if what != "program" else [against]
    if is_endless:  # only a reference is run for a limited time
        usual, own = [against], []
    line = draw(st.sampled_from([*usual, *own]))
    return File(source, line + (("--json",) if draw(st.booleans()) else ()))
