"""Whether what is claimed holds."""

from transformist.verify.changes import sensitivity
from transformist.verify.functions import error_bound, worst_rounding
from transformist.verify.sequences import admitted, free_numbers
from transformist.verify.strings import check
from transformist.verify.suite import check_recipe, check_recipes
from transformist.verify.verdict import Counterexample, Verdict

__all__ = [
    "Counterexample",
    "Verdict",
    "admitted",
    "check",
    "check_recipe",
    "check_recipes",
    "error_bound",
    "free_numbers",
    "sensitivity",
    "worst_rounding",
]
