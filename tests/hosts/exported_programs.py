"""The worked programs in checkpoints: which host holds which, at which N, and hard inputs."""

import random

import numpy as np

import transformist as tf
from transformist.hosts.host import HOSTS
from transformist.hosts.vocabulary import text_of
from transformist.programs import PROGRAMS

IN_DECODERS = (
    "dyck-1",
    "dyck-k-d",
    "shuffle-dyck-2",
    "induction-most-recent",
    "induction-most-frequent",
    "majority",
    "parity",
    "equal-abc",
    "contains-abc",
)

AFTER_THE_INPUT = (
    "double-histogram",
    "most-frequent-token",
    "reverse",
    "sort",
    "binary-increment",
)
"""The taggers that answer in a decoder after the input and `=`."""

IN_ENCODERS = (
    "histogram",
    "double-histogram",
    "most-frequent-token",
    "majority",
    "parity",
    "reverse",
    "palindrome",
    "sort",
    "equal-abc",
    "contains-abc",
    "binary-increment",
)

DECODERS = ("gpt2", "llama", "qwen2", "mistral", "opt", "gpt-neox")

HELD = {**dict.fromkeys(DECODERS, IN_DECODERS), "bert": IN_ENCODERS}
"""The programs that each host holds as they are."""

ANSWERED = [
    *((host, name, n) for host in ("gpt2", "llama") for name in AFTER_THE_INPUT for n in (64, 256)),
    *((host, name, 64) for host in ("qwen2", "opt", "gpt-neox") for name in ("sort", "reverse")),
]
"""The hosts of programs that answer after an input of n symbols."""

# The largest N of dyck-k-d in float32 is 255. The other classes differ from GPT-2 or Llama in the
# names and the layout of their weights: some programs at one N show these.
CASES = [
    *(
        (host, name, n)
        for host in ("gpt2", "bert", "llama")
        for name in HELD[host]
        for n in (64, 255 if name == "dyck-k-d" else 256)
    ),
    *(
        (host, name, 64)
        for host in ("qwen2", "mistral", "opt", "gpt-neox")
        for name in ("dyck-k-d", "induction-most-recent", "majority", "parity", "contains-abc")
    ),
]


IN_HALF = {
    "gpt2": {"dyck-1": 63, "shuffle-dyck-2": 31, "majority": 255, "equal-abc": 15},
    "llama": {"dyck-1": 63, "shuffle-dyck-2": 31, "majority": 255, "equal-abc": 15},
    "bert": {"majority": 255, "parity": 6},
    "qwen2": {"dyck-1": 63},
    "mistral": {"dyck-1": 63},
    "opt": {"dyck-1": 63},
    "gpt-neox": {"dyck-1": 63},
}
"""The largest N that the compiler admits in float16, for programs that are exported in it."""


def exported(directory, host, name, n, **options):
    model = tf.compile(PROGRAMS[name], max_length=n, **HOSTS[host].options, **options)
    arithmetic = options.get("arithmetic", "float32")
    tf.export(model, directory, host, arithmetic, claim=PROGRAMS[name].description)
    return model


def exported_after(directory, host, name, n):
    """The model of a program that answers after `=`, for inputs of n symbols."""
    program = tf.answered_after(PROGRAMS[name])
    model = tf.compile(program, max_length=2 * n + 1, **HOSTS[host].options)
    tf.export(model, directory, host, claim=program.description)
    return model


def hard(alphabet, n, drawn=4):
    """Strings of length n: one symbol, two halves, one odd symbol at each end, in turn, drawn."""
    source, first, last = random.Random(n), alphabet[0], alphabet[-1]
    yield from ([each] * n for each in alphabet)
    yield [first] * (n // 2) + [last] * (n - n // 2)
    yield [first] + [last] * (n - 1)
    yield [last] * (n - 1) + [first]
    yield [alphabet[k % len(alphabet)] for k in range(n)]
    for _ in range(drawn):
        yield source.choices(alphabet, k=n)
    # Deep in the string the program is decided late: a run of the first half, mirrored.
    half = source.choices(alphabet, k=n // 2)
    yield [*half, *reversed(half)]


def strings(program, n):
    for length in sorted({1, 3, n // 2, n - 1, n}):
        yield from hard(program.alphabet, length, drawn=2 + 2 * (length == n))


def texts(inputs):
    """The text of each input as the card describes it."""
    return [
        ("" if all(len(str(each)) == 1 and isinstance(each, str) for each in x) else " ").join(
            map(str, x)
        )
        for x in inputs
    ]


def expected(program, x):
    """The text of the answer, or of the answers at every position."""
    answer = program(x)
    return [text_of(each) for each in answer] if np.ndim(answer) or isinstance(answer, str) else [
        text_of(answer)
    ]  # fmt: skip
