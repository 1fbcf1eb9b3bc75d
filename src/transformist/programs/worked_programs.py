"""The worked programs, by name."""

from __future__ import annotations

from collections.abc import Mapping

from transformist.language import Program
from transformist.programs.brackets import dyck_1, dyck_k_d, shuffle_dyck_2
from transformist.programs.counting import (
    double_histogram,
    equal_abc,
    fraction_of_previous,
    histogram,
    majority,
    most_frequent_token,
    parity,
)
from transformist.programs.ordering import binary_increment, sort
from transformist.programs.retrieval import (
    contains_abc,
    induction_most_frequent,
    induction_most_recent,
    palindrome,
    reverse,
)

PROGRAMS: Mapping[str, Program] = {
    "dyck-1": dyck_1,
    "dyck-k-d": dyck_k_d,
    "shuffle-dyck-2": shuffle_dyck_2,
    "induction-most-recent": induction_most_recent,
    "induction-most-frequent": induction_most_frequent,
    "histogram": histogram,
    "double-histogram": double_histogram,
    "most-frequent-token": most_frequent_token,
    "majority": majority,
    "parity": parity,
    "fraction-of-previous": fraction_of_previous,
    "reverse": reverse,
    "palindrome": palindrome,
    "sort": sort,
    "equal-abc": equal_abc,
    "contains-abc": contains_abc,
    "binary-increment": binary_increment,
}
"""Each is interpreted exactly when it is called, and compiled by `tf.compile`.

>>> PROGRAMS["majority"]("0111")
True
"""
