"""What a person sees of a model."""

from transformist.report.facts import (
    dependence_in_words,
    plain,
    recipe_facts,
    recipe_table,
    trace_facts,
    verdict_facts,
)
from transformist.report.size import Size, size
from transformist.report.trace_table import trace_table

__all__ = [
    "Size",
    "dependence_in_words",
    "plain",
    "recipe_facts",
    "recipe_table",
    "size",
    "trace_facts",
    "trace_table",
    "verdict_facts",
]
