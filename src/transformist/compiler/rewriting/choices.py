"""The choice between a value and a default, for values of each type."""

from __future__ import annotations

from typing import Any

from transformist.language.leaves import Constant
from transformist.language.node import Node
from transformist.language.pointwise import Choice, Table
from transformist.language.types import Boolean


def value_or_default(found: Node, value: Node, default: Any) -> Node:
    """The value where `found` holds, the default elsewhere."""
    otherwise = Constant((), type(value.type), default)
    if not isinstance(value.type, Boolean):
        return Choice((found, value, otherwise))
    # (found, value, default) from 000 to 111: the default where it is not found.
    rows = (False, True, False, True, False, False, True, True)
    return Table((found, value, otherwise), rows, Boolean())
