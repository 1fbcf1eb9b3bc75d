"""The files that drawn command lines name: programs, functions, models, inputs, good and bad."""

from pathlib import Path

import transformist as tf
from transformist.programs import PROGRAMS

SOURCES = {
    "good.py": """
        import transformist as tf

        @tf.program(alphabet="()")
        def dyck(x):
            balance = x.map({"(": 1, ")": -1}).prefix_mean()
            return ((balance == 0) & (balance >= 0).all_so_far()).accept()

        @tf.program(alphabet="abc")
        def copies(x):
            return x.predecessor(default="a").tag()

        @tf.program(alphabet=[1, -1, 22])
        def numbers(x):
            return x.map({1: 1, -1: 0, 22: 3}).mean().tag()

        def always(x):
            return True

        def balanced(x):
            depth = 0
            for c in x:
                depth += 1 if c == "(" else -1
                if depth < 0:
                    return False
            return depth == 0

        constant = 3
        """,
    "syntax.py": "def f(x:\n",
    "empty.py": "",
    "bytes.py": b"\xff\xfe\x00def f(x): return True",
    "raises.py": "raise ValueError('two\\nlines')",
    "exits.py": "import sys\ndef k(x):\n    sys.exit(3)\n",
    "prints.py": "print('a line')\ndef f(x):\n    print(x)\n    return True\n",
}
"""Python files by name; those of Python kept short, for a report."""

TEXTS = {
    "brackets.txt": "(()())\n",
    "code.txt": "def f(x):\n    return g(x)\n",
    "words.txt": "abcabc",
    "numbers.txt": "[1, 2]",
    "zero.txt": "",
    "binary.bin": bytes(range(256)),
}


def models():
    """Transformers to save, small ones: recipes and compiled programs."""
    return {
        "dyck.safetensors": tf.recipe("dyck-1").build(max_length=20),
        "copies.safetensors": tf.recipe("induction-most-recent").build(max_length=9),
        "uniform.safetensors": tf.recipe("dyck-1-uniform").build(),
        "compiled.safetensors": tf.compile(PROGRAMS["dyck-1"], max_length=20),
        "hard.safetensors": tf.compile(PROGRAMS["reverse"], max_length=8, weighting="average-hard"),
        "fractions.safetensors": tf.compile(PROGRAMS["fraction-of-previous"], max_length=8),
    }


def written(directory):
    """Write all of them."""
    directory = Path(directory)
    for name, source in SOURCES.items():
        data = source if isinstance(source, bytes) else unindented(source).encode()
        (directory / name).write_bytes(data)
    for name, text in TEXTS.items():
        (directory / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, model in models().items():
        certificates = [tf.certify(model)] if name in CERTIFIED else []
        tf.save(model, directory / name, [each for each in certificates if each.holds])
    (directory / "directory").mkdir()
    (directory / "other.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return directory


SAVED = ("dyck.safetensors", "copies.safetensors", "uniform.safetensors", "compiled.safetensors",
         "hard.safetensors", "fractions.safetensors")  # fmt: skip
CERTIFIED = ("dyck.safetensors", "compiled.safetensors")


def unindented(source):
    """Without the empty line and the indentation at its beginning."""
    lines = source.split("\n")
    lines = lines[1:] if not lines[0] else lines
    depth = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    return "\n".join(line[depth:] for line in lines)
