"""`transformist explain`: the page in which a model works on a string, step by step."""

from __future__ import annotations

from typing import Annotated

import typer

from transformist.arithmetic import number_system
from transformist.cli.options import Model, Set
from transformist.cli.printing import Json, out, print_json, shown_warnings, warn, working
from transformist.errors import InvalidValue, TransformistError
from transformist.figures.explorer_page import explorer
from transformist.figures.explorer_page.model_data import PAGE_FORMATS
from transformist.figures.explorer_page.page import require_page
from transformist.inputs import read_settings
from transformist.model import Transformer
from transformist.named import find_model
from transformist.texts import Text, TextSource
from transformist.verify import Certificate, certify

Given = Annotated[
    str | None,
    typer.Argument(
        metavar="[INPUT]",
        help="The string that the page begins with; a short one when left out.",
        show_default=False,
    ),
]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", help="The page: a file that ends in .html.", metavar="F"),
]
NoCertificates = Annotated[
    bool,
    typer.Option("--no-certificates", help="Leave out the margins, which can take a while."),
]

LENGTH = 32
"""The N that a page is built for at least, so that a reader can type other strings."""

CERTIFIED_TO = 256
"""The largest N for which certificates are made: for larger ones they take minutes."""


def command(
    model: Model,
    given: Given = None,
    output: Output = None,
    no_certificates: NoCertificates = False,
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """The page is one file, which needs no network. The string in it can be edited; heads, hidden
    units and slots can be switched off, and numbers replaced. It computes in float64, float32 and
    bfloat16. Without --set max_length, the model is built for inputs of at least 32 symbols.
    """
    if output is None:
        raise InvalidValue(
            "explain must be told where to write the page",
            received="no -o",
            where="explain",
            remedy="add -o and a file name, such as -o page.html",
        )
    path = require_page(output, "-o")
    named = find_model(model, read_settings(settings))
    named.require_strings("explain", "explain")
    system = number_system("float64")
    x = None
    if given is not None:
        named = named.adapted([given])
        x = Text.over(named.alphabet(len(given), system), TextSource.given(given)).whole
    with working(f"building {named.name}"), shown_warnings():
        found = named.built(LENGTH if x is None else max(LENGTH, len(x)), system)
    built, claim = found.model, found.claim
    # The page is made once without certificates, as what is refused should be refused at once.
    with working("evaluating the input"):
        page = explorer(built, x, name=named.name, claim=claim)
    certificates, reason = (
        ([], "--no-certificates was given") if no_certificates else _certified(built)
    )
    page = explorer(
        built, x, name=named.name, claim=claim, certificates=certificates, uncertified=reason
    )
    page.save(path)
    if as_json:
        formats = [each.arithmetic for each in certificates]
        facts = {"model": named.name, "file": output, "characters": len(page.html)}
        print_json({**facts, "max_length": built.max_length, "certificates": formats})
        return
    out.print(f"wrote {output}", markup=False)


def _certified(model: Transformer) -> tuple[list[Certificate], str]:
    """The certificates of a model in the formats of a page, and why there are no others."""
    if model.max_length is None:
        return [], "explain makes none for models without max_length"
    if model.max_length > CERTIFIED_TO:
        return [], f"explain makes none for models that are built for N > {CERTIFIED_TO}"
    certificates: list[Certificate] = []
    refusals: list[str] = []
    for each in PAGE_FORMATS:
        with working(f"certifying in {each.name}"):
            try:
                certificates.append(certify(model, arithmetic=each.name))
            except TransformistError as refusal:
                refusals.append(str(refusal))
                warn(f"the page has no certificate in {each.name}: {refusal}")
    return certificates, "; ".join(dict.fromkeys(refusals)) or "none was given"
