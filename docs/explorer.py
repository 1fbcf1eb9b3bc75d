"""Write the screenshots of docs/explorer.md in docs/explorer/; python docs/explorer.py."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import transformist as tf

FOLDER = Path(__file__).with_name("explorer")

SIZES = {"wide": (1200, 1250), "narrow": (400, 1250)}
"""Widths and heights of the window, in pixels."""

SHOTS = {"dyck-1": 5, "dyck-k-d": 2}
"""For each guided path the stop that is shown, counted from 0."""


def page_of(name: str) -> tf.figures.explorer_page.ExplorerPage:
    """The page of a recipe."""
    claim = tf.recipe(name).claim.statement
    if name == "dyck-k-d":
        return tf.figures.explorer(tf.recipe(name).build(), name=name, claim=claim)
    model = tf.recipe(name).build(max_length=32)
    certificates = [tf.certify(model, arithmetic=each) for each in ("float64", "bfloat16")]
    return tf.figures.explorer(model, name=name, claim=claim, certificates=certificates)


def shoot(browser: Any, file: Path, name: str, size: str, scheme: str) -> None:
    """Write one screenshot."""
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(file.as_uri())
    page.get_by_role("button", name="Show me").click()
    for _ in range(SHOTS[name]):
        page.get_by_role("button", name="Go on").click()
    page.mouse.move(0, 0)
    page.screenshot(path=FOLDER / f"{name}-{size}-{scheme}.png")
    context.close()


def write() -> None:
    """Write every screenshot."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as started:
        path = shutil.which("chromium")
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name in SHOTS:
            file = Path(directory) / f"{name}.html"
            page_of(name).save(file)
            for size in SIZES:
                for scheme in ("light", "dark"):
                    shoot(browser, file, name, size, scheme)
        browser.close()


if __name__ == "__main__":
    write()
