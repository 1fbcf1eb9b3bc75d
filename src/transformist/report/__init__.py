"""What a person sees of a model."""

from transformist.report.size import Size, size
from transformist.report.trace_table import trace_table

__all__ = ["Size", "size", "trace_table"]
