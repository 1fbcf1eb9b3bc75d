"""Studies: questions on the constructions, answered by running them."""

from transformist.studies.experiment import Chart, Claimed, Findings, Study, carry_out
from transformist.studies.study_folder import StudyFolder
from transformist.studies.study_page import study_page
from transformist.studies.study_table import STUDIES

__all__ = [
    "STUDIES",
    "Chart",
    "Claimed",
    "Findings",
    "Study",
    "StudyFolder",
    "carry_out",
    "study_page",
]
