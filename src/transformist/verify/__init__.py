"""Claims against weights: verdicts, certificates, answers, and where a number format breaks."""

from transformist.verify.answer import AnswerInNumbers
from transformist.verify.breakdowns import SHORT_WORK, WORK, Breakdown, first_failure, float_format
from transformist.verify.certificate import (
    TAKEN_FOR_GRANTED,
    Certificate,
    Uncertifiable,
    Unproved,
    certify,
    check_certificate,
    grade_of,
)
from transformist.verify.changes import sensitivity
from transformist.verify.checking import LONGEST_DRAWN, check
from transformist.verify.claim_kinds import answer_in_numbers, check_recipe
from transformist.verify.comparison import shortest_input
from transformist.verify.diagnosis import Diagnosis, diagnose, first_failing
from transformist.verify.feasible import length_within, require_feasible, sample
from transformist.verify.function_claims import worst_rounding
from transformist.verify.proof import EVALUATIONS
from transformist.verify.runs.execution import Progress
from transformist.verify.runs.processes import BACKENDS, Workers
from transformist.verify.searches import formats, search, search_all, search_formats, searched
from transformist.verify.softened_model import NoSharpness, softened
from transformist.verify.string_claims import enclosed_error
from transformist.verify.suite import built_for, check_program, check_programs, check_recipes
from transformist.verify.tolerances import LeastError, least_error
from transformist.verify.verdict import Counterexample, Coverage, Drawn, Verdict, agrees
from transformist.verify.workers import THIS_PROCESS, spread

__all__ = [
    "BACKENDS",
    "EVALUATIONS",
    "LONGEST_DRAWN",
    "SHORT_WORK",
    "TAKEN_FOR_GRANTED",
    "THIS_PROCESS",
    "WORK",
    "AnswerInNumbers",
    "Breakdown",
    "Certificate",
    "Counterexample",
    "Coverage",
    "Diagnosis",
    "Drawn",
    "LeastError",
    "NoSharpness",
    "Progress",
    "Uncertifiable",
    "Unproved",
    "Verdict",
    "Workers",
    "agrees",
    "answer_in_numbers",
    "built_for",
    "certify",
    "check",
    "check_certificate",
    "check_program",
    "check_programs",
    "check_recipe",
    "check_recipes",
    "diagnose",
    "enclosed_error",
    "first_failing",
    "first_failure",
    "float_format",
    "formats",
    "grade_of",
    "least_error",
    "length_within",
    "require_feasible",
    "sample",
    "search",
    "search_all",
    "search_formats",
    "searched",
    "sensitivity",
    "shortest_input",
    "softened",
    "spread",
    "worst_rounding",
]
