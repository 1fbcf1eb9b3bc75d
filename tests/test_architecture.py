"""The house: its public face, what importing it loads, its examples and its documents."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import transformist as tf
from transformist.cli import main
from transformist.cli.application import COMMANDS

ROOT = Path(__file__).parents[1]
OPTIONAL = ("torch", "onnx", "matplotlib", "transformers")
"""Libraries of extras: where one is missing, the modules that need it are left out."""


def imported(names):
    for name in names:
        try:
            yield importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in OPTIONAL:
                raise


MODULES = [*imported(each.name for each in pkgutil.walk_packages(tf.__path__, "transformist."))]


HEAVY = "torch matplotlib numba transformers onnx typer rich hypothesis safetensors"
APART = "transformist.compiler transformist.verify transformist.hosts transformist.programs"


@pytest.mark.parametrize(
    ("code", "left_out"),
    [
        ("import transformist", f"{HEAVY} numpy ml_dtypes flint"),
        ("import transformist as tf; tf.recipe('dyck-1').build()('()')", f"{HEAVY} {APART} flint"),
        ("from transformist.cli import main; main(['--help'])", "numpy rich transformist.model"),
    ],
)
def test_what_is_not_used_is_not_loaded(code, left_out):
    code += f"; import sys; print([m for m in {left_out.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_names_handed_on_have_their_types():
    """Who imports is given names by `__init__.py`, who checks types by `__init__.pyi`."""
    stub = ast.parse((ROOT / "src" / "transformist" / "__init__.pyi").read_text())
    typed = {
        name.name: getattr(importlib.import_module(node.module), name.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    listed = next(ast.literal_eval(n.value) for n in stub.body if isinstance(n, ast.Assign))
    assert listed == tf.__all__ and set(typed) == set(listed) and set(listed) < set(dir(tf))
    assert all(getattr(tf, name) is value for name, value in typed.items())
    with pytest.raises(AttributeError, match="'transformist' has no attribute 'nothing'"):
        tf.nothing  # noqa: B018


def test_a_file_of_its_name_has_each_command():
    room = ROOT / "src" / "transformist" / "cli"
    commands = {path.stem for path in room.glob("*.py") if "\ndef command(" in path.read_text()}
    assert commands == set(COMMANDS)


def test_the_help_of_a_command_begins_with_its_summary(capsys):
    for name, summary in COMMANDS.items():
        assert main([name, "--help"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert f" {summary} " in text, name


def test_the_public_surface_is_sorted_and_there():
    packages = [tf, *(m for m in MODULES if hasattr(m, "__all__"))]
    for module in packages:
        constants_first = sorted(module.__all__, key=_constants_first)
        assert list(module.__all__) == constants_first, module.__name__
        assert all(hasattr(module, name) for name in module.__all__)


def _constants_first(name):
    numbers = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    return (not name.isupper(), name[0].islower(), numbers)


def test_only_the_file_of_a_command_bears_the_name_of_a_public_function():
    commands = {f"transformist.cli.{name}" for name in COMMANDS}
    names = {
        module.__name__.rsplit(".", 1)[-1] for module in MODULES if module.__name__ not in commands
    }
    assert not names & {name for name in tf.__all__ if inspect.isfunction(getattr(tf, name))}


@pytest.mark.parametrize("module", [tf, *MODULES], ids=lambda module: module.__name__)
def test_examples_run(module):
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def shown(name):
    """The docstrings that `help` shows of a public name: its own, and those of its methods."""
    value = getattr(tf, name)
    members = inspect.getmembers(value) if inspect.isclass(value) else []
    docs = {name: value, **{f"{name}.{each}": m for each, m in members if not each.startswith("_")}}
    return {where: doc for where, each in docs.items() if (doc := inspect.getdoc(each))}


@pytest.mark.parametrize("name", tf.__all__)
def test_public_examples_run_where_a_user_types_them(name):
    """With the public names alone: `doctest.testmod` gives an example all names of its module."""
    names = {"tf": tf, **{each: getattr(tf, each) for each in tf.__all__}}
    for where, doc in shown(name).items():
        example = doctest.DocTestParser().get_doctest(doc, dict(names), where, None, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert runner.run(example).failed == 0, where


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_everything_public_is_described(module):
    assert module.__doc__
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{module.__name__}.{name}"


def test_an_init_only_hands_names_on():
    for path in (ROOT / "src").rglob("__init__.py"):
        for node in ast.parse(path.read_text()).body:
            assert isinstance(node, ast.ImportFrom | ast.Assign | ast.Expr), path


def test_the_architecture_names_every_room():
    page = (ROOT / "docs" / "architecture.md").read_text()
    for path in (ROOT / "src" / "transformist").iterdir():
        if not path.name.startswith("__") and path.suffix in ("", ".py"):
            room = path.stem if path.suffix else f"{path.name}/"
            assert f"`{room}" in page, path


def test_the_floors_on_the_page_are_those_of_the_contract():
    page = (ROOT / "docs" / "architecture.md").read_text()
    floors = re.findall(r"(?m)^ ?(\d+)  ((?:\w+ · )*\w+)", page)
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contract["contracts"][0]["layers"]
    assert [int(number) for number, _ in floors] == [*reversed(range(len(layers)))]
    assert [{*rooms.split(" · ")} for _, rooms in floors] == [
        {each.removeprefix("transformist.") for each in layer.split(" | ")} for layer in layers
    ]


def test_every_module_is_named_among_the_rooms():
    page = (ROOT / "docs" / "rooms.md").read_text()
    for path in (ROOT / "src" / "transformist").rglob("*.py"):
        if path.name != "__init__.py":
            assert f"`{path.stem}`" in page or f"`{path.name}`" in page, path


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_the_examples_run(path):
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_check_of_certificates_is_short_and_apart_from_what_finds_them():
    path = ROOT / "src" / "transformist" / "verify" / "certificate" / "confirming.py"
    text = path.read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert len(code) < 340
    for finder in ("extraction", "affine", "scores", "finding"):
        assert not re.search(rf"certificate\.{finder} |import .*\b{finder}\b", text)
