"""The table of studies, by name."""

from __future__ import annotations

from collections.abc import Mapping

from transformist.studies.amplification import AMPLIFICATION
from transformist.studies.dimensions import DIMENSIONS
from transformist.studies.dyck_recognizers import DYCK
from transformist.studies.exact_uniform import EXACT_UNIFORM
from transformist.studies.experiment import Study
from transformist.studies.failure_signatures import SIGNATURES
from transformist.studies.format_limits import PRECISION
from transformist.studies.learnability import LEARNABILITY
from transformist.studies.network_arithmetic import ARITHMETIC
from transformist.studies.one_representation import ONE_REPRESENTATION
from transformist.studies.paired_norms import NORM_STUDY
from transformist.studies.precision_law import PRECISION_LAW
from transformist.studies.quick_checks import QUICK_CHECKS
from transformist.studies.six_steps import SIX_STEPS
from transformist.studies.soft_lookup import SOFT_LOOKUP
from transformist.studies.softmax_noise import SOFTMAX_NOISE

STUDIES: Mapping[str, Study] = {
    each.name: each
    for each in (
        QUICK_CHECKS,
        ARITHMETIC,
        SOFT_LOOKUP,
        SOFTMAX_NOISE,
        DYCK,
        PRECISION,
        PRECISION_LAW,
        SIGNATURES,
        NORM_STUDY,
        DIMENSIONS,
        AMPLIFICATION,
        LEARNABILITY,
        EXACT_UNIFORM,
        ONE_REPRESENTATION,
        SIX_STEPS,
    )
}
"""Every study."""
