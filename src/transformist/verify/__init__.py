"""Whether what is claimed holds."""

from transformist.verify.verdict import (
    Counterexample,
    Verdict,
    check,
    check_recipe,
    check_recipes,
)

__all__ = ["Counterexample", "Verdict", "check", "check_recipe", "check_recipes"]
