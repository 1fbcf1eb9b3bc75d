"""What does not fit is refused: the invariant, what came, the line, what to write instead."""

import math
import textwrap
from fractions import Fraction

import pytest

import transformist as tf
from transformist.language.across import Mean
from transformist.language.selection import Select

NODES = {"Mean": Mean, "Select": Select}
HEAD = """\
import transformist as tf

@tf.program(alphabet="()")
def dyck(x):
    step = x.map({"(": 1, ")": -1})
    balance = step.prefix_mean()
    opens = x == "("
"""


@pytest.fixture
def refused(tmp_path):
    """The message for a body after `HEAD`, whose first line is line 8."""

    def message(body):
        path = tmp_path / "dyck.py"
        source = HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
        path.write_text(source)
        with pytest.raises(tf.TransformistError) as error:
            exec(compile(source, str(path), "exec"), dict(NODES, __name__="user"))
        return str(error.value)

    return message


TRUTH = "a sequence has a value at each position, not one truth value; received "
WHERE = "write b.where(x, y), which is x where b holds and y elsewhere"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "return (balance == 0 and (balance >= 0).all_so_far()).accept()",
            "dyck.py, line 8: balance == 0 and (balance >= 0).all_so_far(): "
            f"{TRUTH}and; write & for and, each side in parentheses",
        ),
        (
            'return x.select(x, "future").any().accept()',
            'dyck.py, line 8: x.select(x, "future"): select must be called as '
            "select(keys, *, mask='none', relation='=='); received too many positional arguments; "
            "give these arguments, mask=… and relation=… by name",
        ),
        (
            "return opens.where(1).tag()",
            "dyck.py, line 8: opens.where(1): where must be called as where(x, y); received a call "
            "without a required argument: 'y'; give these arguments",
        ),
        (
            "return x.table(opens, mask=3).tag()",
            "dyck.py, line 8: x.table(opens, mask=3): table must be called as "
            "table(*others, values); received a call without a required argument: "
            "'values'; give these arguments, values=… by name",
        ),
        (
            "return x.first(x).tag()",
            "dyck.py, line 8: x.first(x): first must be called as "
            "first(*, default=…); received too many positional arguments; "
            "give these arguments, default=… by name",
        ),
        (
            'return opens.any(["future"]).accept()',
            'dyck.py, line 8: opens.any(["future"]): a mask must be one of none, future, '
            "strict-future, past, strict-past; received ['future']; write future for the positions "
            "up to here, strict-future for those before",
        ),
        (
            "return (opens @ opens).accept()",
            "dyck.py, line 8: opens @ opens: @ is not defined on a Boolean; received opens, a "
            "Boolean with opens, a Boolean; a Boolean has & | ^ ~ == != and * with a number; "
            "b.where(1, 0) makes a number of it",
        ),
        (
            "return (opens or balance == 0).accept()",
            "dyck.py, line 8: opens or balance == 0: "
            f"{TRUTH}or; write | for or, each side in parentheses",
        ),
        (
            "return (not opens).accept()",
            f"dyck.py, line 8: not opens: {TRUTH}not; write ~ for not",
        ),
        ("if opens:\n    step = step + 1", f"dyck.py, line 8: opens: {TRUTH}if; {WHERE}"),
        ("if not opens:\n    pass", f"dyck.py, line 8: not opens: {TRUTH}not; write ~ for not"),
        (
            "if opens and step > 0:\n    pass",
            f"dyck.py, line 8: opens and step > 0: {TRUTH}and; "
            "write & for and, each side in parentheses",
        ),
        ("y = 1 if balance > 0 else 0", f"dyck.py, line 8: balance > 0: {TRUTH}if; {WHERE}"),
        (
            "y = [k for k in (1, 2)\n     if balance > k]",
            f"dyck.py, line 9: balance > k: {TRUTH}if; {WHERE}",
        ),
        (
            "return (0 <= balance < 1).accept()",
            f"dyck.py, line 8: 0 <= balance < 1: {TRUTH}a chained comparison; "
            "write (a < b) & (b < c) for a < b < c",
        ),
        ("y = x if opens else x", f"dyck.py, line 8: opens: {TRUTH}if; {WHERE}"),
        (
            "match x:\n    case '(':\n        pass",
            f"dyck.py, line 9: '(': {TRUTH}match; write x.map(f) for a value of each case",
        ),
        (
            "while balance > 0:\n    balance = balance - 1",
            f"dyck.py, line 8: balance > 0: {TRUTH}while; "
            "write prefix_mean, all_so_far or another operation across positions",
        ),
        (
            "assert opens",
            f"dyck.py, line 8: opens: {TRUTH}assert; "
            "assert something about the program's answers, outside of it",
        ),
        (
            "return bool(opens)",
            f"dyck.py, line 8: bool(opens): {TRUTH}bool(), and, or, not, if or while; "
            "write & | ~ for and, or, not; and for if b.where(x, y), which is x where b holds "
            "and y elsewhere",
        ),
        (
            "y = max(balance, 0)",
            f"dyck.py, line 8: max(balance, 0): {TRUTH}Python's own max; "
            "write x.max(y) for max(x, y), x a number",
        ),
        (
            "y = min(0, balance)",
            f"dyck.py, line 8: min(0, balance): {TRUTH}Python's own min; "
            "write x.min(y) for min(x, y), x a number",
        ),
    ],
)
def test_python_s_own_control_flow(refused, body, message):
    assert refused(body) == message


STANDS = "a sequence stands for every input, and"
LOOP = "write an operation across positions, such as prefix_mean, any, all_so_far or predecessor"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for t in x: pass", f"{STANDS} a loop over its positions is "
         f"not defined on it; received x, a category; {LOOP}"),
        ("sum(balance)", f"a loop over its positions is not defined on it; "
         f"received balance, a number; {LOOP}"),
        ("x[0]", f"line 8: x[0]: {STANDS} an index is not defined on it; received x, a category; "
         "write x.lookup(i, default=…) for the value at position i, from 1"),
        ("len(x)", 'line 8: len(x): a sequence stands for every input, and len is not defined on '
         'it; received x, a category; write x.position("n") for the length'),
        ("float(balance)", "float is not defined on it; received balance, a number; "
         "it is exact as it is: leave float out"),
        ("int(balance)", "int is not defined on it; received balance, a number"),
        ("range(balance)", "use as an index or in a range is not defined on it; received balance, "
         "a number; write v.map(f) with a function f of each value that it can have"),
        ("'ab'[balance]", "use as an index or in a range is not defined on it"),
        ("import math; math.sqrt(balance)", "float is not defined on it; received balance, a "
         "number; it is exact as it is: leave float out; write v.map(f) for a function f of its "
         "values"),
        ("divmod(balance, 2)", "divmod is not defined on a number; received balance, a number"),
        ("{'(': 1}[x]", "line 8: {'(': 1}[x]: a key of a dictionary or a member of a set must be a "
         "value, the same for every input; received <a category at each position>; write x.map(d) "
         "for d[x], and a list for a set"),
        ("{opens}", "a key of a dictionary or a member of a set must be a value"),
        ("x.isin([x])", "x, a category, must be compared with values that it can have: '(' ')'; "
         "received <a category at each position>; compare it with one of these; write (x == y) | "
         "(x == z) for sequences"),
        ("round(balance)", "rounding is not defined on it; received balance, a number; "
         "compare it with constants"),
        ('"(" in x', "line 8: \"(\" in x: a sequence stands for every input, and in is not "
         "defined on it; received x, a category; write (x == \"a\").any()"),
    ],
)  # fmt: skip
def test_python_s_own_sequences(refused, body, message):
    assert message in refused(body)


TEXT = (
    "a text must be made of values, the same for every input; received <a category at each "
    'position> in a text; write x.map(lambda a: f"{a}…") for a text of each value, and repr(x) to '
    "see its type"
)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("x.map({'(': f'{x}', ')': ')'})", "f'{x}'"),
        ("x.map({'(': f'{x!s:>3}', ')': ')'})", "f'{x!s:>3}'"),
        ("str(x)", "str(x)"),
        ("'%s' % x", "'%s' % x"),
        ("'{}'.format(x)", "'{}'.format(x)"),
        ("print(str(x))", "str(x)"),
    ],
)
def test_a_sequence_is_no_part_of_a_text(refused, body, place):
    assert refused(body) == f"dyck.py, line 8: {place}: {TEXT}"


def test_matches_are_no_part_of_a_text(refused):
    found = refused("f'{x.select(x)}'")
    assert "received <the positions that a selection matches> in a text; write" in found


def test_a_sequence_may_be_shown(capsys):
    @tf.program(alphabet="ab")
    def shown(x):
        print(x, 1)
        print([x], f"{x!r}", x.select(x))
        return x.tag()

    category = "<a category at each position>"
    lines = f"{category} 1\n[{category}] {category} <the positions that a selection matches>\n"
    assert capsys.readouterr().out == lines


BOOLEAN = (
    "compare it (x == 0), or give True or False; put comparisons beside & and | in parentheses"
)
NUMBER = (
    'give a finite number, or a text such as "1/3"; b.where(1, 0) makes a number of a Boolean, '
    "and x.map({…}) of a category"
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("opens & balance",
         "dyck.py, line 8: opens & balance: a Boolean is needed here; received balance, a number; "
         + BOOLEAN),
        ("balance & opens", "dyck.py, line 8: balance & opens: & is not defined on a number; "
         "received balance, a number with opens, a Boolean; a number has + - * // % and "
         "comparisons; "
         "comparisons beside & and | go in parentheses"),
        ("balance == 0 & opens", "a Boolean is needed here; received 0; " + BOOLEAN),
        ("balance + opens", "a number is needed here; received opens, a Boolean; " + NUMBER),
        ("balance + x", "a number is needed here; received x, a category; " + NUMBER),
        ("balance + True", "a number is needed here; received True; " + NUMBER),
        ("balance < 'a'", "a number is needed here; received 'a'; " + NUMBER),
        ("balance < float('nan')", "a number is needed here; received nan; " + NUMBER),
        ("balance + float('inf')", "a number is needed here; received inf; " + NUMBER),
        ("balance.mean(mask='left')", "a mask must be one of none, future, strict-future, past, "
         "strict-past; received 'left'; write future for the positions up to here, strict-future "
         "for those before"),
        ("x + 1", "+ is not defined on a category; received x, a category with 1; "
         "a category has == and !=; x.map({…}) makes a number of it"),
        ("opens + 1", "+ is not defined on a Boolean; received opens, a Boolean with 1; a Boolean "
         "has & | ^ ~ == != and * with a number; b.where(1, 0) makes a number of it"),
        ("x < '('", "< is not defined on a category"),
        ("balance % 2", "a function of a number needs listed values, or a whole number with "
         "a known bound; received a mean"),
        ("2 ** balance", "** is not defined on a number"),
        ("~balance", "~ is not defined on a number; received balance, a number; a number has"),
        ("balance / step", "a number must be divided by a constant other than 0; received a "
            "sequence; "
         "take mean or prefix_mean for a count over n or i; compare x with c * y for x / y with c"),
        ("balance / 0", "a number must be divided by a constant other than 0; received 0"),
        ("balance.clip(1, 0)", "knots must increase strictly, and each must have a value; received "
         "knots [1, 0] and values [1, 0]; sort the knots, keep each once"),
        ("balance.cpwl([0, 1], [0])", "knots must be at least two, increase strictly, and "
            "have a value "
         "each; received 2 knots and 1 values; sort the knots"),
        ("balance.cpwl([1, 0], [0, 1])", "received 2 knots and 2 values, and the knots do not "
         "increase"),
        ("x.isin(3)", "a list is needed here; received 3; give a list of them"),
        ("balance.cpwl(3, [0, 1])", "a list is needed here; received 3"),
        ("balance.cpwl([0, 1], 3)", "a list is needed here; received 3"),
        ("Select((x.node, x.node, x.node), 'last', 'none', '(')", "the choice of a "
         "selection must be one of rightmost, leftmost, mean; received 'last'; choose one of "
         "these"),
        ("Mean((x.node,), 'none')", "a mean needs a number here; received a category"),
        ("opens.where(1, 'a')", "a number is needed here; received 'a'"),
        ("opens.where(x, balance)", "a category is needed here; received balance, a number; "
         "give a symbol: a string, a number or a tuple of these"),
        ("balance.accept()", "no operation on a number has this name; received 'accept'; "
         "it is one on a Boolean: a comparison makes a Boolean"),
        ("x.prefix_mean()", "no operation on a category has this name; received 'prefix_mean'; "
         "it is one on a Boolean: a comparison makes a Boolean"),
        ("balance.clamp(0, 1)", "no operation on a number has this name; received 'clamp'; "
         "did you mean clip"),
        ("x.position('j')", "a function of the position must be one of i, n, "),
        ("x.first()", "a category must have a default where there is no such position, as in an "
            "empty input"),
        ("x.predecessor()", "a category must have a default where there is no such position, "
            "as in an empty input; received "
         "none; give default=…, a symbol or any other value such as 'none'"),
        ("x.predecessor(0, default='(')", "k must be a whole number of at least 1; received 0; "
         "give the distance in positions"),
        ("step.predecessor(default='x')", "a number is needed here; received 'x'"),
        ("x.select(balance)", "a category is needed here; received balance, a number"),
        ("x.lookup(opens, default='(')", "a number is needed here; received opens, a Boolean"),
        ("balance.nearest_left(step)", "a Boolean is needed here; received step, a number"),
        ("x == ['(']", "x, a category, must be compared with values that it can have: '(' ')'; "
         "received ['(']; compare it with one of these"),
        ("balance.values", "the values of a number must be known and few, to be listed; received "
         "balance, a number; list the values of the category or Boolean that it is made of"),
    ],
)  # fmt: skip
def test_types_that_do_not_fit(refused, body, message):
    found = refused(body)
    assert message in found
    assert found.startswith("dyck.py, line 8: ")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('x.map({"(": 1})', "a table must have a value for each of '(' ')'; received none for ')'; "
         "add it"),
        ('x.map({"(": 1, "]": 2, 3: 4})', "a table must have a value for each of '(' ')'; received "
            "none for ')', but one for ']' 3, which cannot occur; add it"),
        ("x.map({1: 2})", "received none for '(' ')', but one for 1, which cannot occur"),
        ('x.map({"(": 1, ")": "b"})', "the values of a table must be of one type; received "
            "a category for ')' and a number for '(': 1 'b'; give only Booleans, only numbers, or "
            "only categories"),
        ('x.map({"(": 1, ")": True})', "received a Boolean for ')' and a number for '(': 1 True"),
        ('x.table(opens, values=lambda a, b: 1 if b else "none")', "received a category for "
            "('(', False) and a number for ('(', True): 'none' 1 'none' 1; give only"),
        ("x.map(lambda a: 1 / (a != '('))", "a function of a table must have a value wherever it "
            "is called; received ZeroDivisionError: division by zero for the arguments '('; give a "
            "function that takes each of these and returns a value"),
        ("opens.table(x, values=lambda a: 1)", "received TypeError: dyck.<locals>.<lambda>() takes "
            "1 positional argument but 2 were given for the arguments False, '('"),
        ("x.map(lambda a: x == a)", "a function of a table must return a plain value: a Boolean, a "
            "number or a symbol; received a Boolean, for the arguments '('; compute with its "
            "arguments, which are values; give further sequences as further arguments"),
        ("x.map(lambda a: [a])", "a category is needed here; received ['(']"),
        ("x.map(lambda a: x + 1)", "line 8: x + 1: + is not defined on a category"),
        ("x.map(int)", "received ValueError: invalid literal for int() with base 10: '('"),
        ('x.map({"(": 1, ")": float("nan")})', "a number is needed here; received nan"),
        ('x.map({"(": 1, ")": None})', "the values of a table must be of one type"),
        ("x.map(3)", "a table must be a function, a mapping, a list of values, or bits "
            "such as 0110; received 3"),
        ('opens.table(opens, values="011")', "this table must have 4 values, one for each "
            "combination; "
         "received 3; give 4"),
        ('opens.table(balance, values="0111")', "the arguments of a table must be Booleans, "
            "categories, or numbers of at most 64 known values; received a mean, count or "
            "position, or a number of more values; write k.map(f) first, for a whole number k; "
            "compare the number, or use cpwl(knots, values)"),
        ("opens.table(*[opens] * 16, values=[0])", "a table must have at most 65,536 rows; "
            "received "
         "131,072; take the arguments in two steps, with a smaller table for each"),
    ],
)  # fmt: skip
def test_tables(refused, body, message):
    found = refused(body)
    assert message in found
    assert found.startswith("dyck.py, line 8: ") and "\n" not in found


@pytest.mark.parametrize(
    ("body", "received"),
    [
        ("return x.tag().accept()", ".accept on an output that tags"),
        ("return opens.accept(empty=True).tag()", ".tag on an output that accepts"),
        ("return x.next_token().where(1, 0)", ".where on an output that predicts"),
        ("return x.tag()[0]", "an index on an output that tags"),
        ("return [each for each in x.tag()]", "a loop over its positions on an output that tags"),
        ("return x.tag() + 1", "+ on an output that tags"),
        ("return ~opens.accept(empty=True)", "~ on an output that accepts"),
        (
            "return opens.accept(empty=True) & opens.accept(empty=False)",
            "& on an output that accepts",
        ),
        ("return max(balance.tag(), balance.tag())", "> on an output that tags"),
    ],
)
def test_nothing_is_done_to_an_output(refused, body, received):
    found = refused(body)
    assert f"an output ends a program and must be returned as it is; received {received}" in found
    assert found.startswith("dyck.py, line 8: ") and "\n" not in found


RETURNS = "a program must return one output: b.accept(), y.tag() or y.next_token(); received "


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("pass", f"dyck.py, line 4: def dyck: {RETURNS}None: nothing is returned; "
         "write return … .accept() for a verdict, or return tf.outputs(a=…, b=…) for several"),
        ("opens.accept(empty=True)", f"{RETURNS}None: nothing is returned"),
        ("return True", f"{RETURNS}True"),
        ("return opens", f"{RETURNS}<a Boolean at each position>"),
        ("return opens.tag(), balance.tag()", f"{RETURNS}2 outputs"),
        ("opens.tag()\nreturn opens.accept(empty=True)", f"{RETURNS}2 outputs"),
        ("return opens.accept()", "a program that accepts must have an answer on the empty input; "
         "received opens, a Boolean with no value over no positions, as of a token; "
         "write accept(empty=True) or accept(empty=False)"),
        ("return opens.accept(empty=1)", "empty must be True or False; received 1"),
        ('return x.predecessor(default="none").next_token()', "predictions must be symbols of "
         "the alphabet, or 'EOS'; received a category that can be 'none'; give another default, "
         "or map it to a symbol"),
    ],
)  # fmt: skip
def test_outputs(refused, body, message):
    assert message in refused(body)


def test_sequences_of_two_programs():
    kept = []

    @tf.program(alphabet="ab")
    def first(x):
        kept.append(x == "a")
        return kept[0].tag()

    with pytest.raises(tf.TransformistError) as error:

        @tf.program(alphabet="ab")
        def second(x):
            other = kept[0]
            return ((x == "a") & other).tag()

    message = str(error.value)
    assert message.startswith("test_refusals.py, line ")
    assert '(x == "a") & other: an operation must be between sequences of one program' in message
    assert (
        "received other, a Boolean, of another; compute both from the arguments of one" in message
    )


@pytest.mark.parametrize("alphabet", ["", "aa", ["a", 1, True], 3, ["BOS", "a"]])
def test_alphabets(alphabet):
    with pytest.raises(
        tf.TransformistError, match=r"test_refusals.py, line \d+: alphabet must be a str"
    ):
        tf.program(alphabet=alphabet)


def test_the_alphabet_has_to_be_given():
    with pytest.raises(
        tf.TransformistError, match="must be given the alphabet .*; received no alphabet above bare"
    ):

        @tf.program
        def bare(x):
            return x.tag()

    with pytest.raises(tf.TransformistError, match="received alphabet = None; give a string of"):
        tf.program()


def test_a_program_is_no_operation_of_another():
    same = tf.program(alphabet="ab")(lambda x: x.tag())
    with pytest.raises(tf.TransformistError, match=r"same\(x\): a sequence stands for every input"):
        tf.program(alphabet="ab")(lambda x: same(x))


def test_a_program_returns(refused):
    suspended = "received dyck, a generator (it has a yield) or an async function; write return"
    found = refused("yield x.tag()")
    assert f"must be a Python function that returns its output; {suspended}" in found
    assert found.startswith("dyck.py, line 4: def dyck: ") and "\n" not in found

    async def later(x):
        return x.tag()

    with pytest.raises(tf.TransformistError, match="an async function; write return"):
        tf.program(alphabet="ab")(later)


@pytest.mark.parametrize("function", [3, lambda: 0, lambda x, y: 0, lambda *x: 0, len, int])
def test_functions_of_something_else(function):
    with pytest.raises(
        tf.TransformistError, match="a program must be a Python function of one argum"
    ):
        tf.program(alphabet="ab")(function)


def test_unknown_symbols_are_refused_as_a_transformer_does():
    @tf.program(alphabet="ab")
    def same(x):
        return x.tag()

    message = (
        "same: every symbol must be one of a b; received 'c' at position 2; remove it, or add it"
    )
    for given in ("aca", ["a", "c"]):
        with pytest.raises(tf.TransformistError, match=message):
            same(given)
    with pytest.raises(tf.TransformistError, match="received 1 at position 1"):
        same([1])
    with pytest.raises(tf.TransformistError, match=r"received \['a'\] at position 1"):
        same([["a"]])
    with pytest.raises(
        tf.TransformistError, match="an input must be a string or a list of symbols"
    ):
        same(3)


def test_constants_are_taken_exactly():
    @tf.program(alphabet="ab")
    def tenth(x):
        return (x.map({"a": 0.1, "b": 0}) * "1/3" + Fraction(1, 7)).tag()

    assert tenth("ab") == [Fraction(0.1) / 3 + Fraction(1, 7), Fraction(1, 7)]
    assert math.isclose(float(tenth("b")[0]), 1 / 7)


@pytest.mark.parametrize("sign", ["+", "&", "==", "!=", "<"])
def test_matches_have_no_operators(refused, sign):
    assert refused(f"opens & (x.select(x) {sign} opens)") == (
        f"dyck.py, line 8: x.select(x) {sign} opens: the matches of a selection must first be made "
        f"values; received {sign} on <the positions that a selection matches>; write "
        ".rightmost(y), .leftmost(y), .mean(y) or .any() after select"
    )


def test_what_a_selection_does_not_have(refused):
    said = refused("y = opens.select(opens).count()")
    assert said == (
        "dyck.py, line 8: opens.select(opens).count: no operation on what a selection matches has "
        "this name; received 'count'; choose from any, leftmost, mean, rightmost"
    )
