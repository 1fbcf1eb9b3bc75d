"""From MODEL to a model: a recipe, a packaged program, a program in a file, or a saved file.

The rooms of programs and of saved files are imported when MODEL names one of these: a recipe needs
neither the compiler nor the file format.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from transformist.catalogue import recipe as find_recipe
from transformist.catalogue import recipes
from transformist.claims import Settings
from transformist.errors import UnknownName
from transformist.named.named_model import NamedModel
from transformist.named.named_recipe import NamedRecipe

if TYPE_CHECKING:
    from transformist.named.named_program import NamedProgram

SUFFIX = ".safetensors"
"""The ending that marks MODEL as a file, also where there is none."""


def find_model(given: str, settings: Settings) -> NamedModel:
    """The model that MODEL names; where a recipe and a file have one name, the recipe.

    Args:
        given: MODEL.
        settings: the pairs of `--set`.

    Raises:
        UnknownName: where there is none, with what MODEL can be.
        TransformistError: for a file that cannot be read.

    Example:
        >>> find_model("min", {}).takes_strings, find_model("programs/dyck-1", {}).takes_strings
        (False, True)

    """
    names = [each.name for each in recipes()]
    if given in names:
        return NamedRecipe(given, settings, find_recipe(given))
    from transformist.programs import PROGRAMS
    from transformist.user_files import PACKAGED

    is_packaged = given.startswith(PACKAGED) and given.removeprefix(PACKAGED) in PROGRAMS
    if not is_packaged and not given.endswith(".py") and _is_there(given):
        from transformist.named.named_file import saved_model

        return saved_model(given, settings)
    if is_packaged or given.endswith(".py") or given.rpartition(":")[0].endswith(".py"):
        return find_program(given, settings)
    known = [*names, *(f"{PACKAGED}{name}" for name in PROGRAMS)]
    if given.endswith(SUFFIX):
        known = []
    packaged = f"{PACKAGED}{given}"
    near = difflib.get_close_matches(given, known, n=3, cutoff=0.5)
    near = [packaged] if packaged in known else near
    raise UnknownName(
        "MODEL must be a recipe's name, a packaged program (programs/NAME), a program in a file "
        "(FILE.py:NAME), or a saved file",
        received=f"{given!r}, which names no recipe, program or file",
        remedy=f"did you mean {' or '.join(near)}?"
        if near
        else "transformist list has the names"
        if known
        else f"there is no file {given}: check the path",
    )


def find_program(given: str, settings: Settings) -> NamedProgram:
    """The program that programs/NAME or FILE.py:NAME names.

    Raises:
        TransformistError: as `load_program`.

    """
    from transformist.named.named_program import NamedProgram
    from transformist.user_files import load_program

    return NamedProgram(given, settings, load_program(given))


def _is_there(given: str) -> bool:
    try:
        return bool(given) and Path(given).exists()
    except (OSError, ValueError):
        return False
