"""A reference for Dyck-1: cancel adjacent pairs until none is left.

transformist check dyck-1 --against examples/balanced.py:balanced --max-length 12
"""


def balanced(x: str) -> bool:
    """Whether the parentheses of x are well nested."""
    while "()" in x:
        x = x.replace("()", "")
    return x == ""
