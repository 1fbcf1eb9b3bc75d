"""What a transformer computes, number by number, with what is known of each number."""

from transformist.circuit.at_bos import is_decided_at_bos, is_whole_at_bos
from transformist.circuit.atom_errors import follow
from transformist.circuit.atom_laws import FETCHED
from transformist.circuit.atoms import (
    Atom,
    Embedded,
    Feature,
    Fetched,
    Kept,
    Law,
    Relu,
    Rows,
    Step,
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
from transformist.circuit.margins import READ_OUT, Ask, Errors, Margins, Part, magnitude
from transformist.circuit.readings import Number, Readings, Sum
from transformist.circuit.shares import (
    INDEX_ERROR,
    MEAN_SCORE_ERROR,
    SCORE_ERROR,
    unit_divisor,
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
    "Ask",
    "At",
    "Atom",
    "Circuit",
    "Embedded",
    "Errors",
    "Feature",
    "Fetched",
    "Form",
    "Head",
    "Kept",
    "Law",
    "Margins",
    "Match",
    "Number",
    "Part",
    "Readings",
    "Relu",
    "Rows",
    "Step",
    "Sum",
    "Uniform",
    "content",
    "follow",
    "is_decided_at_bos",
    "is_whole_at_bos",
    "magnitude",
    "rows_under",
    "total",
    "unit_divisor",
]
