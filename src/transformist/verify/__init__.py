"""Whether what is claimed holds."""

from transformist.verify.verdict import (
    Counterexample,
    Verdict,
    check,
    check_recipe,
    check_recipes,
    error_bound,
    worst_rounding,
)

__all__ = [
    "Counterexample",
    "Verdict",
    "check",
    "check_recipe",
    "check_recipes",
    "error_bound",
    "worst_rounding",
]
