"""Whether what is claimed holds, and where a number format breaks it."""

from transformist.verify.answers import (
    AnswerInNumbers,
    AnswerOnSymbols,
    BuiltModel,
    answer_in_numbers,
    answer_on_symbols,
    built_for_input,
)
from transformist.verify.certificate import (
    TAKEN_FOR_GRANTED,
    Certificate,
    Unproved,
    certify,
    check_certificate,
)
from transformist.verify.changes import sensitivity
from transformist.verify.functions import error_bound, worst_rounding
from transformist.verify.precision import SHORT_WORK, WORK, Breakdown, first_failure, float_format
from transformist.verify.programs import built_for, check_program
from transformist.verify.proof import EVALUATIONS
from transformist.verify.proofs import unproved
from transformist.verify.searches import formats, search, search_all, searched
from transformist.verify.sequences import admitted, free_numbers
from transformist.verify.strings import check, length_within, require_feasible
from transformist.verify.suite import check_programs, check_recipe, check_recipes
from transformist.verify.tolerances import LeastError, least_error
from transformist.verify.verdict import Counterexample, Verdict, agrees

__all__ = [
    "EVALUATIONS",
    "SHORT_WORK",
    "TAKEN_FOR_GRANTED",
    "WORK",
    "AnswerInNumbers",
    "AnswerOnSymbols",
    "Breakdown",
    "BuiltModel",
    "Certificate",
    "Counterexample",
    "LeastError",
    "Unproved",
    "Verdict",
    "admitted",
    "agrees",
    "answer_in_numbers",
    "answer_on_symbols",
    "built_for",
    "built_for_input",
    "certify",
    "check",
    "check_certificate",
    "check_program",
    "check_programs",
    "check_recipe",
    "check_recipes",
    "error_bound",
    "first_failure",
    "float_format",
    "formats",
    "free_numbers",
    "least_error",
    "length_within",
    "require_feasible",
    "search",
    "search_all",
    "searched",
    "sensitivity",
    "unproved",
    "worst_rounding",
]
