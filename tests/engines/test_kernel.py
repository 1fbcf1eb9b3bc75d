"""Kernels are compiled where nothing can be kept of it."""

import json
import subprocess
import sys

import pytest
from numba.core import caching

from transformist.engines.structured.kernel import kernel, kernel_alone


def add_up(x):
    total = 0.0
    for each in x:
        total += each
    return total


@pytest.mark.parametrize("compiled", [kernel, kernel_alone])
@pytest.mark.parametrize("kept", [True, False])
def test_without_a_directory_for_the_code(compiled, kept, monkeypatch):
    if not kept:
        monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    own = compiled(add_up)
    assert own((0.5, 0.25)) == 0.75
    assert own.targetoptions["nogil"] is (compiled is kernel)
    assert (own.stats.cache_path is not None) is kept


NOWHERE = """
import sys
from numba.core import caching
caching.CacheImpl._locator_classes = []
from transformist.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_the_command_line_without_a_directory_for_the_code():
    command = [sys.executable, "-c", NOWHERE, "run", "dyck-1", "()", "--engine", "structured"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answer"] is True
