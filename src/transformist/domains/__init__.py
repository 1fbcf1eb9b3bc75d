"""Domains: the inputs a claim speaks about, and how they are covered."""

from transformist.domains.booleans import (
    BooleanRepresentation,
    Multiples,
    RealInterval,
    boolean_representations,
)
from transformist.domains.grown import GrownStrings
from transformist.domains.sequences import Column, Feature, Meaning, Query, Sequences, Values
from transformist.domains.strings import String, Strings
from transformist.domains.vectors import (
    Bits,
    Case,
    Domain,
    FormatNumbers,
    Listed,
    NoCase,
    Opposites,
    Product,
    Reals,
    Signs,
    Where,
    WholeMultiples,
)

__all__ = [
    "Bits",
    "BooleanRepresentation",
    "Case",
    "Column",
    "Domain",
    "Feature",
    "FormatNumbers",
    "GrownStrings",
    "Listed",
    "Meaning",
    "Multiples",
    "NoCase",
    "Opposites",
    "Product",
    "Query",
    "RealInterval",
    "Reals",
    "Sequences",
    "Signs",
    "String",
    "Strings",
    "Values",
    "Where",
    "WholeMultiples",
    "boolean_representations",
]
