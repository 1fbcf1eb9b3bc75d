"""Error bounds of the sums that weights compute, errors of their atoms left out.

For Σ wₖ xₖ + b, computed from numbers x̂ₖ that are off xₖ by ρₖ beyond their atoms, with w̃ and b̃ the
weights as the format holds them, w the unit roundoff of its accumulator, u its own:

    Σ |w̃ₖ| ρₖ + Σ |w̃ₖ − wₖ| |x̂ₖ| + |b̃ − b|      the weights, underflow to 0 included,
    + w Σ |w̃ₖ x̂ₖ|                               products, but by a power of two, or where the
                                                accumulator holds two significands,
    + (m − 1) w (Σ |w̃ₖ x̂ₖ| + |b̃|)              m summands, in every order of additions,
    + u |the sum|                               where it is stored in less than it accumulates in,

plus the least number of the format, or of its accumulator, for each operation that may underflow.
With two summands the one addition rounds the sum itself. Nothing rounds where the xₖ have no error,
the weights are numbers of the format, and all summands are multiples of one power of two, of which
the significand holds Σ |w̃ₖ x̂ₖ| + |b̃|.
"""

from __future__ import annotations

import math
from fractions import Fraction

from transformist.arithmetic import is_power_of_two
from transformist.circuit.atom_errors import AtomErrors, Relative, magnitude, product_bound
from transformist.circuit.forms import Form
from transformist.circuit.readings import Number, Sum, form_of
from transformist.laws import Grid

SLACK = 1 + 2.0**-20
"""Factor for the rounding of these bounds: fewer than 2³⁰ float64 operations lose below 2⁻²²."""


def magnitude_of(margins: AtomErrors, number: Number) -> float:
    """Largest magnitude of the computed number."""
    found = margins.magnitudes_of_numbers.get(number)
    if found is None:
        own = rounding(margins, number) if isinstance(number, Sum) else 0.0
        found = _magnitude(margins, form_of(number), own)
        margins.magnitudes_of_numbers[number] = found
    return found


def _magnitude(margins: AtomErrors, form: Form, own: float, is_split: bool = False) -> float:
    # The true number is at most `size`, the computed one is off by its atoms and by its own
    # rounding.
    size = magnitude(margins.circuit.size(form, is_split))
    return (size + margins.inherited(form) + own) * SLACK


def rounding(margins: AtomErrors, number: Number) -> float:
    """Error bound of a number, errors of its atoms left out; infinite where it may overflow."""
    if isinstance(number, Form):
        return 0.0
    if number not in margins.rounded:
        margins.rounded[number] = 0.0 if is_exact(margins, number) else _rounding(margins, number)
    return margins.rounded[number]


def _rounding(margins: AtomErrors, each: Sum) -> float:
    return rounding_within(margins, each, *_sizes(margins, each), 1.0)


def _sizes(margins: AtomErrors, each: Sum) -> tuple[list[float], float]:
    """Largest magnitude of each factor, and of the sum; units of a step count one by one."""
    if each not in margins.magnitudes:
        factors = [
            _magnitude(margins, x, 0.0, is_split=True)
            if each.is_of_units and isinstance(x, Form)
            else magnitude_of(margins, x)
            for _, x in each.parts
        ]
        margins.magnitudes[each] = factors, _magnitude(margins, each.form, 0.0)
    return margins.magnitudes[each]


def rounding_apart(margins: AtomErrors, each: Sum) -> float:
    """Error bound of the evaluation alone, for the difference of two sums of the same factors.

    Errors of factors and of weights are the same in both sums, and cancel.
    """
    if is_exact(margins, each):
        return 0.0
    # Both sums read the same computed factors and the same rounded weights: a factor off by ρ adds
    # w̃ρ to both, and the difference has none of it. What is left is how each sum rounds on its
    # own.
    return rounding_within(margins, each, *_sizes(margins, each), 1.0, is_apart=True)


def rounding_within(
    margins: AtomErrors,
    each: Sum,
    sizes: list[float],
    value: float,
    times: float,
    is_apart: bool = False,
    owns: list[float] | None = None,
) -> float:
    """Error bound `rounding` for the given magnitudes, which are multiplied by `times` already.

    Errors of the factors (`owns`) are too, where they are given; constants are multiplied here.
    """
    a, w, u = margins.a, margins.w, storing_error(margins)
    shift = margins.held(each.shift)
    weights = [margins.held(weight) for weight, _ in each.parts]
    # A weight beyond the largest number of the format is infinite there, and so is the sum.
    if shift is None or any(weight is None for weight in weights):
        return math.inf
    # |b̃ − b|
    off = magnitude(abs(shift - each.shift)) * times
    if not each.parts:
        return off * SLACK
    total, products = magnitude(abs(shift)) * times, 0.0
    owns = owns or [rounding(margins, x) * times for _, x in each.parts]
    for (weight, _), near, size, by in zip(each.parts, weights, sizes, owns, strict=True):
        assert near is not None
        # |w̃ₖ| ρₖ + |w̃ₖ − wₖ| |x̂ₖ|; these are the same in two sums of the same factors, where they
        # only make the value larger.
        product = product_bound(abs(near), size)
        own = product_bound(abs(near), by)
        off += 0.0 if is_apart else own + product_bound(abs(near - weight), size)
        value += own + product_bound(abs(near - weight), size) if is_apart else 0.0
        total += product
        products += 0.0 if _is_a_power(near) or margins.is_wide else product
    steps, units = _units(margins, each)
    # No partial sum overflows: each is at most the magnitudes of all terms, both units of steps.
    large = (2 * steps + total) * SLACK / times
    top = a.largest if each.is_stored_each else a.largest_partial
    if not (large < top and (value + off) * SLACK / times < a.largest):
        return math.inf
    # (m − 1) w Σ: each partial sum is at most Σ; one addition alone rounds the value itself. Units
    # of steps are larger than what they come to, and have a bound by the order of summation.
    additions = max(units - 1, 0)
    if each.is_stored_each:
        off += additions * (w + u) * (value if additions == 1 else total) * (1 + off_by(units, u))
    elif steps and units > 2:
        accumulated = margins.order.accumulation(units, steps, total, w)
        off += accumulated + w * 2 * steps * bool(products) + w * products
    else:
        off += additions * w * (value + off if additions == 1 else total) + w * products
        off += w * 2 * steps * bool(products)
    off *= 1 + off_by(units + 2, w)
    # u |the sum|, once it has been accumulated
    if not each.is_stored_each and not _is_plain(margins, each):
        off += u * (value + off)
    lost = underflow(margins, len(each.parts), each.is_stored_each)
    return (off + lost * times) * SLACK


def _is_plain(margins: AtomErrors, each: Sum) -> bool:
    """True if the sum is one number times a power of two, and is held as exactly as the number."""
    if len(each.parts) > 1 or each.shift:
        return False
    # A power of two times a stored number is stored without rounding. A weight that is 0 in the
    # format or does not fit it is no such power: 3 stands for it. A form of several terms is not
    # one stored number.
    ((weight, x),) = each.parts
    return _is_a_power(margins.held(weight) or Fraction(3)) and (
        isinstance(x, Sum) or len(x.terms) < 2
    )


def off_by(terms: int, w: float) -> float:
    """(1 + w)ᵏ⁺¹ − 1 for k terms: relative size of what a bound of first order leaves out."""
    return math.expm1((terms + 1) * math.log1p(w))


def underflow(margins: AtomErrors, parts: int, is_stored_each: bool = False) -> float:
    """Error by underflow in a sum of some products: of each product, each addition, the result."""
    # Every product and every addition may underflow in the accumulator, and the bias is one more
    # addition. The result is stored once, or once after each addition where the sum is a slot of
    # the stream. Where results are stored as they are accumulated, with the same range, the store
    # loses nothing more.
    a = margins.a
    partial = (2 * parts + 1) * a.smallest_partial
    results = a.smallest * (parts if is_stored_each else 1)
    return partial + (results if storing_error(margins) or a.smallest > a.smallest_partial else 0.0)


def relative(margins: AtomErrors, number: Number) -> Relative:
    """Relative error bound of a number, errors of its atoms left out."""
    if isinstance(number, Form):
        return Relative(0.0, 0.0, magnitude(abs(number.constant)))
    if number not in margins.relatives:
        margins.relatives[number] = _relative(margins, number)
    return margins.relatives[number]


def _relative(margins: AtomErrors, number: Sum) -> Relative:
    constants = magnitude(number.constants)
    if is_exact(margins, number):
        return Relative(0.0, 0.0, constants)
    w, u = margins.w, storing_error(margins)
    # Every term carries (1 + its own relative error)(1 + that of its weight)(1 + that of the
    # product). For terms of one sign the largest of these bounds the relative error of their sum.
    shares, rest = [0.0], 0.0
    for weight, x in ((number.shift, None), *number.parts):
        near = margins.held(weight)
        if near is None:
            return Relative(math.inf, math.inf, constants)
        inner = Relative(0.0, 0.0, 0.0) if x is None else relative(margins, x)
        if not weight:
            continue
        own = magnitude(abs(near - weight) / abs(weight))
        product = 0.0 if x is None or _is_a_power(near) or margins.is_wide else w
        shares.append((1 + inner.share) * (1 + own) * (1 + product) - 1)
        rest += product_bound(abs(near), inner.rest)
    steps, units = _units(margins, number)
    if steps and not _is_plain(margins, number):
        sizes = zip(number.parts, _sizes(margins, number)[0], strict=True)
        total = sum(product_bound(abs(weight), size) for (weight, _), size in sizes)
        total += magnitude(abs(number.shift))
        rest += margins.order.accumulation(units, steps, total, w) + w * (2 * steps + total)
    # m summands are rounded by at most m − 1 additions, each by w, and by u where it is stored.
    each = w + u + w * u if number.is_stored_each else w
    # off_by(k) has k + 1 roundings, so k = m − 2 stands for m − 1 additions.
    share = (1 + max(shares)) * (1 + off_by(max(units, 1) - 2, each)) - 1
    rest = rest * (1 + off_by(units, each))
    if not number.is_stored_each and number.parts and not _is_plain(margins, number):
        share, rest = (1 + share) * (1 + u) - 1, rest * (1 + u)
    rest += underflow(margins, len(number.parts), number.is_stored_each)
    return Relative(share * SLACK, rest * SLACK, constants)


def is_exact(margins: AtomErrors, number: Number) -> bool:
    """True if the format computes a number without an error, in any order of summation."""
    if isinstance(number, Form):
        return not any(margins.errors[atom].absolute for atom in number.atoms)
    if number not in margins.exact:
        margins.exact[number] = _is_exact(margins, number)
    return margins.exact[number]


def _is_exact(margins: AtomErrors, each: Sum) -> bool:
    # A sum is exact if its factors are, the format holds every weight, and every partial sum is a
    # multiple of one power of two within the significand. Of a step both units are added, each up
    # to its height: their magnitudes are 2 · height beyond the step itself.
    if not all(is_exact(margins, x) for _, x in each.parts):
        return False
    if any(margins.held(x) != x for x in (each.shift, *(weight for weight, _ in each.parts))):
        return False
    grid, total = Grid.of([each.shift]), Fraction(abs(each.shift))
    for weight, x in each.parts:
        form = form_of(x)
        part = margins.grid_everywhere(form)
        if part is None:
            return False
        grid |= part.times(weight)
        total += abs(weight) * Fraction(margins.circuit.size(form, is_split=each.is_of_units))
        for number, factor in form.terms if each.is_of_units else ():
            atom = margins.circuit.atoms[number]
            if len(atom.hidden_units) > 1:
                part = margins.grid_of_units(number)
                if part is None:
                    return False
                grid |= part.times(factor * weight)
                total += 2 * abs(weight * factor) * Fraction(margins.height(number))
    if grid.counts or not is_power_of_two(Fraction(grid.c)):
        return False
    # Every partial sum is a multiple of 1/c, a power of two, and at most `total`.
    c, a = Fraction(grid.c), margins.a
    return total * c <= 2**a.precision and c * Fraction(a.smallest) <= 1


def _units(margins: AtomErrors, each: Sum) -> tuple[float, int]:
    """Return the sum of the magnitudes of the second units of steps, and the number of terms."""
    # A step u₁ − u₂ is between 0 and 1, but u₁ and u₂ may be as large as the height h. Any order of
    # additions may hold both at once: |u₁| + |u₂| ≤ 2h + |step|.
    steps, units = 0.0, int(bool(each.shift))
    for weight, x in each.parts:
        numbers = 1
        if each.is_of_units and isinstance(x, Form):
            for number, factor in x.terms:
                if len(margins.circuit.atoms[number].hidden_units) > 1:
                    numbers = 2
                    steps += magnitude(abs(weight * factor) * margins.height(number))
            numbers = max(numbers, len(x.terms))
        units += numbers
    return steps, units


def storing_error(margins: AtomErrors) -> float:
    """Relative error of storing a sum; 0 where sums accumulate in the format itself."""
    return margins.u if margins.u > margins.w else 0.0


def _is_a_power(weight: Fraction) -> bool:
    return not weight or is_power_of_two(abs(weight))
