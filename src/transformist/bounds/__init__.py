"""Constants and error bounds, each derived from ranges, separations, lengths and tolerances."""

from transformist.bounds.approximation import (
    GELU_BEND,
    GELU_PRODUCT,
    almost_orthogonal_dimension,
    gelu_product_scale,
    printed_dimension,
    relu_by_gelu_scale,
    step_zone,
)
from transformist.bounds.lengths import (
    balance_check_length,
    balance_length,
    fraction_length,
    hash_range_length,
    layernorm_hash_gap,
    layernorm_hash_length,
    mean_length,
    nearest_active_length,
    quadratic_count_length,
    quadratic_length,
    recency_length,
    scaled_quadratic_length,
    softened_recency_length,
    tie_break_length,
)
from transformist.bounds.powers import power_of_two_at_most
from transformist.bounds.rounding import (
    layernorm_hash_error,
    mean_error,
    rounding_error,
    softmax_error,
)
from transformist.bounds.scaling import homogeneity
from transformist.bounds.temperatures import (
    RECENCY_GAP,
    quadratic_sharpness,
    recency_sharpness,
    sharpness,
    underflow_sharpness,
)

__all__ = [
    "GELU_BEND",
    "GELU_PRODUCT",
    "RECENCY_GAP",
    "almost_orthogonal_dimension",
    "balance_check_length",
    "balance_length",
    "fraction_length",
    "gelu_product_scale",
    "hash_range_length",
    "homogeneity",
    "layernorm_hash_error",
    "layernorm_hash_gap",
    "layernorm_hash_length",
    "mean_error",
    "mean_length",
    "nearest_active_length",
    "power_of_two_at_most",
    "printed_dimension",
    "quadratic_count_length",
    "quadratic_length",
    "quadratic_sharpness",
    "recency_length",
    "recency_sharpness",
    "relu_by_gelu_scale",
    "rounding_error",
    "scaled_quadratic_length",
    "sharpness",
    "softened_recency_length",
    "softmax_error",
    "step_zone",
    "tie_break_length",
    "underflow_sharpness",
]
