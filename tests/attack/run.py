"""Try certificates on many drawn models; go on where an interrupted run ended.

python tests/attack/run.py --models 1000000 --journal FILE

The journal is a SQLite file with a row for each chunk of models that is done: what became of them,
and every false certificate. It goes with one state of the code that certifies and of the drawing,
which it names; another state needs another journal.

`record.json`, beside this file, has the totals of the chunks that are done for every kind. A run on
another machine goes on after them, if the state is the same. `--record` writes the file.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

RECORD = HERE / "record.json"

TRIES = ("drawing", "evaluations", "in_rationals", "tiny", "trying")
"""The modules beside this one that draw models and try their certificates."""

CERTIFIES = "transformist.verify.certificate.certification"
"""The module that makes a certificate; it imports all that a certificate depends on."""

CHUNK = 100
"""Models of one kind that are one piece of work."""

VERDICTS = ("refused", "open", "grade 1", "grade 2", "false", "broken")
"""The columns of the table. `open`: the certificate says that it does not hold."""


@cache
def state() -> str:
    """Return a digest of the code that makes certificates, and of `TRIES`.

    Of the library it has the modules that `CERTIFIES` imports, directly or not. Docstrings and
    comments are left out: they change no certificate.
    """
    import transformist

    source = Path(transformist.__file__).parents[1]
    found = hashlib.sha256()
    for path in (*certifying_files(source), *(HERE / f"{name}.py" for name in TRIES)):
        found.update(path.name.encode() + code_of(path.read_text("utf-8")).encode())
    return found.hexdigest()[:16]


def certifying_files(source: Path) -> list[Path]:
    """Return the files of `CERTIFIES` and of every module that it imports, directly or not."""
    found: set[Path] = set()
    left = [CERTIFIES]
    while left:
        name = left.pop()
        base = source.joinpath(*name.split("."))
        files = [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()]
        if name.startswith("transformist.") and files and files[0] not in found:
            found.add(files[0])
            left += imported(ast.parse(files[0].read_text("utf-8")))
    return sorted(found)


def imported(module: ast.Module) -> Iterator[str]:
    """Yield the names after `import`, and both M and M.name of `from M import name`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def code_of(text: str) -> str:
    """Return the syntax tree of a module as text, without its docstrings."""
    module = ast.parse(text)
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]
    return ast.dump(module)


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def done(task: tuple[str, int]) -> tuple[str, int, dict[str, int], list[str]]:
    """Try a chunk: how many models came to each verdict, and what is false or broken."""
    from trying import tried

    kind, chunk = task
    counts: Counter[str] = Counter()
    wrong = []
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        outcome = tried(kind, seed)
        counts[outcome.column] += 1
        if outcome.verdict in ("false", "broken"):
            wrong.append(outcome.what)
    return kind, chunk, dict(counts), wrong


class Journal:
    """What has been done."""

    def __init__(self, path: str) -> None:
        self.file = sqlite3.connect(path)
        self.file.execute("create table if not exists state (digest text)")
        self.file.execute(
            "create table if not exists chunks (kind text, chunk int, counts text, wrong text, "
            "primary key (kind, chunk))"
        )
        held = self.file.execute("select digest from state").fetchone()
        if held is None:
            self.file.execute("insert into state values (?)", (state(),))
            self.file.commit()
        elif held[0] != state():
            raise ValueError(
                "a journal must be of the library and the drawing as they are; "
                f"{path} is of another state; give the name of a new file"
            )

    def chunks(self) -> set[tuple[str, int]]:
        return set(self.file.execute("select kind, chunk from chunks"))

    def add(self, kind: str, chunk: int, counts: dict[str, int], wrong: list[str]) -> None:
        row = (kind, chunk, json.dumps(counts), json.dumps(wrong))
        self.file.execute("insert or replace into chunks values (?, ?, ?, ?)", row)
        self.file.commit()

    def counts_by_chunk(self) -> dict[tuple[str, int], dict[str, int]]:
        rows = self.file.execute("select kind, chunk, counts from chunks")
        return {(kind, chunk): json.loads(counts) for kind, chunk, counts in rows}

    def counts(self) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}
        for (kind, _), counts in self.counts_by_chunk().items():
            found.setdefault(kind, Counter()).update(counts)
        return found

    def wrong(self) -> list[str]:
        rows = self.file.execute(
            "select wrong from chunks where wrong != '[]' order by kind, chunk"
        )
        return [each for (wrong,) in rows for each in json.loads(wrong)]


class Record:
    """Totals of the first chunks of every kind, for one state.

    Attributes:
        chunks: how many chunks of every kind are in the totals.
        counts: what became of the models of each kind.

    """

    def __init__(self, path: Path) -> None:
        held = json.loads(path.read_text("utf-8")) if path.exists() else {}
        valid = held.get("state") == state()
        self.chunks: int = held["chunks"] if valid else 0
        self.counts = {k: Counter(c) for k, c in held["counts"].items()} if valid else {}

    def write(self, path: Path, journal: Journal, kinds: tuple[str, ...]) -> None:
        """Add the chunks of the journal that follow, as far as every kind has them."""
        done = journal.counts_by_chunk()
        counts = {kind: Counter(self.counts.get(kind, {})) for kind in kinds}
        chunks = self.chunks
        while all((kind, chunks) in done for kind in kinds):
            for kind in kinds:
                counts[kind].update(done[kind, chunks])
            chunks += 1
        written = {"state": state(), "chunks": chunks, "counts": counts}
        path.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def table(counts: dict[str, Counter[str]]) -> str:
    """A row for each kind: how many were drawn, and what became of them."""
    lines = [f"{'kind':<12} {'drawn':>9} " + " ".join(f"{each:>9}" for each in VERDICTS) + "  hold"]
    total: Counter[str] = Counter()
    for kind, each in [*sorted(counts.items()), ("all", total)]:
        drawn = sum(each.values())
        hold = each["grade 1"] + each["grade 2"] + each["false"]
        cells = " ".join(f"{each[verdict]:>9,}" for verdict in VERDICTS)
        lines.append(f"{kind:<12} {drawn:>9,} {cells} {hold / max(drawn, 1):>5.0%}")
        total.update(each if kind != "all" else {})
    return "\n".join(lines)


def main() -> int:
    from drawing import ALL

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--models", type=int, default=20_000, help="how many are drawn, of all kinds"
    )
    parser.add_argument(
        "--journal", required=True, help="a file; one that is there is gone on with"
    )
    parser.add_argument("--kinds", nargs="*", choices=ALL, default=ALL, metavar="KIND")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--record", action="store_true", help=f"write the totals to {RECORD.name} at the end"
    )
    given = parser.parse_args()
    if given.record and tuple(given.kinds) != ALL:
        parser.error("--record must come with all kinds; leave out --kinds")
    record = Record(RECORD)
    try:
        journal = Journal(given.journal)
    except (ValueError, sqlite3.Error) as error:
        parser.error(f"--journal: {error}")
    each = -(-given.models // (CHUNK * len(given.kinds)))
    tasks = [(kind, chunk) for chunk in range(record.chunks, each) for kind in given.kinds]
    left = [task for task in tasks if task not in journal.chunks()]
    begun, ready = time.monotonic(), len(tasks) - len(left)
    context = multiprocessing.get_context("spawn")
    quiet = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which keeps what is done
    with context.Pool(given.processes, signal.signal, quiet) as pool:
        try:
            for number, found in enumerate(pool.imap_unordered(done, left), 1):
                journal.add(*found)
                for what in found[3]:
                    print(f"\nfalse: {what}", flush=True)
                pace = number * CHUNK / (time.monotonic() - begun)
                rest = (len(left) - number) * CHUNK / pace
                print(
                    f"\r{(ready + number) * CHUNK:,} of {len(tasks) * CHUNK:,} models, "
                    f"{pace:.0f} a second, {rest / 60:.0f} min left ",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
        except KeyboardInterrupt:
            pool.terminate()
            print(f"\ninterrupted; go on with the journal {given.journal}", file=sys.stderr)
            return 130
        finally:
            if given.record:
                record.write(RECORD, journal, ALL)
    print(file=sys.stderr)
    counts = {kind: Counter(record.counts.get(kind, {})) for kind in given.kinds}
    for kind, more in journal.counts().items():
        counts.setdefault(kind, Counter()).update(more)
    print(table(counts))
    return 1 if journal.wrong() else 0


if __name__ == "__main__":
    raise SystemExit(main())
