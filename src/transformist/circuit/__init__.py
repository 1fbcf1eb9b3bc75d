"""Circuits: what a transformer computes, number by number, with the laws and errors of each."""

from transformist.circuit.atom_errors import Errors, magnitude
from transformist.circuit.atoms import (
    SHARED_ZERO,
    Embedded,
    Fetched,
    FunctionOfPlace,
    Kept,
    PositionFeature,
    Relu,
    Rounded,
    RowNumber,
    StepFunction,
    at_bos,
    at_symbols,
)
from transformist.circuit.circuit import Atom, Circuit, Head, Law, Rows, Tolerance
from transformist.circuit.forms import Form, content, total
from transformist.circuit.heads import ALWAYS_THERE, At, AtCoded, Match, ScoredHead, Uniform
from transformist.circuit.margins import READ_OUT, MarginHandler, MarginOwner, Margins, follow
from transformist.circuit.position_code import LONGEST_CODED, PositionCode
from transformist.circuit.readings import Number, Readings, Sum, SumMatrix
from transformist.circuit.seen_rows import CAUSAL, SEES_BOS, rows_under

__all__ = [
    "ALWAYS_THERE",
    "CAUSAL",
    "LONGEST_CODED",
    "READ_OUT",
    "SEES_BOS",
    "SHARED_ZERO",
    "At",
    "AtCoded",
    "Atom",
    "Circuit",
    "Embedded",
    "Errors",
    "Fetched",
    "Form",
    "FunctionOfPlace",
    "Head",
    "Kept",
    "Law",
    "MarginHandler",
    "MarginOwner",
    "Margins",
    "Match",
    "Number",
    "PositionCode",
    "PositionFeature",
    "Readings",
    "Relu",
    "Rounded",
    "RowNumber",
    "Rows",
    "ScoredHead",
    "StepFunction",
    "Sum",
    "SumMatrix",
    "Tolerance",
    "Uniform",
    "at_bos",
    "at_symbols",
    "content",
    "follow",
    "magnitude",
    "rows_under",
    "total",
]
