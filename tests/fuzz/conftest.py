"""How long the fuzzer draws: a handful of examples, or for a time, or a number of examples."""

import os
import time

import hypothesis
import pytest
from hypothesis import HealthCheck, given, seed, settings

HANDFUL = 6
"""So many examples of each kind are drawn where nothing is asked for, the same each time."""

ROUND = 400
"""Examples that are drawn from one seed, before another."""


def pytest_addoption(parser):
    group = parser.getgroup("fuzz")
    group.addoption("--fuzz", type=float, metavar="SECONDS", help="draw for so long, all kinds")
    group.addoption("--fuzz-examples", type=int, metavar="N", help="draw so many of each kind")
    group.addoption("--fuzz-seed", type=int, metavar="SEED", help="begin with this seed")


@pytest.fixture
def draw_and_check(request, pytestconfig):
    """A function of a strategy and a check, which draws examples and checks each."""
    seconds = pytestconfig.getoption("--fuzz", default=None)
    examples = pytestconfig.getoption("--fuzz-examples", default=None)
    first = pytestconfig.getoption("--fuzz-seed", default=None)

    def drawn(strategy, check, kinds, handful=HANDFUL):
        """Among so many kinds, which share the time."""
        if seconds is None and examples is None:
            a_round(strategy, check, handful, None)
            return
        end = float("inf")
        if seconds is not None:
            processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
            end = time.monotonic() + seconds * processes / kinds
        start = time.time_ns() % 10**9 if first is None else first
        done = 0
        while time.monotonic() < end and (examples is None or done < examples):
            size = ROUND if examples is None else min(ROUND, examples - done)
            a_round(strategy, check, size, start, end)
            done, start = done + size, start + 1

    return drawn


def a_round(strategy, check, size, start, end=float("inf")):
    """Draw so many examples from one seed; no more are begun after the end."""
    failed = []

    def one(example):
        if time.monotonic() > end and not failed:  # what failed is made smaller in peace
            return
        try:
            check(example)
        except BaseException:
            failed.append(example)
            raise

    run = settings(
        max_examples=size,
        database=None,
        deadline=None,
        derandomize=start is None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )(given(strategy)(one))
    if start is None:
        run()
        return
    try:
        seed(start)(run)()
    except BaseException as error:
        error.add_note(f"again: --fuzz-seed {start} --fuzz-examples {ROUND}")
        raise
