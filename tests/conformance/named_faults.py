"""The classes of faults that a diagnosis names for the planted bugs, beside the true ones."""

from functools import cache

from opened_engines import opening
from planted_bugs import BUGS
from planted_suites import FAMILIES, suite_directory

from transformist.conformance import run
from transformist.conformance.explanation import Predictions
from transformist.conformance.fault_diagnosis import KNOWN, diagnose
from transformist.conformance.running_suites import predictions_of


class Unfitting(Predictions):
    """Predictions without the mistakes that fit: each bug is then of a sort that is not known."""

    def __init__(self, known):
        super().__init__(known._cases)
        # Each mistake is evaluated once for both.
        self._networks, self._tokens = known._networks, known._tokens

    def explanations(self, own):
        return [each for each in super().explanations(own) if each.agreement < KNOWN]


@cache
def unfitting(family):
    return Unfitting(predictions_of(suite_directory(family)))


def named(bug):
    """The classes named for a bug, and those named if no known mistake fits; none if not found."""
    found = run(opening(bug.engine), suite_directory(bug.family))
    others = diagnose(found.every, unfitting(bug.family))
    return [[each.fault for each in some] for some in (found.diagnosis, others)]


def counts(found):
    """For each family: bugs found, named among at most two, named alone, and so for unknown ones.

    `found` has the two lists of `named` for each bug by its id.
    """
    for family, title in FAMILIES.items():
        own = [(bug.kind, *found[bug.id]) for bug in BUGS if bug.family == family]
        own = [each for each in own if each[1]]
        yield (
            title,
            len(own),
            sum(kind in names for kind, names, _ in own),
            sum([kind] == names for kind, names, _ in own),
            sum(kind in others for kind, _, others in own),
        )
