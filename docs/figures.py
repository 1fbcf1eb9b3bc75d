"""Write docs/figures.md and its figures in docs/figures/; python docs/figures.py."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pages

PAGE = Path(__file__).with_name("figures.md")
FOLDER = Path(__file__).with_name("figures")
VERSION = FOLDER / "matplotlib-version.txt"

HEAD = """# Figures

Every figure is an object of matplotlib. Models, traces, certificates and verdicts have methods
that draw one: `model.plot()`, `trace.plot()`, `trace.plot_attention(layer=, head=)`,
`certificate.plot()`, `verdict.plot()`. `tf.figures.weights(model)` draws the matrices of a model,
of an attention head or of a feed-forward network; `tf.figures.function(recipe)` draws a recipe on
numbers, and `tf.figures.curves` named curves through points of your own. A notebook shows the
object; `tf.figures.write(figure, FILE)` writes SVG, PDF or PNG. The extra `figures` installs
matplotlib: `pip install 'transformist[figures]'`.

On the command line, `transformist show MODEL --plot FILE` draws a circuit and `transformist run
MODEL INPUT --plot FILE` a run.

The label of a figure (`figure.get_label()`) describes it in words; an SVG has this description for
screen readers. A figure of something large shows a part, and says which; a run and the attention
of a head show the first and the last positions, or the positions in `positions=`. A model that was
ablated and a run that was patched say so. The same input gives the same bytes with the same version
of matplotlib. `python docs/figures.py` makes this page from the code on it, each block continuing
the one before.
"""


@dataclass(frozen=True)
class Example:
    """A figure of the page.

    Attributes:
        name: of the file.
        title: the heading.
        text: what to look for.
        code: Python that ends with the figure in `figure`.

    """

    name: str
    title: str
    text: str
    code: str


EXAMPLES = (
    Example(
        "circuit",
        "The circuit of a model",
        "A horizontal line is a slot of the residual stream, a column a step. Heads and hidden "
        "units are drawn from the weights alone: a circle or a letter reads the slot, a square "
        "writes to it, a cross clears it.",
        "import transformist as tf\n\n"
        'model = tf.recipe("dyck-1").build(max_length=16)\n'
        "figure = model.plot()\n",
    ),
    Example(
        "run",
        "A run",
        "Each block is a step, each row a slot that it may change, each column a position. Blue is "
        "above 0, red below. A slot has full colour at its largest magnitude in the run, which "
        "counts as 2⁻¹⁰ where it is smaller. The `violations` of the second layer come from the "
        "closing bracket at position 3.",
        'figure = model.run("())(").plot()\n',
    ),
    Example(
        "attention",
        "The attention of a head",
        "The second layer of an induction head: the last `A` attends to the `B` that followed the "
        "`A` before.",
        'induction = tf.recipe("induction-most-recent").build(max_length=16, alphabet="ABC")\n'
        'figure = induction.run("ABCA").plot_attention(layer=1, head=0)\n',
    ),
    Example(
        "certificate",
        "A certificate",
        "The bound of each error, size or count, beside what is allowed.",
        'figure = tf.certify(model, "float32").plot()\n',
    ),
    Example(
        "function",
        "A recipe on numbers",
        "GELU(c x)/c beside ReLU, and the difference, which is largest near 0. The "
        "points are closest there; the largest difference that is told is the largest at a point.",
        'figure = tf.figures.function(tf.recipe("relu-by-gelu"))\n',
    ),
    Example(
        "weights",
        "Matrices",
        "Every matrix of the network for the minimum of two numbers, with named rows and columns.",
        'figure = tf.figures.weights(tf.recipe("min").build())\n',
    ),
)


def drawn() -> dict[str, Any]:
    """The figure of each example, by name: the code of all is run in one namespace."""
    namespace: dict[str, Any] = {}
    figures = {}
    for each in EXAMPLES:
        exec(each.code, namespace)
        figures[each.name] = namespace["figure"]
    return figures


def page(labels: dict[str, str]) -> str:
    """The page, given the description of each figure."""
    parts = [HEAD]
    for each in EXAMPLES:
        label = labels[each.name].replace("[", "(").replace("]", ")").replace("\n", " ")
        image = f"![{label}](figures/{each.name}.svg)"
        text = textwrap.fill(each.text, 99, break_on_hyphens=False)
        parts.append(f"## {each.title}\n\n{text}\n\n```py\n{each.code}```\n\n{image}\n")
    return "\n".join(parts)


def written() -> str:
    """Write every figure, and return the page."""
    import matplotlib

    figures = drawn()
    FOLDER.mkdir(exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_bytes(figure.bytes_of("svg"))
    VERSION.write_text(f"{matplotlib.__version__}\n", encoding="utf-8")
    return page({name: figure.get_label() for name, figure in figures.items()})


if __name__ == "__main__":
    pages.write(PAGE, written)
