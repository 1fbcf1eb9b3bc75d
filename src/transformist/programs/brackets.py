"""Programs on brackets.

>>> dyck_1("(()())"), dyck_1(")("), dyck_1("")
(True, False, True)
"""

from __future__ import annotations

from transformist.language import Accept, Booleans, Categories, Numbers, program


@program(alphabet="()")
def dyck_1(x: Categories) -> Accept:
    """Accept well nested parentheses; the empty string is accepted."""
    balance: Numbers = x.map({"(": 1, ")": -1}).prefix_mean()
    return ((balance == 0) & (balance >= 0).all_so_far()).accept()


@program(alphabet="()[]")
def shuffle_dyck_2(x: Categories) -> Accept:
    """Accept strings whose ( ) and whose [ ] are each well nested, ignoring the others."""
    balances = [
        x.map({symbol: (symbol == left) - (symbol == right) for symbol in x.alphabet}).prefix_mean()
        for left, right in ("()", "[]")
    ]
    well: list[Booleans] = [(each == 0) & (each >= 0).all_so_far() for each in balances]
    return (well[0] & well[1]).accept()


_LEVELS = ["none", "3", "2", "none", "1", "none", "none", "none"]
"""Level of a bracket, for each answer to: is it 1, is it 2, is it 3."""


@program(alphabet="()[]")
def dyck_k_d(x: Categories) -> Accept:
    """Accept well nested ( ) and [ ], at most three deep."""
    opens = x.isin("([")
    depth = opens.count("future") - (~opens).count("future")
    first, second, third = [depth + (~opens).where(1, 0) == each for each in (1, 2, 3)]
    level: Categories = first.table(second, third, values=_LEVELS)
    opened: Categories = opens.table(first, second, third, values=["none"] * 8 + _LEVELS)
    partner = level.select(opened, mask="strict-future").rightmost(x, default="none")
    closes: Booleans = partner.table(
        x,
        values={
            (left, right): right in "([" or left + right in ("()", "[]")
            for left in (*x.alphabet, "none")
            for right in x.alphabet
        },
    )
    return ((closes & (level != "none")).all_so_far() & (depth == 0)).accept(empty=True)
