"""Figures of circuits, weights, runs, certificates and functions, and the explorer page."""

from transformist.deferred import handed_on

_ROOMS = {
    "accuracy": "accuracy_by_length",
    "attention": "attention_figure",
    "certificate": "margin_bars",
    "circuit": "circuit_graph",
    "curves": "named_curves",
    "explorer": "explorer_page",
    "function": "function_curve",
    "lengths": "failing_lengths",
    "run": "run_figure",
    "verdict": "checked_cases",
    "weights": "weight_matrices",
    "write": "canvas",
}
"""Module of each function, imported when the function is first asked for."""

__all__ = list(_ROOMS)

__getattr__, __dir__ = handed_on(__name__, _ROOMS)
