"""Error bounds of sums, of means by attention and of networks, in each number format."""

from transformist.rounding.attention_error import mean_error, softmax_error
from transformist.rounding.float_format import float_format_of, is_as_fine
from transformist.rounding.network_error import ACTIVATION_SLOPES, rounding_error
from transformist.rounding.powers import power_of_two_at_most, rounded_up
from transformist.rounding.summation import dot_error, sum_error, sum_error_within
from transformist.rounding.summation_order import (
    ANY_ORDER,
    ORDERS,
    REFERENCE_ORDER,
    STRUCTURED_ORDER,
    Order,
    order_of,
)

__all__ = [
    "ACTIVATION_SLOPES",
    "ANY_ORDER",
    "ORDERS",
    "REFERENCE_ORDER",
    "STRUCTURED_ORDER",
    "Order",
    "dot_error",
    "float_format_of",
    "is_as_fine",
    "mean_error",
    "order_of",
    "power_of_two_at_most",
    "rounded_up",
    "rounding_error",
    "softmax_error",
    "sum_error",
    "sum_error_within",
]
