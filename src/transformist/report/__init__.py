"""What a person sees of a model."""

from transformist.report.facts import (
    dependence_in_words,
    how_close,
    how_near,
    numbers_facts,
    plain,
    recipe_facts,
    recipe_table,
    trace_facts,
    verdict_facts,
)
from transformist.report.precision_table import (
    cells,
    found_facts,
    precision_table,
)
from transformist.report.size import Size, size
from transformist.report.trace_table import trace_table

__all__ = [
    "Size",
    "cells",
    "dependence_in_words",
    "found_facts",
    "how_close",
    "how_near",
    "numbers_facts",
    "plain",
    "precision_table",
    "recipe_facts",
    "recipe_table",
    "size",
    "trace_facts",
    "trace_table",
    "verdict_facts",
]
