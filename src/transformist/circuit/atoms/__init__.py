"""The kinds of atoms, a file each: law, value at BOS, error bounds and words."""

from transformist.circuit.atoms.embedded_number import SHARED_ZERO, Embedded, at_bos, at_symbols
from transformist.circuit.atoms.fetched_value import Fetched
from transformist.circuit.atoms.kept_sum import Kept
from transformist.circuit.atoms.position_feature import PositionFeature
from transformist.circuit.atoms.relu import Relu
from transformist.circuit.atoms.row_number import FunctionOfPlace, Rounded, RowNumber
from transformist.circuit.atoms.step_function import StepFunction

__all__ = [
    "SHARED_ZERO",
    "Embedded",
    "Fetched",
    "FunctionOfPlace",
    "Kept",
    "PositionFeature",
    "Relu",
    "Rounded",
    "RowNumber",
    "StepFunction",
    "at_bos",
    "at_symbols",
]
