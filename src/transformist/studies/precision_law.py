"""Study precision-law: lengths that formats reach, against their bits of precision."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import transformist as tf
from transformist.studies import length_search
from transformist.studies.experiment import Chart, Claimed, Row, Study, select
from transformist.studies.length_search import CERTIFIED, FAILING, FOUND_LAW, LAW
from transformist.studies.short_formats import BITS, FIXED, NAMED, OWN, WIDE

QUICK_PROGRAMS = "dyck-1", "reverse", "majority"
LONGEST, QUICK_LONGEST = 2**13, 2**9

SHORT = {WIDE: "float64 sums", OWN: "p-bit sums"}
"""The kinds of formats that the figure and the summary have, with their names in the figure."""


def _cases(is_quick: bool) -> Sequence[Row]:
    most = {WIDE: 4, OWN: 4, FIXED: 4, NAMED: 1}
    formats = {kind: list(bits[: most[kind]] if is_quick else bits) for kind, bits in BITS.items()}
    return [
        {"program": name, "formats": formats, "N to": QUICK_LONGEST if is_quick else LONGEST}
        for name in (QUICK_PROGRAMS if is_quick else tf.programs.PROGRAMS)
    ]


def _are_consistent(row: Row) -> bool:
    """True if no certified length fails, and all are among those tried."""
    pairs = zip(row[CERTIFIED] or (), row[FAILING], strict=False)
    return all(n <= row["N to"] and (first is None or n < first) for n, first in pairs)


def _rises(row: Row) -> bool:
    """True if the first failing N never falls with more bits, where a kind has one range."""
    found = [n for n in row[FAILING] if n is not None]
    return row["formats"] == NAMED or all(one <= other for one, other in pairwise(found))


def _fits(row: Row) -> bool:
    lengths = {LAW: row[CERTIFIED] or (), FOUND_LAW: row[FAILING]}
    is_named = row["formats"] == NAMED
    return all(
        row[law] == (None if is_named else length_search.exponent(row, lengths[law]))
        for law in lengths
    )


NEAR = {
    ("dyck-1", WIDE): (1, 1),
    ("fraction-of-previous", WIDE): (1, 1),
    ("reverse", WIDE): (1 / 2, 1 / 2),
    ("dyck-1", OWN): (1 / 2, 7 / 8),
    ("fraction-of-previous", OWN): (1 / 2, 1 / 2),
    ("reverse", OWN): (1 / 2, 1 / 2),
    ("dyck-1", FIXED): (None, 1),
}
"""Exponents certified and found, within 1/10, where there are enough lengths."""


def _is_near(row: Row) -> bool:
    wanted = NEAR.get((row["program"], row["formats"]), (None, None))
    pairs = zip((row[LAW], row[FOUND_LAW]), wanted, strict=True)
    return all(None in (e, w) or abs(e - w) < 0.1 for e, w in pairs)


def _never(rows: Sequence[Row], kind: str) -> str:
    found = [row["program"] for row in select(rows, formats=kind) if not any(row[FAILING])]
    return ", ".join(found) or "none"


def _curves(rows: Sequence[Row]) -> dict[str, list[tuple[int, int]]]:
    return {
        f"{program}, {SHORT[kind]}, {ended}": [
            (p, n) for p, n in zip(row["bits"], row[column], strict=True) if n
        ]
        for program in QUICK_PROGRAMS[:2]
        for kind in SHORT
        for row in select(rows, program=program, formats=kind)
        for ended, column in (("certified", CERTIFIED), ("fails", FAILING))
    }


PRECISION_LAW = Study(
    name="precision-law",
    question="How do the lengths that a format reaches grow with its bits of precision, by "
    "certificates and as found by running, and which margin ends each?",
    method="Each worked program is compiled for N with the margins of float64, certified and run. "
    "N grows by octaves until a certificate is refused or an answer differs from the program's, "
    "then by quarters of an octave. Strings have two symbols in turn or in blocks, or are drawn: "
    "up to 117 for each N up to 128, twelve beyond: first those that failed at the largest N so "
    "far, in any format. Formats of p bits have the range of float64, and sum in float64 or round "
    "each partial sum to p bits. Fixed point of b bits ends at 2^b, has the resolution 2^−b and no "
    "certificate. Named formats are bfloat16, float16 and float32. "
    "Certificates, and runs in float32 (structured engine), go to N = 8192, other runs to 1024. "
    "Named formats apart, a format is not run if one with fewer bits did not fail. The exponent e "
    "of N ~ 2^(e p) is fitted to three lengths or more, from 4 on and below the largest tried.",
    cases=_cases,
    rows=length_search.reached,
    claims=(
        Claimed(
            "No certified length was found to fail.",
            lambda rows: all(map(_are_consistent, rows)),
        ),
        Claimed(
            "With more bits no format fails at a smaller N, named formats apart.",
            lambda rows: all(map(_rises, rows)),
        ),
        Claimed("Each exponent is the fit to its lengths.", lambda rows: all(map(_fits, rows))),
        Claimed(
            "Exponents certified and found, within 1/10, where there are three lengths: with sums "
            "in float64, 1 and 1 for dyck-1 and fraction-of-previous, 1/2 and 1/2 for reverse; "
            "with sums in the format, 1/2 and 7/8 for dyck-1, 1/2 and 1/2 for the others; in fixed "
            "point, 1 found for dyck-1.",
            lambda rows: all(map(_is_near, rows)),
        ),
        Claimed(
            "No string was found on which majority fails with sums in float64, or in a named "
            "format.",
            lambda rows: (
                not any(
                    row["formats"] in (WIDE, NAMED) and any(row[FAILING])
                    for row in select(rows, program="majority")
                )
            ),
        ),
    ),
    chart=lambda rows: Chart(x="bits of precision", y="N", curves=_curves(rows), logarithmic="y"),
    seed=0,
    summary=lambda rows: length_search.laws(rows, SHORT),
    answer=lambda rows: (
        "The length that p bits reach grows about as 2^p (one more bit doubles it) or as 2^(p/2) "
        "(two more bits do), in most programs. A mean over n positions must tell apart numbers "
        "that differ by 1/n, which p bits do to n ~ 2^p. A lookup by position must tell apart "
        "scores of size n² that differ by 1, which p bits do to n ~ 2^(p/2). Where sums round in "
        "the format, certificates allow for n roundings in a margin of 1/n, so for dyck-1 and "
        "fraction-of-previous they reach 2^(p/2); the latter fails there, dyck-1 fails later.\n\n"
        "The table has the exponents e of N ~ 2^(e p), as certified and as found by running. "
        "Programs for which no failing N was found here: with sums in float64 "
        f"{_never(rows, WIDE)}; with sums in the format {_never(rows, OWN)}; in named formats "
        f"{_never(rows, NAMED)}. The search of [certificates.md](../certificates.md) tries other "
        "strings and finds more. The margins that end certificates are in the rows below, from few "
        "bits to many."
    ),
)
