"""`transformist certify`: certificates of a model, and the check of saved ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from transformist.arithmetic import number_system
from transformist.bisection import largest_below
from transformist.cli.large_programs import warn_of_symbols, warn_of_weights
from transformist.cli.options import PositionCodes, Set
from transformist.cli.printing import Json, out, print_json, shown_warnings, wide, working
from transformist.compiler.target import host_refusal
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import InvalidValue
from transformist.hosts import (
    certify,
    check_certificate,
    load,
    load_certificates,
    save,
    unproved,
)
from transformist.hosts.certifying import OnlySearched, SearchedCertificate, certify_unsearched
from transformist.hosts.host import HOSTS
from transformist.hosts.saved_model import model_path
from transformist.inputs import read_positive, read_settings, with_options
from transformist.model import Transformer
from transformist.named import NamedModel, find_model
from transformist.named.named_file import NamedFile
from transformist.named.named_program import NamedProgram
from transformist.report.certificate_table import (
    HEADINGS,
    certificate_facts,
    certificate_rows,
    certificate_table,
)
from transformist.rounding import float_format_of
from transformist.verify import Certificate

USUAL = 256
"""The N that is asked for where neither the user nor the model has one."""

Certified = Annotated[
    str,
    typer.Argument(
        help="programs/NAME, FILE.py:NAME, a recipe's name, or a saved file.", metavar="MODEL"
    ),
]
Longest = Annotated[
    str | None,
    typer.Option("--max-length", help=f"N; a model's own, or {USUAL}, when left out.", metavar="N"),
]
Format = Annotated[
    str | None,
    typer.Option(
        help="A float format; the one that the model is compiled for, or float32, when left out.",
        metavar="A",
    ),
]
Order = Annotated[
    str,
    typer.Option(
        help="The order of summation: any, that of whichever linear algebra library (with "
        "the reference beside it); reference, from left to right; structured, that of the engine "
        "for long inputs; flash, that of GPU kernels, which normalise last.",
        metavar="O",
    ),
]
Host = Annotated[
    str | None,
    typer.Option(
        help="A class of transformers: certify the exported checkpoint as this class evaluates it "
        "(gpt2 and llama, in float32), or search for its first wrong answer there. A program is "
        "compiled for the class.",
        metavar="H",
    ),
]
Lines = Annotated[
    bool, typer.Option("--lines", help="Print every number, with its range and error bound.")
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="F", help="Save the model there, with its certificate."),
]
CheckSaved = Annotated[
    bool, typer.Option("--check", help="Check the certificates that a saved file has.")
]


def command(
    context: typer.Context,
    model: Certified,
    length: Longest = None,
    arithmetic: Format = None,
    order: Order = "any",
    host: Host = None,
    position_codes: PositionCodes = None,
    lines: Lines = False,
    output: Output = None,
    check_saved: CheckSaved = False,
    settings: Set = [],  # noqa: B006
    as_json: Json = False,
) -> int:
    """Exit code 1 where a margin is not kept.

    A bound of every error is composed over all layers; what holds is checked again by another
    reading of the weights. What is not shown to hold need not fail. A program is compiled for the
    format, or, where that does not keep the compiler's margins, for exact arithmetic, to weights
    that are the same.
    """
    if check_saved:
        if _given(context) - {"model", "check_saved", "as_json"}:
            raise InvalidValue(
                "certificates that are saved must be checked as they are",
                received="--check beside another option",
                where="certify",
                remedy="give --check and the file alone",
            )
        return _check_saved(model, as_json)
    if output is not None:
        model_path(output, "-o")  # before a proof, which may take minutes
    code = {"position_codes": position_codes}
    named = find_model(model, with_options(read_settings(settings), code))
    name, longest = named.name, None if length is None else read_positive(length, "--max-length")
    with _compiling_for(host):
        named = _with_options(named, longest, host)
    after, in_words = "", ""
    if isinstance(named, NamedProgram) and named.answers_after:
        after, in_words = named.answers_after, named.after_in_words
        longest = None  # the model's own N has the separator and the tags as well
    _say_how_long_to_compile(named)
    with working(f"certifying {name}"), shown_warnings():
        arithmetic = arithmetic or _own_format(named)
        with _compiling_for(host):
            built = _built(named, longest or USUAL, arithmetic)
        longest = longest or getattr(built, "max_length", None) or USUAL
        orders = ("any", "reference") if order == "any" and host is None else (order,)
        _say_how_long_to_prove(built, 2 * len(orders))  # each is found, and then checked
        try:
            found = [certify(built, arithmetic, longest, each, host) for each in orders]
        except OnlySearched as refusal:
            _save(built, output, ())
            return _print_searched(name, refusal, longest, after, output, as_json)
        shorter = 0
        if isinstance(named, NamedProgram) and not found[0].holds:
            shorter = _certified_below(named, found[0])
        held = [each for each in found if each.holds]
        for each in held:
            check_certificate(built, each)
    _save(built, output, held)
    if as_json:
        beside = [certificate_facts(name, each) for each in found[1:]]
        saved: dict[str, Any] = {"beside": beside, "saved": str(output) if output else None}
        if lines:
            rows = certificate_rows(found[0])
            saved["lines"] = [dict(zip(HEADINGS, cells, strict=True)) for cells in rows]
        if host is not None:
            saved["searched"] = _searched(found[0])
        if isinstance(named, NamedProgram):
            saved["compiled_for"] = shorter or None
            saved["answers_after"] = after or None
        print_json(certificate_facts(name, found[0]) | saved)
    else:
        if after:
            out.print(in_words, markup=False)
        _print_found(name, found, lines, output)
        if shorter:
            out.print(f"compiled for N = {shorter}, {name} is shown to hold", markup=False)
    return 0 if found[0].holds else 1


@contextmanager
def _compiling_for(host: str | None) -> Iterator[None]:
    """Refuse a program that is compiled for a host without the advice to choose other masks."""
    try:
        yield
    except Uncompilable as refusal:
        if host is None:
            raise
        other = "or leave out --host, to certify the program compiled with any masks"
        raise host_refusal(host, refusal, other) from None


def _say_how_long_to_compile(named: NamedModel) -> None:
    if isinstance(named, NamedProgram):
        warn_of_symbols(len(named.program.alphabet), "compiling", "writes nothing")


def _say_how_long_to_prove(model: Transformer, proofs: int) -> None:
    if isinstance(model, Transformer):  # a recipe of vectors is refused later
        warn_of_symbols(len(model.alphabet), f"each of {proofs} proofs", "writes nothing")
        warn_of_weights(model, "writes nothing")


def _with_options(named: NamedModel, longest: int | None, host: str | None) -> NamedModel:
    """A program with the options of N and of a host; any other model as it is."""
    if not isinstance(named, NamedProgram):
        return named
    own = {} if longest is None else {"max_length": longest}
    if host is None or host not in HOSTS:
        return named.with_defaults(**own)
    return named.with_defaults(**HOSTS[host].options, **own).for_masks()


def _given(context: typer.Context) -> set[str]:
    """The names of the parameters that were given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, each in sources.items() if each and each.name == "COMMANDLINE"}


def _own_format(named: NamedModel) -> str:
    """The float format that a model or program is compiled for; float32 where there is none."""
    # A certificate speaks of one format. That in which the margins were kept when the weights were
    # made is the one that is most likely meant, and the one in which they are most likely to hold.
    own = named.model.built_for if isinstance(named, NamedFile) else named.given.get("arithmetic")
    return own if own is not None and float_format_of(own) is not None else "float32"


def _built(named: NamedModel, longest: int, arithmetic: str) -> Transformer:
    """The model; a program compiled for the format, or for exact arithmetic where that refuses."""
    try:
        return named.transformer(longest, number_system(arithmetic))
    except Uncompilable:
        return named.transformer(longest, number_system("exact"))


def _certified_below(named: NamedProgram, refused: Certificate) -> int:
    """The largest N that the compiler admits in a format, or a smaller one that is certified.

    A program has other weights for each N; those for a larger one may hold for no length at all.
    An N up to which the weights that were refused hold is not offered; 0 stands for none.
    """
    name, varied = refused.arithmetic, ("max_length", "arithmetic")
    free = replace(named, given={k: v for k, v in named.given.items() if k not in varied})
    n = free.largest_lengths([name], refused.max_length)[name]
    if not refused.largest_length < n < refused.max_length:
        return 0
    host = None if refused.host is None else refused.host.host

    def holds(k: int) -> bool:
        model = free.with_defaults(max_length=k, arithmetic=name).compiled()
        return certify_unsearched(model, name, k, refused.order, host).holds

    found = n if holds(n) else largest_below(n, holds, refused.largest_length)
    return found if found > refused.largest_length else 0


def _save(model: Transformer, output: Path | None, held: Sequence[Certificate]) -> None:
    if output is not None:
        save(model, output, held)


def _searched(found: Certificate) -> dict[str, Any] | None:
    """The search for the first wrong answer in a host, where a certificate does not hold."""
    return asdict(found.searched) if isinstance(found, SearchedCertificate) else None


def _print_searched(
    name: str,
    refusal: OnlySearched,
    longest: int,
    after: str,
    output: Path | None,
    as_json: bool,
) -> int:
    """Print why there is no certificate and what a search found; return the exit code."""
    if as_json:
        searched = refusal.searched
        print_json(
            {
                "model": name,
                "arithmetic": searched.arithmetic,
                "max_length": longest,
                "order": "any",
                "holds": False,
                "grade": 0,
                "stopped": f"{refusal.invariant}; received {refusal.received}",
                "margin": None,
                "largest_length": 0,
                "limiting_slot": None,
                "limiting_quantity": None,
                "assumes": [],
                "takes_for_granted": [],
                "host": searched.host,
                "beside": [],
                "saved": str(output) if output else None,
                "searched": asdict(searched),
                "compiled_for": None,
                "answers_after": after or None,
            }
        )
        return 1
    out.print(f"{name}: {refusal}", markup=False)
    if output is not None:
        out.print(f"saved to {output}, with 0 certificates", markup=False)
    return 1


def _print_found(name: str, found: Sequence[Certificate], lines: bool, output: Path | None) -> None:
    for each in found:
        out.print(f"{name}: {each}", markup=False)
        if not each.holds:
            n = each.largest_length
            shown = f"for N up to {n}" if n else "for no N"
            other = "weights built for another N may hold for more"
            out.print(f"these weights are shown to hold {shown}; {other}", markup=False)
    if lines:
        wide.print(certificate_table(found[0]))
    if output is not None:
        held = sum(each.holds for each in found)
        count = f"{held} certificate{'s' * (held != 1)}"
        out.print(f"saved to {output}, with {count}", markup=False)


def _check_saved(path: str, as_json: bool) -> int:
    """Check the certificates in a file."""
    model, found = load(path), load_certificates(path)
    if not found:
        raise InvalidValue(
            "a file whose certificates are checked must have at least one",
            received=f"{path}, which has none",
            where="certify",
            remedy="save certificates with a model by certify --output",
        )
    reasons = [str(refusal) for refusal in unproved(model, found)]
    if as_json:
        checked = [certificate_facts(path, each) for each in found]
        print_json({"checked": checked, "unproved": reasons})
    else:
        for each in found if not reasons else ():
            out.print(f"{path}: follows from the weights: {each}", markup=False)
        for reason in reasons:
            out.print(f"{path}: {reason}", markup=False)
    return 1 if reasons else 0
