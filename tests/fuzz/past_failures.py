"""What failed once: command lines, calls and processes, each kept as it was found."""

import signal
from dataclasses import dataclass

from processes import Process

STOPPED = (0, 130, -signal.SIGINT)
"""Exit codes after a Ctrl-C that may come before Python hears it, or after the end."""


@dataclass(frozen=True)
class Line:
    """A command line that broke a promise.

    Attributes:
        was: what happened.
        words: the arguments; a reference is in `drawn.py` where `source` is given.
        code: the exit code that is right.
        source: of `drawn.py`.
        given: on standard input.
        says: what standard error has in it.
        known: why it still fails, where it does.
        heavy: whether it takes seconds.

    """

    was: str
    words: tuple[str, ...]
    code: int
    source: str = ""
    given: bytes | None = b""
    says: str = ""
    known: str = ""
    heavy: bool = False

    def __str__(self):
        return " ".join(self.words)[:60]


def against(model, body, was, code=2, more=("--max-length", "2"), **named):
    """A reference, the function f of x with this body, that a model is checked against."""
    words = ("check", model, "--against", "drawn.py:f", *more)
    head = "import sys\nimport numpy as np\n\ndef f(x):\n    "
    return Line(was, words, code, source=f"{head}{body}\n", **named)


def beginning(source, words, was, **named):
    """A file that ends or breaks as it is read."""
    return Line(was, words, 2, source=source, **named)


REFERENCE = ("check", "dyck-1", "--against", "drawn.py:f", "--max-length", "1")
RAISES_NOTHING_KNOWN = "class Own(BaseException): pass\nraise Own('mine')\n"

LINES = [
    against("dyck-1", "sys.exit(3)", "exit code 0 and no output"),
    against("dyck-1", "sys.exit(0)", "exit code 0 and no output"),
    against(
        "dyck-1", "sys.exit()", "exit code 0, and no JSON", more=("--max-length", "2", "--json")
    ),
    Line(
        "TypeError of a number that is iterated",
        ("show", "programs/dyck-1", "--set", "positions=2"),
        2,
    ),
    Line("TypeError of an option that no one has", ("certify", "dyck-1", "--set", "self=1"), 2),
    Line(
        "OverflowError of 400 zeros",
        ("compile", "programs/parity", "-o", "x", "--set", "max_length=1" + "0" * 400),
        2,
    ),
    *(
        against(model, f"return {returned}", "ValueError or TypeError of what is compared", code)
        for model, returned, code in [
            ("programs/reverse", "np.array([1, 2])", 1),
            ("programs/reverse", "np.array(list(x))", 1),
            ("programs/double-histogram", "np.array([1, 2])", 1),
            ("programs/double-histogram", "np.array([1.5, np.nan])", 1),
            ("original-transformer", "np.array([1.0, 2.0])", 1),
            ("dyck-1", "np.array([True, False])", 1),
            ("programs/reverse", "(c for c in x)", 2),
            ("programs/double-histogram", "(1 for c in x)", 2),
            ("original-transformer", "(c for c in x)", 2),
            ("original-transformer", "float('nan')", 1),
            ("programs/fraction-of-previous", "['a'] * len(x)", 1),
        ]
    ),
    against(
        "dyck-1",
        "return np.bool_(x in ('', '()'))",
        "TypeError of a NumPy Boolean",
        0,
        more=("--max-length", "2", "--json"),
    ),
    against(
        "dyck-1",
        "return np.bool_(False)",
        "TypeError of a NumPy Boolean in JSON",
        1,
        more=("--max-length", "2", "--json"),
    ),
    against(
        "dyck-1",
        "return np.int64(3)",
        "TypeError of a number of NumPy's in JSON",
        1,
        more=("--max-length", "1", "--json"),
    ),
    against("dyck-1", "raise GeneratorExit", "GeneratorExit left the command"),
    against("dyck-1", "raise BaseException('b')", "BaseException left the command"),
    against("dyck-1", "raise BaseExceptionGroup('g', [KeyError(1)])", "it left the command"),
    against("dyck-1", "return f(x)", "RecursionError of the comparison"),
    against("dyck-1", "while True: pass", "no end", more=("--max-length", "1", "--timeout", "0.2")),
    against("dyck-1", "return sys.stdin.read()", "AttributeError of a closed input", given=None),
    beginning("raise GeneratorExit", REFERENCE, "GeneratorExit left the command"),
    beginning("raise BaseException('b')", ("show", "drawn.py"), "BaseException left the command"),
    beginning(
        RAISES_NOTHING_KNOWN, ("show", "drawn.py:f"), "an exception of its own left the command"
    ),
    beginning("while True: pass", (*REFERENCE, "--timeout", "0.2"), "no end"),
    beginning(
        "class Silent(Exception):\n    def __str__(self): raise ValueError\n\nraise Silent\n",
        ("show", "drawn.py:f"),
        "ValueError of an exception without words",
    ),
    beginning(
        "import transformist as tf\n\n"
        "@tf.program(alphabet='ab')\ndef f(x):\n    raise GeneratorExit\n",
        ("compile", "drawn.py:f", "-o", "x"),
        "GeneratorExit left the command",
    ),
    *(
        Line("no end: a huge exponent passed the guard", ("run", "min", f'["{number}", 1]'), 2)
        for number in ("1e9_9_9_9_9_9_9_9", "1e９９９９９９９９", "1e9_999_999", "-1E+0_9_9_9_9_9")
    ),
    Line(
        "no JSON: a line that the file printed stood before it",
        ("check", "dyck-1", "--against", "drawn.py:f", "--max-length", "1", "--json"),
        1,
        source="print('begun')\ndef f(x):\n    print(x)\n    return True\n",
    ),
    Line(
        "a line that the file printed, beside a refusal with --json",
        ("show", "drawn.py:g", "--json"),
        2,
        source="print('begun')\n",
    ),
    Line(
        "an option was called an extra argument", ("run", "dyck-1", "()", "--jsn"), 2, says="--jsn"
    ),
    Line(
        "an option was called an extra argument",
        ("run", "min", "[1, 2]", "--arithmetics", "exact"),
        2,
        says="--arithmetics",
    ),
    Line(
        "the default N = 256 was refused where 255 fits",
        ("show", "programs/dyck-k-d"),
        0,
        says="255",
    ),
]

CALLS = [
    # A line of Python, and what was wrong with what it did; each is refused by the library now.
    ("tf.program(alphabet='ab')(lambda x: x.tag().accept())", "AttributeError"),
    ("tf.Layer(heads=head)", "TypeError"),
    (
        "tf.Transformer(stream=model.stream, embedding=model.embedding, layers=model.layers[0], "
        "read_out=model.read_out)",
        "TypeError",
    ),
    ("tf.FeedForward(W_1=np.array([[np.nan]]), W_2=[[1]])", "NaN taken"),
    ("tf.Attention(W_Q=np.array([[np.nan]]), W_K=[[1]], W_V=[[1]])", "NaN taken"),
    ("tf.PositionTable(np.array([[np.inf]]))", "infinity taken"),
    ("tf.Heads(())", "IndexError"),
    ("tf.FeedForwardStack(())", "IndexError"),
    ("tf.plan(model, length=True)", "True taken for 1"),
    ("tf.program(alphabet='ab')(lambda x: abs(x.tag()))", "TypeError"),
    ("tf.program(alphabet='ab')(lambda x: x.tag() ** 2)", "TypeError"),
    ("tf.program(alphabet='ab')(lambda x: x.tag() if x.tag() else None)", "no refusal"),
    ("tf.program(alphabet='ab')(lambda x: x.select(x) @ 3)", "TypeError"),
    ("tf.program(alphabet='ab')(lambda x: x.select(x) > 0)", "TypeError"),
    ("tf.program(alphabet='ab')(lambda x: (x == 'a' if x.select(x) else x).tag())", "no refusal"),
    ("tf.compile(program, heads=np.zeros((2, 0)))", "ValueError"),
    ("tf.compile(program, weighting=np.zeros(3))", "ValueError"),
    ("trace.values(np.zeros(3))", "ValueError"),
    ("trace.shown(np.zeros((1, 2)))", "ValueError"),
    ("stream.index(np.zeros(2))", "ValueError"),
    ("tf.recipe(np.array([1, 2]))", "ValueError"),
    ("tf.plan(model, 0.5)", "TypeError"),
    ("tf.certify(model, order=[])", "TypeError"),
    ("tf.grade_of(model, host='gpt2')", "AttributeError"),
    ("tf.ablate(model, head=(0, 0), by=np.array([]))", "ValueError"),
    ("tf.program(alphabet='ab')(lambda x: (x == np.array([1, 2])).abs())", "ValueError"),
    ("tf.program(alphabet='ab')(lambda x: x.position(np.array([1, 2])))", "ValueError"),
    ("tf.run(model, '()', engine=np.array([1, 2]))", "ValueError"),
    ("tf.program(alphabet='ab')(lambda x: float(x.tag()))", "TypeError"),
    ("model.answers(3)", "TypeError"),
    ("model.streams(None)", "TypeError"),
    ("model.values(head)", "TypeError"),
    ("stranger.generate(2)", "TypeError"),
    ("tf.route(0, stream, ['a'], ['b'])", "AttributeError"),
    ("tf.route(model, stream, ['a'], ['b'])", "AttributeError"),
    ("tf.route(network, stream, program, ['b'])", "TypeError"),
    ("tf.route(network, stream, [1, 2], ['a', 'b'])", "AttributeError"),
    ("tf.route(network, stream, ['a', 'b'], ['a', 'b'], shift=[1, 2, 3])", "ValueError"),
    ("tf.sensitivity(model, 3)", "TypeError"),
    ("tf.sensitivity(model, ['()'], positions=tf.Sinusoids(2))", "TypeError"),
    ("tf.sensitivity(model, ['()'], positions=[[1]])", "TypeError"),
    ("tf.perturbation_bounds(model, 1, np.array([1, 2]))", "ValueError"),
    ("tf.perturbation_bounds(model, np.array([[1]]), 'l1')", "AttributeError"),
    ("tf.recipe('identity').settings(3)", "TypeError"),
]
CALLS_OF_COMPILE = [
    ("tf.compile(program, positions=2)", "TypeError"),
    ("tf.compile(program, max_length=10**400)", "OverflowError"),
]
ANSWERED = [
    # A line of Python that has an answer, and what came instead.
    ("isinstance(tf.certify(tiny_weight(model), 'float32'), tf.Certificate)", "ZeroDivisionError"),
    ("pickle.loads(pickle.dumps(head)).W_Q.flags.writeable is False", "writable weights"),
    ("copy.deepcopy(network).W_1.flags.writeable is False", "writable weights"),
    ("pickle.loads(pickle.dumps(model)) == model", "unequal"),
    ("hash(pickle.loads(pickle.dumps(model))) == hash(model)", "unequal hashes"),
    ("tf.recipe('dyck-1').build(max_length=20) == model", "unequal"),
    ("tf.recipe('dyck-1').build(max_length=21) != model", "equal, built for another N"),
    ("tf.decoder(fractions).take_all('ab') == [1, Fraction(1, 2)]", "refused as fractions of n"),
    ("inspect.isabstract(type(model.read_out).__mro__[1])", "a ReadOut of no kind"),
]

PROCESSES = [
    (
        Process(
            ("check", "dyck-1", "--against", "good.py:always", "--max-length", "3"), "", "none read"
        ),
        (1,),
        "exit code 0 of a check that failed, into a pipe that no one reads",
    ),
    (
        Process(("run", "dyck-1"), "endless"),
        (2,),
        "2.7 billion symbols were read before the refusal",
    ),
    *(
        (Process(("list",), "", interrupted=seconds), STOPPED, "a traceback")
        for seconds in (0.03, 0.05, 0.07, 0.09, 0.12)
    ),
    *(
        (
            Process(("run", "dyck-1", "()", "--engine", "structured"), "", interrupted=seconds),
            STOPPED,
            "a traceback while numba was imported",
        )
        for seconds in (0.5, 0.8, 1.1, 1.4)
    ),
    (
        # It was found for 20,000, which now takes less than these 6 s.
        Process(("certify", "programs/histogram", "--max-length", "1000000"), "", interrupted=6.0),
        (130,),
        "no end for 99 s",
    ),
    (
        Process(("check", "original-transformer", "--max-length", "4"), "", interrupted=3.0),
        (130,),
        "90 s without a word",
    ),
    (
        Process(
            ("show", "almost-orthogonal-lookup", "--set", "max_length=20000"), "", interrupted=3.0
        ),
        (2, 130),
        "minutes without a word",
    ),
]
