"""What a person sees of a model."""

from transformist.report.bench_table import bench_table
from transformist.report.certificate_table import (
    HEADINGS,
    certificate_facts,
    certificate_rows,
    certificate_table,
)
from transformist.report.compiled_facts import compiled_facts, compiled_in_words
from transformist.report.contents_table import contents_facts, contents_table
from transformist.report.model_table import lengths_table, model_facts, model_table
from transformist.report.plan_facts import plan_facts
from transformist.report.precision_table import (
    cells,
    found_facts,
    precision_table,
    searched_in_words,
    weighting_facts,
)
from transformist.report.recipe_sheet import recipe_facts, recipe_table
from transformist.report.run_facts import (
    finding_facts,
    how_close,
    how_near,
    judged_facts,
    numbers_facts,
    run_in_words,
    trace_facts,
)
from transformist.report.size import Size, size
from transformist.report.trace_table import trace_table
from transformist.report.values import answer_in_words, dependence_in_words, plain
from transformist.report.verdict_facts import verdict_facts, verdict_line

__all__ = [
    "HEADINGS",
    "Size",
    "answer_in_words",
    "bench_table",
    "cells",
    "certificate_facts",
    "certificate_rows",
    "certificate_table",
    "compiled_facts",
    "compiled_in_words",
    "contents_facts",
    "contents_table",
    "dependence_in_words",
    "finding_facts",
    "found_facts",
    "how_close",
    "how_near",
    "judged_facts",
    "lengths_table",
    "model_facts",
    "model_table",
    "numbers_facts",
    "plain",
    "plan_facts",
    "precision_table",
    "recipe_facts",
    "recipe_table",
    "run_in_words",
    "searched_in_words",
    "size",
    "trace_facts",
    "trace_table",
    "verdict_facts",
    "verdict_line",
    "weighting_facts",
]
