"""Judgements as JUnit XML, which the pages of a CI show."""

from __future__ import annotations

from xml.etree import ElementTree

from transformist.conformance.judgement import Judgement, Judgements
from transformist.errors import visible


def as_junit(found: Judgements, engine: str) -> bytes:
    """Return JUnit XML with a test case for each prompt and mode.

    A case with wrong tokens is a failure. A case without them of which some answers did not run is
    an error, so that no page shows it as passed. The diagnosis is a property of each mode with
    wrong tokens, and what the engine noticed one of every mode.
    """
    suites: dict[str, list[Judgement]] = {}
    for each in found.every:
        suites.setdefault(each.mode, []).append(each)
    root = ElementTree.Element("testsuites", _counts(found.every) | {"name": "conformance"})
    for mode, own in suites.items():
        name = f"{engine}.{found.family}.{mode}"
        suite = ElementTree.SubElement(root, "testsuite", {"name": name} | _counts(own))
        diagnosis = found.diagnosis if any(each.wrong for each in own) else ()
        said = [("diagnosis", str(each)) for each in diagnosis]
        said += [("note", each) for each in found.notes]
        if said:
            properties = ElementTree.SubElement(suite, "properties")
            for kind, words in said:
                entry = {"name": kind, "value": visible(words)}
                ElementTree.SubElement(properties, "property", entry)
        for each in own:
            place = {"classname": f"{name}.{each.case.instrument}", "name": each.case.id}
            _say(ElementTree.SubElement(suite, "testcase", place), each)
    ElementTree.indent(root)
    made: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return made


def _counts(own: tuple[Judgement, ...] | list[Judgement]) -> dict[str, str]:
    failures = sum(bool(each.wrong) for each in own)
    errors = sum(bool(each.not_run and not each.wrong) for each in own)
    return {"tests": str(len(own)), "failures": str(failures), "errors": str(errors)}


def _say(case: ElementTree.Element, judged: Judgement) -> None:
    if judged.wrong:
        first = judged.wrong[0]
        message = f"{len(judged.wrong)} of {judged.positions} answers are wrong: {first}"
        node = ElementTree.SubElement(case, "failure", {"message": visible(message)})
        node.text = "\n".join(visible(f"{each}: {each.meaning}") for each in judged.wrong)
    elif judged.not_run:
        message = f"{judged.not_run} of {judged.positions} answers did not run: {judged.reason}"
        ElementTree.SubElement(case, "error", {"message": visible(message)})
