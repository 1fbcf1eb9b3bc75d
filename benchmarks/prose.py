"""Measures of how the source reads: comments, docstrings, names, branches on types, cycles, size.

python benchmarks/prose.py [--json] [FOLDER]

FOLDER is the folder of a package, by default `src/transformist`. The script parses the files in it
and imports none of them. `tests/test_prose.py` has the limits.
"""

import argparse
import ast
import io
import json
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from transformist.cli.application import COMMANDS

SOURCE = Path(__file__).parents[1] / "src" / "transformist"
OPENINGS = {"what", "whether", "how", "of", "as"}
ORDERS_TO_TOOLS = ("# noqa", "# type:", "# fmt:", "#!")
LADDER = 4

NAMED_BY_RULE = {"__init__", "__main__", *COMMANDS}
"""Names that several files may have."""

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def measures(folder: Path = SOURCE) -> dict[str, object]:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = {path: len(text.splitlines()) for path, text in texts.items()}
    comments = Counter(kind for text in texts.values() for kind in comment_kinds(text))
    openings = [opening(text) for tree in trees.values() for text in docstrings(tree)]
    named = {folder.name + "." + dotted(path, folder): tree for path, tree in trees.items()}
    modules = {name.removesuffix("."): tree for name, tree in named.items()}
    packages = {name for name in modules if any(each.startswith(f"{name}.") for each in modules)}
    rooms: Counter[str] = Counter()
    for path, count in lines.items():
        parts = path.relative_to(folder).parts
        rooms[f"{parts[0]}/" if len(parts) > 1 else parts[0]] += count
    total = sum(lines.values())
    return {
        "lines": total,
        "comment_percent": percent(comments["line"], total),
        "comment_percent_with_those_after_code": percent(comments.total(), total),
        "docstrings": len(openings),
        "docstring_opening_percent": percent(sum(o in OPENINGS for o in openings), len(openings)),
        "file_names_used_twice": twice(p.stem for p in texts if p.stem not in NAMED_BY_RULE),
        "class_names_used_twice": twice(
            node.name
            for tree in trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        ),
        "isinstance_ladders": sorted(
            f"{name}.{function}" for name, tree in modules.items() for function in ladders(tree)
        ),
        "import_cycles": cycles(
            {name: set(imports(name, tree, modules, packages)) for name, tree in modules.items()}
        ),
        "lines_by_room": dict(sorted(rooms.items(), key=lambda each: -each[1])),
    }


def percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2)


def dotted(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def twice(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def comment_kinds(text: str) -> Iterator[str]:
    """`line` for each comment on a line of its own, `after code` for each of the others."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(ORDERS_TO_TOOLS):
            alone = not token.line[: token.start[1]].strip()
            yield "line" if alone else "after code"


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *DEFINITIONS)):
            text = ast.get_docstring(node)
            if text:
                yield text


def opening(docstring: str) -> str:
    return docstring.split()[0].strip("`*.,:;").lower()


def ladders(tree: ast.Module) -> Iterator[str]:
    """Functions with `LADDER` calls of isinstance or more, those of inner functions included."""
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if names.count("isinstance") < LADDER:  # most modules: their functions need no walk each
        return
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS):
            calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
            asked = [each for each in calls if isinstance(each, ast.Name)]
            if sum(each.id == "isinstance" for each in asked) >= LADDER:
                yield node.name


def imports(
    name: str, tree: ast.Module, modules: Iterable[str], packages: set[str]
) -> Iterator[str]:
    """Modules that `name` imports at its top level, for types alone included.

    Imports inside functions do not count. A package's `__init__` counts where a name is taken from
    it, not where one of its modules is.
    """
    for node in at_import(tree.body):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
            continue
        above = name.split(".")[: len(name.split(".")) - node.level + (name in packages)]
        start = [*(above if node.level else []), *(node.module.split(".") if node.module else [])]
        for each in node.names:
            inner, outer = ".".join([*start, each.name]), ".".join(start)
            yield from [found for found in (inner, outer) if found in modules][:1]


def at_import(body: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif not isinstance(node, DEFINITIONS):
            yield from at_import(ast.iter_child_nodes(node))


def cycles(imported: dict[str, set[str]]) -> list[list[str]]:
    """Sets of modules each of which leads to every other: Tarjan's strongly connected components.

    R. Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1 (1972).
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in sorted(imported[name]):
            if other not in order:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        # No module below on the stack is reachable from here, so what lies above is one component.
        if lowest[name] == order[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(component) > 1 or name in imported[name]:
                found.append(sorted(component))

    for name in sorted(imported):
        if name not in order:
            visit(name)
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=SOURCE, metavar="FOLDER")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    found = measures(options.folder)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            print(f"{label}:", *(f"  {count:6,} {room}" for room, count in value.items()), sep="\n")
        elif isinstance(value, list):
            named = [each if isinstance(each, str) else " ↔ ".join(each) for each in value]
            print(f"{label}: {len(value)}", *(f"  {each}" for each in named), sep="\n")
        else:
            print(f"{label}: {value:,}")


if __name__ == "__main__":
    main()
