"""A browser, and the pages of the explorer in it."""

import shutil

import pytest

import transformist as tf


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium, tmp_path):
    """A function that opens the page of a model; no page may complain or fetch anything."""
    problems, contexts = [], []

    def open_page(
        model, x=None, name="Transformer", before="", certificates=(), claim="", **options
    ):
        file = tmp_path / f"page{len(contexts)}.html"
        tf.figures.explorer(model, x, name=name, claim=claim, certificates=certificates).save(file)
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url))
        if before:
            page.add_init_script(before)
        page.goto(file.as_uri())
        problems.remove(file.as_uri())
        return page

    yield open_page
    for each in contexts:
        each.close()
    assert problems == []
