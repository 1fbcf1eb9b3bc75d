"""What a transformer computes, number by number, with what is known of each number."""

from transformist.circuit.at_bos import is_decided_at_bos, is_whole_at_bos
from transformist.circuit.atom_errors import follow
from transformist.circuit.atom_laws import FETCHED
from transformist.circuit.atoms import (
    Atom,
    Embedded,
    Fetched,
    Kept,
    Law,
    PositionFeature,
    Relu,
    Rows,
    StepFunction,
)
from transformist.circuit.circuit import Circuit
from transformist.circuit.forms import Form, content, total
from transformist.circuit.heads import (
    CAUSAL,
    SCORES,
    SEES_BOS,
    At,
    Head,
    Match,
    Uniform,
    rows_under,
)
from transformist.circuit.margins import (
    READ_OUT,
    Errors,
    MarginHandler,
    MarginOwner,
    Margins,
    magnitude,
)
from transformist.circuit.readings import Number, Readings, Sum
from transformist.circuit.shares import (
    INDEX_ERROR,
    MEAN_SCORE_ERROR,
    SCORE_ERROR,
    scale_divisor,
)

__all__ = [
    "CAUSAL",
    "FETCHED",
    "INDEX_ERROR",
    "MEAN_SCORE_ERROR",
    "READ_OUT",
    "SCORES",
    "SCORE_ERROR",
    "SEES_BOS",
    "At",
    "Atom",
    "Circuit",
    "Embedded",
    "Errors",
    "Fetched",
    "Form",
    "Head",
    "Kept",
    "Law",
    "MarginHandler",
    "MarginOwner",
    "Margins",
    "Match",
    "Number",
    "PositionFeature",
    "Readings",
    "Relu",
    "Rows",
    "StepFunction",
    "Sum",
    "Uniform",
    "content",
    "follow",
    "is_decided_at_bos",
    "is_whole_at_bos",
    "magnitude",
    "rows_under",
    "scale_divisor",
    "total",
]
