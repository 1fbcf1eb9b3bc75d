"""The fuzzer: a handful of examples of each kind, or as many as are asked for.

    pytest tests/fuzz -n 2 --dist worksteal --fuzz 180

draws for three minutes, which the kinds share; `--fuzz-examples 10000` draws so many of each.
"""

import pytest
from kinds import KINDS

SLOW = ("processes",)
"""Kinds of which even a handful takes seconds."""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in SLOW)) for kind in KINDS]
)
def test_what_is_drawn_keeps_every_promise(kind, draw_and_check, tmp_path):
    strategy, check = KINDS[kind](tmp_path)
    draw_and_check(strategy, check, kinds=len(KINDS))
