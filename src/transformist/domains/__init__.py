"""Domains: the inputs a claim speaks about, and how they are covered."""

from transformist.domains.sequences import Column, Feature, Meaning, Query, Sequences, Values
from transformist.domains.strings import String, Strings
from transformist.domains.vectors import Bits, Case, Domain, Grid, Numbers, Product, Reals, Where

__all__ = [
    "Bits",
    "Case",
    "Column",
    "Domain",
    "Feature",
    "Grid",
    "Meaning",
    "Numbers",
    "Product",
    "Query",
    "Reals",
    "Sequences",
    "String",
    "Strings",
    "Values",
    "Where",
]
