"""The folder of a study: rows of finished cases, and at the end the page, figure and facts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from transformist import __version__
from transformist.errors import InvalidValue
from transformist.studies.experiment import Row, Study

ROWS, FACTS = "rows.jsonl", "study.json"

PART = "rows.jsonl.part"
"""The rows while they are written anew; a run that is killed then leaves it beside the old rows."""


class StudyFolder:
    """A folder that one study writes to.

    `rows.jsonl` begins with the study, the version and whether the run is quick; each further line
    has a finished case and its rows. So a run that was interrupted goes on.

    Args:
        path: the folder, which is made if it is not there.
        study: the study.
        is_quick: true if the quick cases are run.
        force: true to replace what an earlier study wrote there.

    Raises:
        InvalidValue: for a file, or for a folder that holds anything but an interrupted run of the
            same study, unless `force` is given.

    """

    def __init__(self, path: Path, study: Study, is_quick: bool, force: bool = False) -> None:
        self.path = path
        self._study = study
        self._header = {"study": study.name, "version": __version__, "quick": is_quick}
        self._found: dict[str, Sequence[Row]] = {}
        if path.exists() and not path.is_dir():
            raise self._refused(f"the file {path}")
        path.mkdir(parents=True, exist_ok=True)
        if force:
            for name in self._names:
                (path / name).unlink(missing_ok=True)
        elif any(each.name != PART for each in path.iterdir()) and not self._read():
            raise self._refused(
                f"the folder {path}, which holds other files, or another or a finished run"
            )
        # The file is written anew, so that a line that was cut off does not stay in front of the
        # next case. It is replaced in one step: a run killed here leaves the old rows or the new.
        lines = [self._header]
        lines += [{"case": json.loads(case), "rows": rows} for case, rows in self._found.items()]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (path / PART).write_text(text, "utf-8")
        (path / PART).replace(path / ROWS)

    @property
    def _names(self) -> tuple[str, ...]:
        return ROWS, FACTS, f"{self._study.name}.md", f"{self._study.name}.svg"

    def _refused(self, received: str) -> InvalidValue:
        return InvalidValue(
            "the output folder must be new, empty, or that of the same study interrupted",
            received=received,
            where="study",
            remedy="choose another folder, or give --force to replace the files of a study in it",
        )

    def _read(self) -> bool:
        """Read the finished cases; False where the folder is not that of this run, interrupted."""
        # The facts are written last: where they are, the study is finished, and its files are kept.
        rows = self.path / ROWS
        if not rows.is_file() or (self.path / FACTS).exists():
            return False
        read = []
        for line in rows.read_text("utf-8", errors="replace").splitlines():
            try:
                read.append(json.loads(line))
            except ValueError:  # the line that was being written when the run was killed
                break
        if not read or read[0] != self._header:
            return False
        self._found = {json.dumps(each["case"]): each["rows"] for each in read[1:]}
        return True

    def finished(self, case: Row) -> Sequence[Row] | None:
        """Return the rows of a case; `None` if it is not finished."""
        return self._found.get(json.dumps(case))

    def keep(self, case: Row, rows: Sequence[Row]) -> None:
        """Add a finished case to the file."""
        with (self.path / ROWS).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps({'case': case, 'rows': rows})}\n")

    def write(self, page: str, facts: Row, figure: bytes | None = None) -> list[Path]:
        """Write the page, the figure and the facts of the finished study, and return its files."""
        (self.path / self._names[2]).write_text(page, "utf-8")
        if figure is not None:
            (self.path / self._names[3]).write_bytes(figure)
        # The facts come last, since they tell a later run that all files are there.
        (self.path / FACTS).write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
        return [self.path / name for name in self._names[: 3 if figure is None else 4]]
