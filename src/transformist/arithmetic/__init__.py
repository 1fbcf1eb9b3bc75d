"""Number systems behind one protocol: a definition in `model/` is written once for all of them."""

from transformist.arithmetic.exact import EXACT, Exact, Rationals
from transformist.arithmetic.floating import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, Floating
from transformist.arithmetic.given import exact_numbers, rational
from transformist.arithmetic.protocol import Arithmetic, Array, Mask
from transformist.arithmetic.systems import SYSTEMS, number_system

__all__ = [
    "BFLOAT16",
    "EXACT",
    "FLOAT16",
    "FLOAT32",
    "FLOAT64",
    "SYSTEMS",
    "Arithmetic",
    "Array",
    "Exact",
    "Floating",
    "Mask",
    "Rationals",
    "exact_numbers",
    "number_system",
    "rational",
]
