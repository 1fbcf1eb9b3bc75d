"""Number systems behind one protocol: a definition in `model/` is written once for all of them."""

from transformist.arithmetic.exact import EXACT, Exact, Rationals
from transformist.arithmetic.floating import (
    BFLOAT16,
    FLOAT8_E4M3,
    FLOAT8_E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
    Clamped,
    Floating,
)
from transformist.arithmetic.given import (
    exact_numbers,
    is_power_of_two,
    is_whole,
    nearest_float64,
    rational,
    whole_number,
)
from transformist.arithmetic.interval import INTERVAL, Balls, Interval
from transformist.arithmetic.protocol import Arithmetic, Array, Flags
from transformist.arithmetic.saturating import MOST_BITS, SATURATING, Saturating
from transformist.arithmetic.systems import FAMILIES, SYSTEMS, number_system

__all__ = [
    "BFLOAT16",
    "EXACT",
    "FAMILIES",
    "FLOAT8_E4M3",
    "FLOAT8_E5M2",
    "FLOAT16",
    "FLOAT32",
    "FLOAT64",
    "FORMATS",
    "INTERVAL",
    "MOST_BITS",
    "SATURATING",
    "SYSTEMS",
    "Arithmetic",
    "Array",
    "Balls",
    "Clamped",
    "Exact",
    "Flags",
    "Floating",
    "Interval",
    "Rationals",
    "Saturating",
    "exact_numbers",
    "is_power_of_two",
    "is_whole",
    "nearest_float64",
    "number_system",
    "rational",
    "whole_number",
]
