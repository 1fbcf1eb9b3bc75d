"""Studies: questions on the constructions, answered by running them."""

from transformist.studies.contents import STUDIES
from transformist.studies.experiment import Claimed, Findings, Study, carry_out
from transformist.studies.study_folder import StudyFolder
from transformist.studies.study_page import study_page

__all__ = [
    "STUDIES",
    "Claimed",
    "Findings",
    "Study",
    "StudyFolder",
    "carry_out",
    "study_page",
]
