"""Constants and error bounds, each derived from ranges, separations, lengths and tolerances.

The public names of `rounding` and `theory`, and of the chapters of `catalogue` those that bound
lengths or derive constants.
"""

from transformist.catalogue.attention import mean_length
from transformist.catalogue.examples.dyck import (
    balance_check_length,
    balance_length,
    comparator_length,
    share_length,
    step_zone,
)
from transformist.catalogue.examples.induction import (
    RECENCY_GAP,
    recency_length,
    recency_sharpness,
    softened_recency_length,
)
from transformist.catalogue.examples.parity import quadratic_count_length
from transformist.catalogue.feed_forward import (
    GELU_BEND,
    GELU_PRODUCT,
    gelu_product_scale,
    relu_by_gelu_scale,
)
from transformist.catalogue.lookup import quadratic_sharpness
from transformist.catalogue.normalization import (
    layernorm_hash_gap,
    layernorm_hash_head_length,
    layernorm_hash_length,
)
from transformist.catalogue.positions import almost_orthogonal_dimension, printed_dimension
from transformist.catalogue.representations import (
    hash_range_length,
    layernorm_hash_error,
    scaled_quadratic_length,
)
from transformist.catalogue.safe_lengths import (
    count_length,
    fraction_length,
    nearest_active_length,
    quadratic_length,
)
from transformist.catalogue.weighting import tie_break_length
from transformist.rounding import (
    ACTIVATION_SLOPES,
    ANY_ORDER,
    ORDERS,
    REFERENCE_ORDER,
    STRUCTURED_ORDER,
    Order,
    dot_error,
    float_format_of,
    mean_error,
    order_of,
    power_of_two_at_most,
    rounded_up,
    rounding_error,
    softmax_error,
    sum_error,
    sum_error_within,
)
from transformist.theory import (
    NORMS,
    activation_bounds,
    bilinear_norm,
    error_after,
    homogeneity,
    l_inf_1_norm,
    lipschitz_constant,
    normalization_constant,
    normalized_bound,
    operator_norm,
    perturbation_bound,
    perturbation_bounds,
    printed_remainder,
    sharpness,
    size_bound,
    softmax_remainder,
    underflow_sharpness,
    vector_norm,
)

__all__ = [
    "ACTIVATION_SLOPES",
    "ANY_ORDER",
    "GELU_BEND",
    "GELU_PRODUCT",
    "NORMS",
    "ORDERS",
    "RECENCY_GAP",
    "REFERENCE_ORDER",
    "STRUCTURED_ORDER",
    "Order",
    "activation_bounds",
    "almost_orthogonal_dimension",
    "balance_check_length",
    "balance_length",
    "bilinear_norm",
    "comparator_length",
    "count_length",
    "dot_error",
    "error_after",
    "float_format_of",
    "fraction_length",
    "gelu_product_scale",
    "hash_range_length",
    "homogeneity",
    "l_inf_1_norm",
    "layernorm_hash_error",
    "layernorm_hash_gap",
    "layernorm_hash_head_length",
    "layernorm_hash_length",
    "lipschitz_constant",
    "mean_error",
    "mean_length",
    "nearest_active_length",
    "normalization_constant",
    "normalized_bound",
    "operator_norm",
    "order_of",
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
    "rounded_up",
    "rounding_error",
    "scaled_quadratic_length",
    "share_length",
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
