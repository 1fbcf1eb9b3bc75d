"""What a quick run (`-m "not slow"`) does less of; the whole suite leaves nothing out."""

import gc
import os
import signal
from collections import Counter, defaultdict
from pathlib import Path

import hypothesis
import pytest

# Beside other workers each computes with one thread: threads that outnumber processors wait for
# each other. Libraries of linear algebra read this when they are imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from transformist.programs import PROGRAMS
from transformist.report import recipe_sheet
from transformist.verify import function_claims, sequence_claims, string_claims

hypothesis.settings.register_profile("quick", max_examples=25)

QUICK = ("dyck-1", "majority", "parity", "reverse", "fraction-of-previous", "induction-most-recent")
"""The worked programs of a quick run: means, a lookup, a selection, and each kind of answer. The
golden weights are those of all."""

LEFT_OUT = {*PROGRAMS} - {*QUICK} | {"float16", "float8_e4m3", "float8_e5m2"}
"""Programs and formats of which a quick run has others like them: bfloat16 for the narrow ones."""

LONG = Path(__file__).parent / "long.txt"
"""Cases that took more than three hundredths of a second on some machine; a quick run leaves them
out.

A test is left out whole, without brackets, if a case takes more than a second: such a case makes
what the others share, which the next one would make if this one alone were left out. To write the
file anew, in a quarter of an hour:

pytest -m "not slow" --write-long
"""

SECONDS, WHOLE = 0.03, 1.0

SHARING = tuple(
    f"tests/conformance/test_{name}.py"
    for name in ("by_hand", "conformance_suite", "gguf_file", "quantized_weights")
)
"""Files whose tests share checkpoints, which take seconds to write. A quick run leaves them out."""

KEPT = (
    "tests/catalogue/test_claims.py::test_the_claim_holds_on_fewer_cases",
    "tests/programs/test_golden.py::test_the_weights_are_those_of_the_golden_file",
    "tests/compiler/test_drawn_programs.py::test_drawn_programs_are_refused_or_right",
    "tests/test_architecture.py",
    "tests/test_documents.py",
    "tests/test_prose.py::test_no_measure_is_worse_than_its_limit",
)
"""Tests that stay in a quick run, however long they take."""

# What runs in the background of a script ignores Ctrl-C, and so would all that it starts; tests
# that press Ctrl-C start commands as a terminal does.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--write-long", action="store_true", help="write tests/long.txt")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    # Processor time, which other work on the machine changes less; that of ended processes as well.
    begun = sum(os.times()[:4])
    result = yield
    item.stash[SPENT] = sum(os.times()[:4]) - begun
    return result


SPENT = pytest.StashKey[float]()


def pytest_sessionfinish(session):
    if session.config.option.write_long:
        spent = {each.nodeid: each.stash.get(SPENT, 0) for each in session.items}
        whole = {function(each) for each, seconds in spent.items() if seconds > WHOLE}
        long = {each for each, seconds in spent.items() if seconds > SECONDS}
        listed = whole | {each for each in long if function(each) not in whole}
        kept = {each for each in listed if each.startswith(KEPT)}
        LONG.write_text("".join(f"{each}\n" for each in sorted(listed - kept)), encoding="utf-8")


def function(nodeid):
    """A test, without the case."""
    return nodeid.partition("[")[0]


def pytest_collection_finish():
    # The tests themselves stay to the end: a search for garbage need not walk through them.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each worker a run of neighbours, which share what they compile; an idle one steals.

    The default deals out small batches, so that every worker compiles the models of every file.
    """
    if config.option.dist != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


def pytest_configure(config):
    if config.option.markexpr == "not slow":
        hypothesis.settings.load_profile("quick")


def pytest_generate_tests(metafunc):
    """A test marked `trials(few, many)` gets `trials`: few in a quick run, many in any other."""
    for mark in metafunc.definition.iter_markers("trials"):
        few, many = mark.args
        metafunc.parametrize("trials", [few, pytest.param(many, marks=pytest.mark.slow)])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    mark_slow(items)
    if not config.option.write_long:
        long = set(LONG.read_text(encoding="utf-8").splitlines())
        for item in items:
            if {item.nodeid, function(item.nodeid)} & long or item.nodeid.startswith(SHARING):
                item.add_marker(pytest.mark.slow)
    if config.option.markexpr != "not slow":
        repeated = few_among_many(items)
        items[:] = [item for item in items if item not in repeated]
        config.hook.pytest_deselected(items=list(repeated))


def few_among_many(items):
    """Return the short forms of tests marked `trials` whose long forms run as well.

    The first draws of a long form are those of the short one.
    """
    drawing = [item for item in items if item.get_closest_marker("trials")]
    long = {
        function(item.nodeid)
        for item in drawing
        if item.callspec.params["trials"] == item.get_closest_marker("trials").args[1]
    }
    return {
        item
        for item in drawing
        if function(item.nodeid) in long
        and item.callspec.params["trials"] == item.get_closest_marker("trials").args[0]
    }


def mark_slow(items):
    """Mark cases of a test as slow, beside those marked so.

    Those on what is `LEFT_OUT`, if there are others; and of crossed `parametrize` marks what is
    left when each row of each mark has been in a case.
    """
    tests = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and item.get_closest_marker("slow") is None:
            tests[function(item.nodeid)].append(item)
    for cases in tests.values():
        quick = each_row_once([case for case in cases if not is_left_out(case)] or cases)
        for case in cases:
            if case not in quick:
                case.add_marker(pytest.mark.slow)


def is_left_out(case):
    return any(isinstance(each, str) and each in LEFT_OUT for each in case.callspec.params.values())


def each_row_once(cases):
    """Cases that have each row of each mark, chosen so that rows recur as evenly as can be."""
    left, chosen, uses = {case: rows(case) for case in cases}, [], Counter()
    if all(len(each) == 1 for each in left.values()):  # one mark: the first case of each row
        return [*{row: case for case, (row,) in reversed(left.items())}.values()]
    while left:
        best = max(left, key=lambda case: worth(left[case], uses))
        if all(uses[row] for row in left[best]):
            break
        uses.update(left.pop(best))
        chosen.append(best)
    return chosen


def worth(rows, uses):
    """How many rows are new, and how seldom the others were."""
    return sum(not uses[row] for row in rows), -sum(uses[row] for row in rows)


def rows(case):
    """The row of each mark: its names, and the objects they have for values, equal or not."""
    params, marks = case.callspec.params, case.iter_markers("parametrize")
    together = [mark.args[0] for mark in marks]
    together = [
        each.replace(",", " ").split() if isinstance(each, str) else each for each in together
    ]
    together += [[name] for name in params if not any(name in each for each in together)]
    return [(*names, *(id(params[name]) for name in names)) for names in together]


@pytest.fixture
def short(monkeypatch):
    """Fewer cases, shorter lists and strings: the quick side of what a slow test covers."""
    monkeypatch.setattr(function_claims, "CASES", 12)
    monkeypatch.setattr(sequence_claims, "LENGTHS", (1, 2, 5))
    monkeypatch.setattr(sequence_claims, "FEW", (2,))
    monkeypatch.setattr(sequence_claims, "LISTS", 2)
    monkeypatch.setattr(string_claims, "STRINGS", 2**3)
    monkeypatch.setattr(string_claims, "LONGEST", 8)
    monkeypatch.setattr(string_claims, "LONGEST_IN", {"exact": 6, "interval": 4})
    monkeypatch.setattr(string_claims, "DRAWN", 1)
    monkeypatch.setattr(recipe_sheet, "SHORT_WORK", 2**12)
