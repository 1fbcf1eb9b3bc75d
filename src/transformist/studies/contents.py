"""The table of studies, by name."""

from __future__ import annotations

from collections.abc import Mapping

from transformist.studies.amplification import AMPLIFICATION
from transformist.studies.experiment import Study
from transformist.studies.network_arithmetic import ARITHMETIC
from transformist.studies.quick_checks import QUICK_CHECKS

STUDIES: Mapping[str, Study] = {
    each.name: each for each in (QUICK_CHECKS, ARITHMETIC, AMPLIFICATION)
}
"""Every study."""
