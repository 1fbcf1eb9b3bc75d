"""Time the explorer page in Chromium: python benchmarks/explorer.py.

Goals: a page loads in 2 s, takes a step in 50 ms at 60 symbols, and works at 500 symbols.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from string import ascii_letters
from typing import Any

from playwright.sync_api import Page, sync_playwright

import transformist as tf
from transformist.programs import PROGRAMS

CASES: dict[str, Callable[[], tuple[tf.Transformer, Any]]] = {
    "dyck-1, 60 symbols": lambda: (tf.recipe("dyck-1").build(max_length=64), "()" * 30),
    "dyck-k-d, 60 symbols": lambda: (tf.recipe("dyck-k-d").build(), "([])" * 15),
    "programs/sort, 60 symbols": lambda: (
        tf.compile(PROGRAMS["sort"], max_length=64),
        [4, 3, 2, 1] * 15,
    ),
    "induction-most-frequent of 32 symbols, 60 symbols": lambda: (
        tf.recipe("induction-most-frequent").build(alphabet=ascii_letters[:32]),
        ascii_letters[:30] * 2,
    ),
    "dyck-k-d, 500 symbols": lambda: (tf.recipe("dyck-k-d").build(), "([])" * 125),
    "dyck-1, 500 symbols": lambda: (tf.recipe("dyck-1").build(max_length=512), "()" * 250),
}
"""Models and inputs of the pages: four of 60 symbols, one of them as large as a page holds, and two
of 500."""

EACH_STEP = """() => {
    const buttons = [...document.querySelectorAll("#steps button")];
    return [1, 2, 3].flatMap(() => buttons.map((button) => {
        const start = performance.now();
        button.click();
        document.body.offsetHeight;  // the layout is computed, too
        return performance.now() - start;
    }));
}"""
EACH_KEY = """() => {
    const field = document.getElementById("input"), text = field.value;
    return [1, 2, 3, 4].map((k) => {
        field.value = text.slice(0, text.length - (k % 2));
        const start = performance.now();
        field.dispatchEvent(new Event("input"));
        document.body.offsetHeight;
        return performance.now() - start;
    });
}"""


def measured(page: Page, file: Path) -> str:
    """Load a page, go through its steps and type in it."""
    begun = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_function("window.explorerIsReady")
    loaded = time.perf_counter() - begun
    steps, keys = page.evaluate(EACH_STEP), page.evaluate(EACH_KEY)
    return (
        f"{file.stat().st_size / 1e6:.2f} MB; loaded in {loaded:.2f} s; a step: median "
        f"{statistics.median(steps):.0f} ms, most {max(steps):.0f} ms of {len(steps)}; a key: "
        f"median {statistics.median(keys):.0f} ms, most {max(keys):.0f} ms of {len(keys)}"
    )


def load() -> str:
    """The load of the machine, over the last minute."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def main() -> None:
    """Measure every page, with the load before and after."""
    print(f"{load()} before")
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as started:
        path = shutil.which("chromium")
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        print(f"Chromium {browser.version}")
        for name, build in CASES.items():
            model, x = build()
            file = Path(directory) / "page.html"
            tf.figures.explorer(model, x).save(file)
            page = browser.new_page()
            print(f"{name}: {measured(page, file)}", flush=True)
            page.close()
        browser.close()
    print(f"{load()} after")


if __name__ == "__main__":
    main()
