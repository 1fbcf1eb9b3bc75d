"""The page of a model: its data, the evaluator, and the view, in one file of HTML."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from transformist.errors import InputTooLong, InvalidValue, TransformistError, require_type, visible
from transformist.figures.explorer_page.guided_paths import guide_of
from transformist.figures.explorer_page.model_data import (
    PAGE_FORMATS,
    longest_input,
    model_data,
)
from transformist.hosts.whole_file import path_of, replace_file, require_writable
from transformist.model import (
    LanguageModel,
    Outputs,
    ReadOut,
    RealVector,
    Symbol,
    Transformer,
)
from transformist.model.transformer import length_of, require_transformer
from transformist.model.weights_table import number_in_words
from transformist.report.size import size
from transformist.verify import Certificate
from transformist.verify.certificate.identity import digest

SCRIPTS = (
    "number_formats.js",
    "typed_numbers.js",
    "weightings.js",
    "ablation.js",
    "read_outs.js",
    "evaluator.js",
    "elements.js",
    "comparison.js",
    "glossary.js",
    "explanations.js",
    "changes.js",
    "guided_path.js",
    "view.js",
)
"""The scripts of a page, in the order in which they need each other."""

MOST_EXACT = 20_000
"""Most numbers of the exact run of the first input that a page holds.

They make a page larger by some 0.2 MB: 17,728 numbers of dyck-k-d on 276 symbols do, most of them
whole, and 15,390 of dyck-1 on 512 symbols, many of them fractions.
"""


_TEXTS = {
    "name": "the title of the page",
    "claim": "what the model computes, in words",
    "reason": "why there are no certificates, in words",
}


@dataclass(frozen=True)
class ExplorerPage:
    """A page, as HTML.

    Attributes:
        html: the whole page; it needs no other file, and makes no request.

    """

    html: str

    def __repr__(self) -> str:
        return f"ExplorerPage({len(self.html):,} characters)"

    def save(self, path: Any) -> None:
        """Write the page to a file, whole or not at all.

        Raises:
            InvalidValue: for a path that cannot be written to.

        """
        replace_file(require_page(path, "ExplorerPage.save"), self.html.encode(), "explorer")


def require_page(given: Any, where: str) -> Any:
    """Require a path that a page can be written to, before the page is made.

    Raises:
        InvalidValue: for another ending than .html, and a place that cannot be written to.

    """
    path = path_of(given, where)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidValue(
            "a page must be written to a file that ends in .html",
            received=f"{str(given)!r:.60}",
            where=where,
            remedy="give a file name such as page.html",
        )
    require_writable(path, where)
    return path


def explorer(
    model: Transformer,
    x: Sequence[Symbol] | None = None,
    *,
    name: str = "Transformer",
    claim: str = "",
    certificates: Sequence[Certificate] = (),
    uncertified: str = "none was given",
) -> ExplorerPage:
    """Make the page in which a model works on a string, step by step.

    Args:
        model: the model.
        x: the input that the page begins with; a reader may change it. When left out, it is the
            input of the guided path, or the first symbols of the alphabet.
        name: the title. The recipes `dyck-1` and `dyck-k-d` have guided paths, found by this name.
        claim: what the model computes, which stands below the title; a recipe has it as
            `recipe.claim.statement`. Nothing checks it here.
        certificates: certificates of the model, whose margins the page draws.
        uncertified: why there are no other certificates; the page says it in their place.

    Returns:
        The page, which computes in float64, float32 and bfloat16 in the reader's browser.

    Raises:
        InputTooLarge: for a model of more than 20,000 weights other than 0.
        InputTooLong: for an input longer than a page evaluates.
        UnknownSymbol: for an input with a symbol outside the alphabet.
        InvalidValue: for a model with an activation or symbols that a page cannot have.
        NotFinite: for a model with a weight that is too large for float64.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=16)
        >>> page = tf.figures.explorer(model, "(())", name="dyck-1")
        >>> page.html[:15]
        '<!doctype html>'

    """
    require_transformer(model, "explorer")
    if not isinstance(certificates, Sequence):
        certificates = [certificates]
    for what, text in (("name", name), ("claim", claim), ("reason", uncertified)):
        require_type(
            text,
            str,
            f"the {what} of a page must be a text",
            where="explorer",
            remedy=f"give {_TEXTS[what]}",
        )
    for each in certificates:
        _require_certificate(each, model)
    data = model_data(model)
    guide = guide_of(name, model)
    given = _first_input(model, guide) if x is None else x
    model.admit_length(given)
    _require_short(model, given)
    rows = model.embedding.encode(given)
    front, back = len(model.embedding.front), len(model.embedding.back)
    facts = {
        "title": visible(name),
        "claim": visible(claim),
        "size": f"{size(model)}. {_built(model)}.",
        "model": data,
        "input": rows[front : len(rows) - back],
        "exact": _exact(model, given),
        "certificates": {each.arithmetic: _certificate(each) for each in certificates},
        "uncertified": _uncertified(model, [each.arithmetic for each in certificates], uncertified),
        "guide": guide,
    }
    return ExplorerPage(_written(facts))


def _require_certificate(given: object, model: Transformer) -> None:
    """Require a certificate of the model, and of no host."""
    if not isinstance(given, Certificate):
        received = f"{given!r:.40}"
    elif given.host is not None:
        received = f"a certificate for {given.host.host}"
    elif given.weights != digest(model):
        received = f"a certificate of other weights, {given}"
    else:
        return
    raise InvalidValue(
        "the certificates of a page must be of its model, evaluated by itself",
        received=received,
        where="explorer",
        remedy="give tf.certify(model, arithmetic=…)",
    )


def _first_input(model: Transformer, guide: dict[str, Any] | None) -> Sequence[Symbol]:
    """The input of the guided path, or the first symbols of the alphabet."""
    if guide is not None:
        first: str = guide["stops"][0]["input"]
        return first
    length = min(6, longest_input(model))
    return [model.alphabet[k % len(model.alphabet)] for k in range(length)]


def _require_short(model: Transformer, x: Sequence[Symbol]) -> None:
    longest = longest_input(model)
    if length_of(x) > longest:
        raise InputTooLong(
            f"the input of a page must have at most {longest} symbols for this model",
            received=f"{length_of(x)}",
            where="explorer",
            remedy="give a shorter one",
        )


def _exact(model: Transformer, x: Sequence[Symbol]) -> dict[str, Any]:
    """The exact run of the first input: numbers in words and as float64, and the answer."""
    nothing: dict[str, Any] = {"answer": None, "streams": None, "words": None, "refusal": None}
    steps = 1 + sum(len(list(each.sublayers())) for each in model.layers)
    if (len(x) + 1) * steps * model.width > MOST_EXACT:
        return nothing | {"refusal": "the input is too long for one in a page"}
    try:
        trace = model.run(x, "exact")
    except TransformistError as refusal:
        return nothing | {"refusal": str(refusal)}
    numbers = [trace.arithmetic.numbers(z).ravel() for _, z in trace.streams]
    try:
        streams = [[float(value) for value in each] for each in numbers]
        answer = _plain(trace.answer, model.read_out)
    except OverflowError:
        return nothing | {"refusal": "a number is too large for float64"}
    return nothing | {
        "answer": answer,
        "streams": streams,
        "words": [[number_in_words(value) for value in each.tolist()] for each in numbers],
    }


def _plain(answer: Any, read_out: ReadOut) -> Any:
    """An answer as values of JSON: numbers as float64; labels and fractions as text."""
    if isinstance(read_out, Outputs):
        pairs = zip(read_out.names, read_out.parts, strict=True)
        return {name: _plain(answer[name], part) for name, part in pairs}
    if isinstance(read_out, RealVector | LanguageModel):
        return _floats(answer)
    # A text at every position has a label for each.
    return list(answer) if type(answer) is str and read_out.at == "every" else _texts(answer)


def _texts(answer: Any) -> Any:
    """Labels and fractions of an answer as text."""
    if isinstance(answer, list | tuple):
        return [_texts(each) for each in answer]
    return answer if isinstance(answer, bool) else str(answer)


def _floats(numbers: Any) -> Any:
    """Exact numbers of an answer, each the nearest float64."""
    if isinstance(numbers, dict):
        return {str(label): float(value) for label, value in numbers.items()}
    if isinstance(numbers, list | tuple | np.ndarray):
        return [_floats(each) for each in numbers]
    return float(numbers)


def _built(model: Transformer) -> str:
    """The lengths that a model is built for, in words."""
    if model.max_length is None:
        return "Built for any length"
    return f"Built for at most N = {model.max_length} symbols"


def _uncertified(model: Transformer, certified: Collection[str], why: str) -> dict[str, str]:
    """For each format without a certificate, why there is none and how to make one."""
    call = 'arithmetic="{}"'
    if model.max_length is None:
        reached = f"{_built(model)}, the model needs an N: a certificate holds up to one length."
        call += ", max_length=N"
    else:
        reached = f"{_built(model)}, it would speak of all such strings."
    return {
        each.name: f"The page has no certificate in {each.name}: {why}. {reached} "
        f"tf.certify(model, {call.format(each.name)}) makes one, and tf.figures.explorer takes it "
        "as certificates=."
        for each in PAGE_FORMATS
        if each.name not in certified
    }


def _certificate(found: Certificate) -> dict[str, Any]:
    """The outcome of a certificate, and its margins."""
    outcome = "holds" if found.holds else "is not shown to hold"
    return {
        "words": f"The certificate for {found.arithmetic} and N = {found.max_length} {outcome}"
        f"{_shorter(found)}.",
        "max_length": found.max_length,
        "limiting": f"{found.limiting.place}: {found.limiting.what}",
        "demands": [
            [
                each.place,
                each.what,
                _finite(each.error),
                None if math.isinf(each.allowed) else each.allowed,
            ]
            for each in found.demands
        ],
    }


def _shorter(found: Certificate) -> str:
    """The N for which a certificate that stops earlier holds, in words."""
    if found.holds or not found.largest_length:
        return ""
    return f"; it holds for N = {found.largest_length}"


def _finite(error: float) -> float:
    """An error bound for JSON, which has no infinity: the largest float64 stands for it."""
    return error if math.isfinite(error) else 1.7976931348623157e308


def _written(facts: dict[str, Any]) -> str:
    """The page with these facts."""
    room = files("transformist.figures.explorer_page")
    read = {each: (room / each).read_text(encoding="utf-8") for each in (*SCRIPTS, "page.css")}
    # "<" as an escape: no text of the model can end the element that holds the data.
    data = json.dumps(facts, allow_nan=False).replace("<", "\\u003c")
    parts = {
        "{title}": escape(facts["title"]),
        "{style}": read["page.css"],
        "{data}": data,
        "{script}": "\n".join(read[each] for each in SCRIPTS),
    }
    page = (room / "page.html").read_text(encoding="utf-8")
    pieces = [page]
    for mark, text in parts.items():  # each mark once, in the template alone
        before, after = pieces[-1].split(mark)
        pieces[-1:] = [before, text, after]
    return "".join(pieces)
