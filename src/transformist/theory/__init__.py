"""Propositions about real vectors: sections 6.1, 7.1, 7.2 and Lemma 5.3 of the Cookbook."""

from transformist.theory.activations import activation_bounds, normalized_bound, size_bound
from transformist.theory.norms import (
    NORMS,
    bilinear_norm,
    l_inf_1_norm,
    operator_norm,
    vector_norm,
)
from transformist.theory.perturbation import (
    error_after,
    lipschitz_constant,
    normalization_constant,
    perturbation_bound,
    perturbation_bounds,
)
from transformist.theory.scaling import homogeneity
from transformist.theory.softening import (
    printed_remainder,
    sharpness,
    softmax_remainder,
    underflow_sharpness,
)
from transformist.theory.transformer_error import transformer_error

__all__ = [
    "NORMS",
    "activation_bounds",
    "bilinear_norm",
    "error_after",
    "homogeneity",
    "l_inf_1_norm",
    "lipschitz_constant",
    "normalization_constant",
    "normalized_bound",
    "operator_norm",
    "perturbation_bound",
    "perturbation_bounds",
    "printed_remainder",
    "sharpness",
    "size_bound",
    "softmax_remainder",
    "transformer_error",
    "underflow_sharpness",
    "vector_norm",
]
