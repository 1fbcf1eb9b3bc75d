"""The page of sizes says what is compiled today."""

import compiled as page


def test_the_page_is_made_of_the_programs():
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.page(), "run python docs/compiled.py"


def test_what_is_recorded_elsewhere_is_said_to_be():
    _, _, recorded = page.PAGE.read_text("utf-8").partition("## Recorded elsewhere")
    assert "not measured" in recorded and "tracr" in recorded
    assert "tracr" not in page.HEAD
