"""Binary codes of whole numbers: a few Booleans that are equal where two numbers are.

A number k from 0 to R − 1 is written with digits to a base B of at most `LARGEST_BASE`, the highest
digit first. Digit l has the place value Mₗ, a power of B. The digit is the number of multiples v Mₗ
that the rest reaches:

    rest₀ = k,  digitₗ = Σ_{v ≥ 1} [restₗ ≥ v Mₗ],  restₗ₊₁ = restₗ − Mₗ digitₗ.

The bits of a digit are sums of these steps with factors 1 and −1. So a code has about log₂ R bits,
and the score of equal codes leads by 1. A score 2 q k − k² would also lead by 1, but be up to R².

A step [x ≥ t] is 0 or 1, with an error from the rounding of x: a few u |x|, u the unit roundoff.
A step of that step has an error of a few u. The second step is read where an error is multiplied:
in the rest, which has M B times the error of a step, and in a score, which outweighs N places.
"""

from __future__ import annotations

from fractions import Fraction

from transformist.circuit import Form, at_bos, total
from transformist.compiler.lower.builder import Builder

LARGEST_BASE = 17
"""Largest base B of the digits; any base is right.

The steps of a digit are added in one slot. Each step is a difference of two hidden units of up to
2 R, so a digit has 2 B units, and their sum has an error of about 2 B · u · 4 B R = 8 B² R u, which
must stay below 1/4. With B = 17 and u = 2⁻²⁴ that allows R up to 1800, more values than a count can
have in float32. A smaller base takes more layers. 17² = 289 values take two digits, which suffices
for the counts from 0 to 256.
"""


def code(build: Builder, number: Form, values: int, name: str) -> list[tuple[int, Form]]:
    """Binary code of a whole number from 0 to values − 1, which is the sum of weight · bit.

    Returns:
        Pairs of a weight and a bit. Each bit is 0 or 1, and 0 at BOS.

    """
    base, is_exact = _base(values), _is_exact(build, number)
    value, rest = _highest(values, base), _at_most_0_at_bos(build, number)
    bits = list[tuple[int, Form]]()
    while value:
        # With M the place value, a rest of at most R − 1 reaches ⌊(R − 1)/M⌋ = ⌈R/M⌉ − 1 multiples.
        # A whole rest is at most a threshold less 1, where its step is 0, or at least the
        # threshold, where it is 1.
        thresholds = [v * value for v in range(1, -(-values // value))]
        steps = [
            build.step(rest - (least - 1), Fraction(1), f"{name} >= {least}")
            for least in thresholds
        ]
        if value > 1 and not is_exact:
            steps = [_again(build, step, f"{name}: digit") for step in steps]
        for place in range(len(steps).bit_length()):
            bit = _again(build, _bit(steps, place), f"{name}: bit")
            bit = bit if is_exact else _again(build, bit, f"{name}: bit, once more")
            quiet = build.quiet(bit, name)  # a constant bit is not 0 at BOS
            bits.append((value << place, quiet))
        rest = rest - total(steps) * value
        # The next rest is below M, as a remainder, and not above the last one.
        values, value = min(values, value), value // base
    return bits


def _base(values: int) -> int:
    """The least base that takes the fewest digits."""
    digits = 1
    while LARGEST_BASE**digits < values:
        digits += 1
    return next(base for base in range(2, LARGEST_BASE + 1) if base**digits >= values)


def _highest(values: int, base: int) -> int:
    """The place value of the highest digit."""
    value = 1
    while value * base < values:
        value *= base
    return value


def _is_exact(build: Builder, number: Form) -> bool:
    """True if a number is computed without rounding: no mean is among its atoms."""
    circuit = build.circuit
    are_whole = all(circuit.is_whole(Form.atom(atom)) for atom in number.atoms)
    return are_whole and circuit.is_clean(number)


def _at_most_0_at_bos(build: Builder, number: Form) -> Form:
    """The number, lowered at BOS so that it reaches no threshold there."""
    if not build.circuit.bos:
        return number
    return number - at_bos(build.circuit) * max(Fraction(build.circuit.span_at_bos(number).hi), 0)


def _bit(steps: list[Form], place: int) -> Form:
    """The bit at a place of a digit; the digit is the sum of these steps."""
    # The step to v changes the bit by bit(v) − bit(v − 1).
    changes = [(v >> place & 1) - (v - 1 >> place & 1) for v in range(1, len(steps) + 1)]
    return total(step * change for step, change in zip(steps, changes, strict=True))


def _again(build: Builder, bit: Form, name: str) -> Form:
    """The same 0 or 1 by a step of its own, which has the error of one step alone."""
    return build.step(bit, Fraction(1), name)
