"""Try certificates on many drawn models; go on where an interrupted run ended.

python tests/attack/run.py --models 1000000 --journal FILE

The journal is a SQLite file with a row for each chunk of models that is done: what became of them,
and every false certificate. It goes with one state of the library and of the drawing, which it
names; another state needs another journal.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

CHUNK = 100
"""Models of one kind that are one piece of work."""

VERDICTS = ("refused", "open", "grade 1", "grade 2", "false", "broken")
"""The columns of the table. `open`: the certificate says that it does not hold."""


def state() -> str:
    """A digest of the library's source and of this directory."""
    import transformist

    found = hashlib.sha256()
    for root in (Path(transformist.__file__).parent, HERE):
        for path in sorted(root.rglob("*.py")):
            found.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return found.hexdigest()[:16]


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

    def counts(self) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {}
        for kind, counts in self.file.execute("select kind, counts from chunks"):
            found.setdefault(kind, Counter()).update(json.loads(counts))
        return found

    def wrong(self) -> list[str]:
        rows = self.file.execute(
            "select wrong from chunks where wrong != '[]' order by kind, chunk"
        )
        return [each for (wrong,) in rows for each in json.loads(wrong)]


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
    given = parser.parse_args()
    try:
        journal = Journal(given.journal)
    except (ValueError, sqlite3.Error) as error:
        parser.error(f"--journal: {error}")
    each = -(-given.models // (CHUNK * len(given.kinds)))
    tasks = [(kind, chunk) for chunk in range(each) for kind in given.kinds]
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
    print(file=sys.stderr)
    print(table(journal.counts()))
    return 1 if journal.wrong() else 0


if __name__ == "__main__":
    raise SystemExit(main())
