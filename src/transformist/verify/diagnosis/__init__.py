"""Diagnosis of wrong answers: the number that left its exact value, the signature, the remedy."""

from transformist.verify.diagnosis.diagnosing import (
    MAX_STRINGS,
    Diagnosis,
    Link,
    Searched,
    diagnose,
    first_failing,
)
from transformist.verify.diagnosis.remedies import Remedy, sharpened
from transformist.verify.diagnosis.signatures import (
    BelowResolution,
    Blend,
    LinearRegion,
    MovedByNorm,
    Overflow,
    Signature,
)

__all__ = [
    "MAX_STRINGS",
    "BelowResolution",
    "Blend",
    "Diagnosis",
    "LinearRegion",
    "Link",
    "MovedByNorm",
    "Overflow",
    "Remedy",
    "Searched",
    "Signature",
    "diagnose",
    "first_failing",
    "sharpened",
]
