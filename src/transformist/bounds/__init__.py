"""Constants and error bounds, each derived from ranges, separations, lengths and tolerances."""

from transformist.bounds.activations import activation_bounds, normalized_bound, size_bound
from transformist.bounds.approximation import (
    ACTIVATION_SLOPES,
    GELU_BEND,
    GELU_PRODUCT,
    almost_orthogonal_dimension,
    gelu_product_scale,
    printed_dimension,
    relu_by_gelu_scale,
    step_zone,
)
from transformist.bounds.lengths import (
    fraction_length,
    mean_length,
    nearest_active_length,
    quadratic_count_length,
    quadratic_length,
    recency_length,
    softened_recency_length,
    tie_break_length,
)
from transformist.bounds.norms import (
    NORMS,
    bilinear_norm,
    l_inf_1_norm,
    operator_norm,
    vector_norm,
)
from transformist.bounds.perturbation import (
    error_after,
    lipschitz_constant,
    normalization_constant,
    perturbation_bound,
    perturbation_bounds,
)
from transformist.bounds.powers import power_of_two_at_most
from transformist.bounds.rounding import mean_error, rounding_error, softmax_error
from transformist.bounds.sums import dot_error, sum_error, sum_error_within
from transformist.bounds.temperatures import (
    RECENCY_GAP,
    printed_remainder,
    quadratic_sharpness,
    recency_sharpness,
    sharpness,
    softmax_remainder,
    underflow_sharpness,
)

__all__ = [
    "ACTIVATION_SLOPES",
    "GELU_BEND",
    "GELU_PRODUCT",
    "NORMS",
    "RECENCY_GAP",
    "activation_bounds",
    "almost_orthogonal_dimension",
    "bilinear_norm",
    "dot_error",
    "error_after",
    "fraction_length",
    "gelu_product_scale",
    "l_inf_1_norm",
    "lipschitz_constant",
    "mean_error",
    "mean_length",
    "nearest_active_length",
    "normalization_constant",
    "normalized_bound",
    "operator_norm",
    "perturbation_bound",
    "perturbation_bounds",
    "power_of_two_at_most",
    "printed_dimension",
    "printed_remainder",
    "quadratic_count_length",
    "quadratic_length",
    "quadratic_sharpness",
    "recency_length",
    "recency_sharpness",
    "relu_by_gelu_scale",
    "rounding_error",
    "sharpness",
    "size_bound",
    "softened_recency_length",
    "softmax_error",
    "softmax_remainder",
    "step_zone",
    "sum_error",
    "sum_error_within",
    "tie_break_length",
    "underflow_sharpness",
    "vector_norm",
]
