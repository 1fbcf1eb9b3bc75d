"""Programs on brackets.

>>> dyck_1("(()())"), dyck_1(")("), dyck_1("")
(True, False, True)
"""

from __future__ import annotations

from transformist.language import Accept, Categories, Numbers, program


@program(alphabet="()")
def dyck_1(x: Categories) -> Accept:
    """Whether the parentheses are well nested; the empty string is."""
    balance: Numbers = x.map({"(": 1, ")": -1}).prefix_mean()
    return ((balance == 0) & (balance >= 0).all_so_far()).accept()
