"""Domains: the inputs a claim speaks about, and how they are covered."""

from transformist.domains.booleans import (
    BooleanRepresentation,
    Interval,
    Multiples,
    boolean_representations,
)
from transformist.domains.sequences import Column, Feature, Meaning, Query, Sequences, Values
from transformist.domains.strings import String, Strings
from transformist.domains.vectors import Bits, Case, Domain, Grid, Listed, Product, Reals, Where

__all__ = [
    "Bits",
    "BooleanRepresentation",
    "Case",
    "Column",
    "Domain",
    "Feature",
    "Grid",
    "Interval",
    "Listed",
    "Meaning",
    "Multiples",
    "Product",
    "Query",
    "Reals",
    "Sequences",
    "String",
    "Strings",
    "Values",
    "Where",
    "boolean_representations",
]
