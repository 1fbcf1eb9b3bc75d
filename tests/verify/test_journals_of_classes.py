"""Journals of references that are objects: whatever their answers depend on is told apart."""

import pytest

import transformist as tf
from command_line import run
from transformist.errors import InvalidValue
from transformist.user_files import load_function
from transformist.verify.runs.fingerprint import fingerprint

DYCK = tf.recipe("dyck-1").build(max_length=8)

BALANCED = """
from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Judge:
    depth: int
    def __post_init__(self): self.balanced = {}
    def __call__(self, x): return x in self.balanced
f = Judge(1)
"""

PAIRS = {
    "attribute of a dataclass that is no field": (
        BALANCED.format("set()"),
        BALANCED.format("{''}"),
    ),
    "class of a list": (
        "class C(list):\n def __call__(self, x): return x in self\nf = C(['a'])",
        "class C(list):\n def __call__(self, x): return x not in self\nf = C(['a'])",
    ),
    "class of a named tuple": (
        "import typing\nclass C(typing.NamedTuple):\n y: int\n"
        " def __call__(self, x): return x == ''\nf = C(1)",
        "import typing\nclass C(typing.NamedTuple):\n y: int\n def __call__(self, x): return True"
        "\nf = C(1)",
    ),
    "slot that a pickle leaves out": tuple(
        "class C:\n __slots__ = ('y',)\n def __getstate__(self): return {}\n"
        f" def __call__(self, x): return self.y\nf = C(); f.y = {y}"
        for y in (True, False)
    ),
    "metaclass": tuple(
        f"class M(type):\n def __call__(self, x): return {y}\nclass C(metaclass=M): pass\n"
        "def f(x): return C(x)"
        for y in (True, False)
    ),
    "setter": tuple(
        f"class C:\n def put(self, x): self.y = x == {y!r}\n z = property(None, put)\n"
        " def __call__(self, x):\n  self.z = x\n  return self.y\nf = C()"
        for y in ("", "a")
    ),
    "starred parameter": ("def f(*x): return len(x) == 1", "def f(x): return len(x) == 1"),
    "keyword": ("def f(x, y=1, z=2): return y", "def f(x, *, y=1, z=2): return y"),
    "global by its name": tuple(f"y = {y}\ndef f(x): return globals()['y']" for y in (1, 2)),
    "attribute of a module made in the file": tuple(
        f"import types\nm = types.ModuleType('m')\nm.y = {y}\ndef f(x): return m.y" for y in (1, 2)
    ),
    "attribute of a cached function": tuple(
        f"import functools\n@functools.cache\ndef f(x): return f.y\nf.y = {y}" for y in (1, 2)
    ),
    "globals of a function that takes another's name": tuple(
        f"import functools, textwrap\ny = {y}\n@functools.wraps(textwrap.dedent)\n"
        "def f(x): return y"
        for y in (1, 2)
    ),
}
for kind, value in {"str": "'a'", "int": "1", "list": "[]", "set": "{1}", "tuple": "()"}.items():
    PAIRS[f"attribute of a {kind}"] = tuple(
        f"class C({kind}):\n def __call__(self, x): return self.y\nf = C({value}); f.y = {y}"
        for y in (True, False)
    )


def loaded(tmp_path, source):
    file = tmp_path / "refs.py"
    file.write_text(source)
    return load_function(f"{file}:f")


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_references_that_differ_have_other_fingerprints(tmp_path, pair):
    one, same, other = (fingerprint(loaded(tmp_path, each)) for each in (pair[0], *pair))
    assert one == same != other


@pytest.mark.parametrize(
    "kind", ["attribute of a dataclass that is no field", "class of a named tuple"]
)
def test_a_journal_of_another_object_is_refused(tmp_path, kind):
    right, wrong = PAIRS[kind]
    if kind.startswith("attribute"):
        right, wrong = wrong, right
    journal = tmp_path / "journal"
    assert tf.check(DYCK, loaded(tmp_path, right), 1, journal=journal)
    with pytest.raises(InvalidValue, match="same reference"):
        tf.check(DYCK, loaded(tmp_path, wrong), 1, journal=journal)


def test_members_of_a_set_have_no_order(tmp_path):
    source = "class C(set):\n def __call__(self, x): return x in self\nf = C({!r})"
    found = {
        fingerprint(loaded(tmp_path, source.format(each))) for each in ("abcdefgh", "hgfedcba")
    }
    assert len(found) == 1


def test_a_module_whose_attribute_was_changed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "settings_of_a_test.py").write_text("limit = 1\n")
    source = "import settings_of_a_test as s\ns.limit = {}\ndef f(x): return len(x) < s.limit"
    found = [fingerprint(loaded(tmp_path, source.format(each))) for each in (1, 2)]
    assert found[0] != found[1]


def test_a_file_with_a_dataclass_is_a_reference(tmp_path, capsys):
    """Its annotations are not texts unless it says so itself; its module is known as it runs."""
    typed = "from dataclasses import dataclass, fields\n@dataclass\nclass C:\n y: int = 1\n"
    typed += " def __call__(self, x): return fields(C)[0].type is int and x == ''\nf = C()"
    assert loaded(tmp_path, typed)("")
    for future in "", "from __future__ import annotations\n":
        (tmp_path / "refs.py").write_text(
            f"{future}from typing import ClassVar\nimport transformist as tf\n"
            "from dataclasses import dataclass\n@dataclass\nclass C:\n y: ClassVar[str] = ''\n"
            " def __call__(self, x): return x == self.y\nf = C()\n"
            "@tf.program(alphabet='()')\ndef p(x):\n    return (x == ')').all_so_far().accept()\n"
        )
        line = ["check", "dyck-1", "--set", "max_length=8", "--max-length", "1", "--against"]
        assert run(capsys, *line, f"{tmp_path}/refs.py:f", "--jobs", "2")[0] == 0
        assert run(capsys, "show", f"{tmp_path}/refs.py:p")[0] == 0
