"""Random programs over the whole language, and what becomes of each: refused, right, or wrong."""

import functools
import itertools
import linecache
import random
import re
from dataclasses import dataclass
from fractions import Fraction

import transformist as tf
from transformist.compiler import compile as compiled
from transformist.errors import TransformistError

MASKS = ("none", "future", "strict-future", "past", "strict-past")
DRAWN = {
    "mask": MASKS,
    "seen": ("none", "future", "strict-future"),
    "k": (1, 1, 1, 2, 3),
    "c": (0, 0, 0, 1, -1, 2, "1/2", "-1/3", "1/4", "3/4"),
    "d": (0, 0, 1, -1, 2, "1/2"),
    "divisor": (2, 3, -2, 7),
    "factor": (2, -1, 3, "1/2", "-2/3", 0),
    "relation": ("==", "!=", "<", "<=", ">", ">="),
    "order": ("<", "<=", ">", ">=", "!="),
    "bits": ("0110", "0001", "1011", "1000", "1110", "1101", "0000"),
    "8bits": ("01101001", "00010111", "10000000", "01111111", "11001010", "00000000"),
    "truth": (True, False),
    "numbers": (
        [-1, 1, 0],
        [0, 1, 2],
        [1, 0, 0],
        [1, -1, 2],
        [Fraction(1, 2), -1, Fraction(1, 3)],
        [3, 3, 3],
    ),
    "whole": ([0, 1, 2], [-1, 1, 0], [3, 2, 1]),
    "symbols": (["a", "b"], ["b", "a"], ["b", "b", "a"]),
    "labels": (["p", "q"], ["p", "q", "a"], [("a", 1), "p"], ["long", "p", "long"]),
    "symbol": ("a", "b"),
    "position": ("i", "i", "n", "i/n", "1/i", "(-1)^i", "-1/i", "-i/n", "i^2", "i^3", "1"),
    "choice": ("rightmost", "leftmost"),
    "op": ("&", "|", "^", "==", "!="),
    "pick": (0, 1),
}
"""What stands at <name> in a template; one draw for each name."""

MAPPED = {"numbers": "F", "whole": "F", "symbols": "C", "labels": "L"}

DEFAULTS = {"C": "<symbol>", "L": "'none'", "B": "<truth>", "F": "<d>", "N": "<d>"}

OPERATIONS = [
    # kind of the result, template, kinds of $0, $1, …: Booleans, categories (C: symbols; L: any),
    # numbers (F: of listed values; I: whole ones, for an index; N: any)
    ("C", "x", ""), ("C", "x", ""), ("C", "x", ""), ("L", "$0", "C"), ("I", "$0", "P"),
    *[(kind, f"$0.map(cycle($0, <{name}>))", "L") for name, kind in MAPPED.items()],
    ("L", "$0.map(cycle($0, [1, 2, 3]), categories=True)", "L"),
    ("B", "$0.map(cycle($0, [True, False, False]))", "L"),
    ("B", "(x == <symbol>)", ""), ("B", "(x != <symbol>)", ""), ("B", "x.isin(['a', 'b'])", ""),
    ("B", "$0.isin(some($0, <pick>))", "L"), ("B", "x.isin([])", ""),
    ("B", "($0 == $1)", "LL"), ("B", "($0 != $1)", "CC"),
    ("B", "($0 <op> $1)", "BB"), ("B", "($0 <op> $1)", "BB"), ("B", "(~$0)", "B"),
    ("B", "($0 & <truth>)", "B"), ("B", "$0.where($1, $2)", "BBB"),
    ("B", "$0.where(<truth>, $1)", "BB"),
    ("B", "$0.table(values='01')", "B"), ("B", "$0.table($1, values='<bits>')", "BB"),
    ("B", "$0.table($1, $2, values='<8bits>')", "BBB"),
    ("B", "listed([True, False, False], $0, $1)", "LB"),
    ("B", "listed([False, True], $0, $1)", "CC"),
    ("F", "listed(<numbers>, $0, $1)", "LB"), ("F", "listed(<numbers>, $0, $1)", "LL"),
    ("F", "$0.map(lambda v: 2 * v * v - 1)", "F"), ("B", "$0.map(lambda v: v * v > v)", "F"),
    ("L", "$0.map(lambda v: 'p' if v > 0 else 'a')", "F"),
    ("B", "$0.table($1, values=lambda v, c: v > 0 or c == 'a')", "FL"),
    ("L", "$0.table($1, values=lambda v, b: 'q' if b and v < 1 else 'p')", "FB"),
    ("B", "($0 == 'never')", "L"),
    ("C", "listed(<symbols>, $0, $1)", "CB"), ("L", "listed(<labels>, $0, $1, $2)", "BBB"),
    ("B", "($0 <relation> <c>)", "N"), ("B", "($0 <relation> <c>)", "N"),
    ("B", "($0 <relation> <c>)", "F"), ("B", "($0 <relation> $1)", "NN"),
    ("B", "($0 <relation> $1)", "FF"),
    ("B", "($0.mean(<mask>) <relation> $1.mean(<mask>))", "FF"),
    ("B", "($0.count(<seen>) <relation> $1.count(<seen>))", "BB"),
    ("B", "($0.count(<seen>) <relation> 2)", "B"), ("B", "($0.mean(<mask>) <relation> <c>)", "B"),
    ("B", "($0.count('none') <relation> x.position('n'))", "B"),
    ("B", "$0.any(<mask>)", "B"), ("B", "$0.all(<mask>)", "B"),
    ("B", "$0.any_so_far()", "B"), ("B", "$0.all_so_far()", "B"),
    ("B", "$0.select($1, mask=<mask>).any()", "CC"),
    ("B", "$0.select($1, mask=<mask>).any()", "FF"),
    ("B", "$0.select($1, mask=<mask>).any()", "BB"),
    ("B", "$0.select('b', mask=<mask>).any()", "C"),
    ("B", "$0.select($1, mask=<mask>).any()", "II"),
    ("B", "$0.select($1, mask=<mask>).any()", "FI"),
    *[("B", "$0.select($1, mask=<mask>, relation=<order>).any()", kinds)
      for kinds in ("CC", "FF", "FN", "NF", "BB", "WW", "WP", "II")],
    *[("B", f"$0.select({key}, mask=<mask>, relation=<order>).any()", kind)
      for kind, key in (("C", "'b'"), ("F", "<c>"), ("W", "<k>"))],
    *[(kind, f"$0.select($1, mask=<mask>, relation=<order>).<choice>($2, default={default})",
       keys + kind) for kind, default in DEFAULTS.items() for keys in ("CC", "FI", "WW")],
    *[("N", f"$0.select($1, mask=<{mask}>, relation=<order>).mean($2, default=<d>)", kinds)
      for mask in ("seen", "mask") for kinds in ("CCF", "FNB", "WWF", "WWB", "WPW")],
    ("B", "($0.select($1, mask=<mask>, relation=<order>).mean($2) <relation> '1/2')", "WWB"),
    ("M", "$0.select($1, mask=<seen>, relation=<order>).mean($2)", "CCF"),
    ("M", "$0.select($1, mask=<seen>, relation=<order>).mean($2)", "WWB"),
    ("C", "$0.where('a', 'b')", "B"), ("L", "$0.where('p', $1)", "BL"),
    *[(kind, "$0.where($1, $2)", f"B{kind}{kind}") for kind in "CLFNI"],
    ("F", "$0.where(1, 0)", "B"), ("F", "$0.where(<c>, <d>)", "B"), ("F", "($0 * <c>)", "B"),
    ("F", "($0 * $1)", "FF"), ("F", "($0 + $1)", "FF"), ("F", "x.position('(-1)^i')", ""),
    ("N", "$0", "F"), ("N", "$0", "F"), ("N", "$0", "I"), ("N", "x.position('<position>')", ""),
    *[(kind, template, kind * arity) for kind in "FN" for template, arity in (
        ("($0 + $1)", 2), ("($0 - $1)", 2), ("($0 + <c>)", 1), ("(<c> - $0)", 1), ("(-$0)", 1),
        ("($0 * <factor>)", 1), ("($0 / 3)", 1), ("$0.relu()", 1), ("$0.abs()", 1),
        ("$0.min($1)", 2), ("$0.max($1)", 2), ("$0.min(<c>)", 1), ("$0.clip(-1, '1/2')", 1),
        ("$0.cpwl([-1, 0, 1, 2], [1, 0, 2, 1])", 1), ("$0.cpwl([0, '1/2'], [0, 1])", 1),
    )],
    *[("N", "($0 * $1)", kinds) for kinds in ("WN", "NW", "WW", "FN", "NF", "WM", "NN")],
    ("W", "($0 * $1)", "WF"), ("I", "($0 * $1)", "WW"), ("M", "($0 * $1)", "FM"),
    ("L", "$0.map(lambda v: None if v > 1 else 'p')", "W"),
    ("L", "$0.map(lambda v: None if v == <symbol> else v)", "C"),
    ("L", "$0.predecessor(default=None)", "L"), ("L", "$0.where(None, $1)", "BL"),
    ("B", "($0 == None)", "L"), ("N", "(+$0)", "N"),
    ("C", "$0.map(lambda v: 'ab'[v % 2], max_length=30)", "W"),
    ("B", "$0.isin($0.values[:2])", "L"), ("B", "x.isin(x.alphabet[1:])", ""),
    ("N", "($0 * $1)", "NB"), ("N", "($0 * $1)", "BN"), ("F", "($0 * $1)", "FB"),
    ("N", "$0.mean(<mask>)", "F"), ("N", "$0.mean(<mask>)", "N"), ("N", "$0.mean(<mask>)", "B"),
    ("N", "$0.prefix_mean()", "F"), ("N", "$0.suffix_mean()", "F"), ("N", "$0.prefix_mean()", "B"),
    ("N", "$0.suffix_mean()", "B"), ("N", "$0.count(<seen>)", "B"), ("N", "$0.count(<mask>)", "B"),
    ("N", "$0.count()", "B"),
    ("N", "($0.mean(<mask>) + $1.mean(<mask>))", "FB"),
    ("N", "($0.count(<seen>) - $1.count(<seen>))", "BB"),
    *[("N", f"$0.select($1, mask=<seen>).mean($2{default})", f"{keys}{keys}{value}{more}")
      for keys in "CBFI" for value in "FBN"
      for default, more in (("", ""), (", default=<d>", ""), (", default=$3", "N"))],
    ("N", "$0.select($1, mask=<mask>).mean($2)", "CCF"),
    ("N", "$0.select('a', mask=<mask>).mean($1)", "CF"),
    *[("M", template, kinds) for template, kinds in (
        ("$0.mean(<mask>)", "F"), ("$0.mean(<mask>)", "B"), ("$0.prefix_mean()", "F"),
        ("$0.count(<seen>)", "B"),
        ("$0.select($1, mask=<seen>).mean($2)", "CCF"),
        ("($0.mean(<mask>) + $1.mean(<mask>))", "FB"),
        ("($0.count(<seen>) - $1.count(<seen>))", "BB"), ("$0", "I"), ("x.position('i/n')", ""),
        ("$0.predecessor(<k>, default=<d>)", "M"), ("$0.last(default=<d>)", "M"))],
    *[("M", template, kinds) for template, kinds in (
        ("($0 * <factor>)", "M"), ("($0 - <c>)", "M"), ("($0 + $1)", "MM"), ("$0.relu()", "M"),
        ("$0.abs()", "M"),
        ("$0.where($1, $2)", "BMM"), ("($0 * $1)", "MB"), ("$0.clip(-1, '1/2')", "M"))],
    *[(kind, f"$0.map({f})", "W") for kind, f in (
        ("F", "lambda v: v * v % 3 - 1"), ("B", "lambda v: v % 2 == 1"), ("N", "lambda v: v * v"),
        ("B", "{v: v in (0, 3) for v in range(-99, 99)}"), ("B", "lambda v: v > 1"),
        ("C", "lambda v: 'ba'[v % 2]"), ("L", "lambda v: ('p', 'q', (v % 2, 'r'))[v % 3]"))],
    *[("F", f"($0 % {c})", "W") for c in (2, 3, -2)], ("I", "($0 // <divisor>)", "W"),
    *[("F", f"({number} % <divisor>)", "WWW"[:arity]) for number, arity in (
        ("$0 * $0", 1), ("$0 * $1", 2), ("($0 + $1)", 2), ("(1 - <k> * $0 - $1 * $2)", 3))],
    ("I", "($0 * $1 // <divisor>)", "WW"), ("I", "(($0 + <k> * $1) // <divisor>)", "WW"),
    ("W", "($0 * $1 % <divisor>)", "WW"), ("W", "(($0 + $1) // <divisor>)", "WW"),
    ("W", "($0 // <divisor>)", "W"), ("W", "$0.count(<seen>)", "B"), ("W", "$0", "P"),
    ("W", "x.position('n')", ""), ("W", "($0.count(<seen>) - $1.count(<seen>))", "BB"),
    ("W", "($0 - $1)", "WW"), ("W", "($0 * 2)", "W"), ("W", "(<k> - $0)", "W"),
    ("W", "$0.min(<k>)", "W"), ("W", "$0.max($1)", "WW"), ("W", "abs($0)", "W"),
    ("W", "$0.nearest_left($1, default=0)", "WB"), ("W", "$0.where($1, $2)", "BWW"),
    ("N", "$0", "M"), ("P", "x.position('i')", ""), ("P", "(x.position('i') - 1)", ""),
    ("P", "(x.position('i') + <k>)", ""), ("P", "(x.position('n') + 1 - x.position('i'))", ""),
    ("I", "($0 + $1.map(cycle($1, <whole>)))", "PC"), ("I", "$0.count('none')", "B"),
    ("I", "$0.map(cycle($0, <whole>))", "C"), ("I", "(x.position('i') * 2)", ""),
    *[(kind, f"$0.{method}({given}default={default})", f"{kind}{more}")
      for kind, default in DEFAULTS.items()
      for method, given, more in (
          ("predecessor", "<k>, ", ""), ("successor", "<k>, ", ""), ("first", "", ""),
          ("last", "", ""),
          ("nearest_left", "$1, ", "B"), ("nearest_right", "$1, ", "B"), ("lookup", "$1, ", "I"))],
    ("I", "$0.nearest_left($1, default=0)", "PB"), ("I", "$0.last()", "P"),
    ("I", "$0.count(<mask>)", "B"), ("I", "($0.count(<mask>) - $1.count(<mask>))", "BB"),
    ("I", "$0.select($1, mask=<mask>).<choice>($2)", "III"),
    ("I", "$0.select($1, mask=<mask>, relation=<order>).<choice>($2)", "WWP"),
    ("B", "$0.predecessor()", "B"), ("F", "$0.successor()", "F"),
    ("C", "$0.lookup(2, default='a')", "C"),
    ("C", "$0.nearest_left(True, default='a')", "C"),
    ("F", "$0.nearest_right($1, default=$2)", "FBF"),
    *[(kind, f"$0.select($1, mask=<mask>).<choice>($2, default={default})", 2 * keys + kind + more)
      for kind, constant in DEFAULTS.items() for keys in "CBFI"
      for default, more in ((constant, ""), ("$3", kind))],
    *[(kind, f"$0.select($1, mask={mask}($2, default=$2)", 2 * keys + kind) for kind in "CBF"
      for keys, mask in (("C", "'future').rightmost"), ("B", "'past').leftmost"))],
    ("C", "x.select($0, mask='strict-future').rightmost(x, default='a')", "C"),
    ("C", "$0.select(True, mask=<mask>).<choice>($1, default='b')", "BC"),
]  # fmt: skip

OUTPUTS = [
    ("$0.accept()", "B"), ("$0.accept(empty=<truth>)", "B"), ("$0.tag()", "B"), ("$0.tag()", "C"),
    ("$0.tag()", "L"), ("$0.tag()", "N"), ("$0.tag()", "F"), ("$0.next_token()", "C"),
    ("$0.map(cycle($0, ['b', 'EOS', 'a'])).next_token()", "L"),
    ("tf.outputs(p=$0.accept(empty=<truth>), q=$1.tag())", "BN"),
    ("tf.outputs(p=$0.tag(), q=$1.tag())", "LW"), ("tf.outputs(p=$0.tag(), q=$1.tag())", "FB"),
    ("$0.tag()", "W"), ("$0.tag()", "M"),
]  # fmt: skip


def cycle(c, values):
    """A mapping from the values of a category."""
    return dict(zip(c.node.type.values, itertools.cycle(values), strict=False))


def listed(values, first, *others):
    """A table with these values, again and again."""
    rows = 1
    for each in (first, *others):
        rows *= len(each.node.type.values)
    return first.table(*others, values=[values[k % len(values)] for k in range(rows)])


def some(c, k):
    """Every other value of a category."""
    return c.node.type.values[k::2]


@dataclass(frozen=True)
class Expression:
    """A template, its places filled by others."""

    kind: str
    template: str
    parts: tuple["Expression", ...] = ()

    @property
    def text(self):
        return re.sub(r"\$(\d)", lambda m: self.parts[int(m[1])].text, self.template)

    def below(self):
        yield self
        for part in self.parts:
            yield from part.below()

    def smaller(self):
        """Expressions of the same kind with one part left out."""
        kinds = {"L": "LC", "N": "NFIPMW", "I": "IP", "W": "WP"}.get(self.kind, self.kind)
        yield from (each for part in self.parts for each in part.below() if each.kind in kinds)
        yield from (
            Expression(self.kind, leaf) for leaf in LEAVES[self.kind] if self.template not in leaf
        )
        for k, part in enumerate(self.parts):
            for less in part.smaller():
                parts = (*self.parts[:k], less, *self.parts[k + 1 :])
                yield Expression(self.kind, self.template, parts)


LEAVES = {
    "B": ["(x == 'a')"], "C": ["x"], "L": ["x"], "F": ["x.map(cycle(x, [1, -1]))"],
    "N": ["x.map(cycle(x, [1, -1]))", "x.position('i')"], "I": ["x.position('i')"],
    "P": ["x.position('i')"], "W": ["x.position('n')"], "M": ["(x == 'a').mean()"], "output": [],
}  # fmt: skip


def filled(template, kind, kinds, depth, draw):
    for name in re.findall("<([a-z0-9]+)>", template):
        value = draw.choice(DRAWN[name])
        bare = name in ("bits", "8bits", "position", "choice", "op", "relation")
        template = template.replace(f"<{name}>", str(value) if bare else repr(value))
    return Expression(kind, template, tuple(expression(each, depth - 1, draw) for each in kinds))


def expression(kind, depth, draw):
    rows = [row for row in OPERATIONS if row[0] == kind and (depth > 0 or not row[2])]
    if not rows:
        return Expression(kind, draw.choice(LEAVES[kind]))
    _, template, kinds = draw.choice(rows)
    return filled(template, kind, kinds, depth, draw)


def output(draw):
    template, kind = draw.choice(OUTPUTS)
    return filled(template, "output", kind, draw.choice((1, 2, 2, 3, 3, 4)), draw)


def program_of(text, alphabet="ab"):
    """The program of an expression, whose source can be quoted."""
    source = f"@tf.program(alphabet={alphabet!r})\ndef drawn(x):\n    return {text}\n"
    linecache.cache["drawn.py"] = (len(source), None, source.splitlines(keepends=True), "drawn.py")
    known = {"tf": tf, "cycle": cycle, "listed": listed, "some": some, "Fraction": Fraction}
    exec(compile(source, "drawn.py", "exec"), known)
    return known["drawn"]


@functools.cache
def strings(alphabet, longest):
    """All short ones, and some as long as they may be."""
    short = min(longest, 7 - len(alphabet))
    found = [x for n in range(short + 1) for x in itertools.product(alphabet, repeat=n)]
    draw = random.Random(1)
    for n in (longest - 1, longest):
        repeated = [*((symbol,) for symbol in alphabet), tuple(alphabet)]
        for k, a, b in itertools.product(range(3), alphabet, repeated):
            found.append(((a,) * k + b * longest)[:n])
        found += [tuple(draw.choices(alphabet, k=n)) for _ in range(6)]
    made = "".join if all(isinstance(symbol, str) for symbol in alphabet) else list
    return [made(x) for x in dict.fromkeys(found)]


SETTINGS = (("average-hard", "exact"), ("rightmost-hard", "exact"), ("softmax", "float32"),
            ("softmax", "float64"))  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A program and how it is compiled."""

    body: Expression
    weighting: str
    arithmetic: str
    max_length: int | None
    heads: str = "many"
    alphabet: str = "ab"
    positions: tuple | None = None
    masks: str = "any"
    reuse: bool = True

    def __str__(self):
        return (f"{self.body.text}  [{self.weighting}, {self.arithmetic}, N = {self.max_length}, "
                f"{self.heads}, {self.alphabet}, {self.masks}, {self.reuse}]")  # fmt: skip


def outcome(case):
    """("refused", why), ("right", nodes), or ("wrong", example); any other exception is raised."""
    try:
        program = program_of(case.body.text, case.alphabet)
    except TransformistError as refusal:
        return "no program", refusal
    how = {
        "max_length": case.max_length,
        "weighting": case.weighting,
        "heads": case.heads,
        "positions": case.positions,
        "masks": case.masks,
        "reuse": case.reuse,
    }
    try:
        model = compiled(program, arithmetic=case.arithmetic if case.max_length else None, **how)
    except TransformistError as refusal:
        if ".py, line " not in str(refusal):
            return "wrong", f"refused without its place: {refusal}"
        return "refused", refusal
    places = model.embedding.positions
    used = {name for name in (places.names if places else ()) if name}
    if case.positions is not None and not used <= set(case.positions):
        return "wrong", f"positions {used}"
    masks = {head.mask for layer in model.layers for head in layer.heads}
    if case.masks != "any" and not masks <= {case.masks}:
        return "wrong", f"masks {masks}"
    if not case.reuse and len({span.slot for span in model.stream.spans}) < len(model.stream.spans):
        return "wrong", "a slot that holds two numbers"
    given = strings(case.alphabet, case.max_length or 12)
    answers = model.answers(given, arithmetic=case.arithmetic)
    for x, got in zip(given, answers, strict=True):
        expected = program(x)
        if repr(got) != repr(expected):
            return "wrong", f"{x}: {expected!r} expected, {got!r} received"
    return "right", program.nodes


def drawn(draw):
    body = output(draw)
    weighting, arithmetic = draw.choice(SETTINGS)
    lengths = (5, 6, 7, 8, 9, 11, 12, 30, None) if weighting == "softmax" else (5, 8, 12, None)
    heads = draw.choice(("many", "many", "one"))
    alphabet = draw.choice(("ab", "ab", "ab", "abc", "a", (0.5, "b"), ("a", ("b", 2), -1.5)))
    positions = draw.choice((None,) * 8 + (("i",), ("i", "i^2"), ("i/n",), ("i/n", "i"), ()))
    return Case(body, weighting, arithmetic, draw.choice(lengths), heads, alphabet, positions)
