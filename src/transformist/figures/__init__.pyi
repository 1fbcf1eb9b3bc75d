"""The names of `__init__.py` with their types."""

from transformist.figures.accuracy_by_length import accuracy
from transformist.figures.attention_figure import attention
from transformist.figures.canvas import write
from transformist.figures.checked_cases import verdict
from transformist.figures.circuit_graph import circuit
from transformist.figures.failing_lengths import lengths
from transformist.figures.function_curve import function
from transformist.figures.margin_bars import certificate
from transformist.figures.named_curves import curves
from transformist.figures.run_figure import run
from transformist.figures.weight_matrices import weights

__all__ = [
    "accuracy",
    "attention",
    "certificate",
    "circuit",
    "curves",
    "function",
    "lengths",
    "run",
    "verdict",
    "weights",
    "write",
]
