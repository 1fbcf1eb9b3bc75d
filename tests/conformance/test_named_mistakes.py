"""Mistakes that evidence names: the planted bugs of these kinds, each prompt alone."""

import pytest
from named_mistakes import TRUE, first_named, suites
from planted_bugs import BUGS


@pytest.mark.slow
def test_the_true_mistake_is_among_at_most_two(tmp_path):
    made = suites(tmp_path, 32)
    planted = {bug.id: bug for bug in BUGS}
    named = {id: first_named(planted[id], made[planted[id].family], "alone")[0] for id in TRUE}
    wrong = {id: each for id, each in named.items() if TRUE[id] not in each or len(each) > 2}
    assert not wrong
