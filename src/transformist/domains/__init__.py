"""Domains: the inputs a claim speaks about, and how they are covered."""

from transformist.domains.sequences import Column, Feature, Meaning, Query, Sequences, Values
from transformist.domains.strings import String, Strings
from transformist.domains.vectors import (
    Bits,
    Case,
    Domain,
    Grid,
    Opposites,
    Product,
    Reals,
    Signs,
    Where,
)

__all__ = [
    "Bits",
    "Case",
    "Column",
    "Domain",
    "Feature",
    "Grid",
    "Meaning",
    "Opposites",
    "Product",
    "Query",
    "Reals",
    "Sequences",
    "Signs",
    "String",
    "Strings",
    "Values",
    "Where",
]
