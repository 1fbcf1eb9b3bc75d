"""The worked programs, by name."""

from __future__ import annotations

from collections.abc import Mapping

from transformist.language import Program
from transformist.programs.brackets import dyck_1
from transformist.programs.counting import fraction_of_previous, histogram, majority
from transformist.programs.retrieval import induction_most_recent, reverse

PROGRAMS: Mapping[str, Program] = {
    "dyck-1": dyck_1,
    "induction-most-recent": induction_most_recent,
    "histogram": histogram,
    "reverse": reverse,
    "majority": majority,
    "fraction-of-previous": fraction_of_previous,
}
"""Each is interpreted exactly when it is called.

>>> PROGRAMS["majority"]("0111")
True
"""
