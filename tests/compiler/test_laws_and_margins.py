"""What the compiler knows of every number is true: its range, its grid, how far rounding moves it.

The numbers of a circuit are computed here from their definitions, in rationals, with hard
attention; the streams of the compiled model are compared with them in a format.
"""

import contextlib
from fractions import Fraction

import pytest
from ideal import Ideal, given, strings

import transformist as tf
from transformist.arithmetic import number_system
from transformist.circuit import Circuit, Form, Margins, follow
from transformist.compiler.allocate import allocate
from transformist.compiler.answers import ways
from transformist.compiler.compile_options import Options
from transformist.compiler.emit import emit
from transformist.compiler.error_growth import Lowered, without_growth
from transformist.compiler.format_margins import ORDER, MarginExceeded, require_margins
from transformist.compiler.lower import Lowering
from transformist.compiler.pipeline import begins_with_bos
from transformist.compiler.schedule import schedule
from transformist.programs import PROGRAMS


def circuit_of(program, max_length, weighting, arithmetic):
    """The circuit of the first way of handing out that keeps its margins, with its resets."""
    options = Options(max_length=max_length, weighting=weighting, arithmetic=arithmetic)

    def new_circuit():
        return Circuit(program.alphabet, begins_with_bos(program), max_length, weighting)

    for way in ways(program.output):

        def lower(resets, circuit, way=way):
            lowering = Lowering(program, options, circuit, resets)
            return Lowered(circuit, way(lowering), lowering.source_map)

        with contextlib.suppress(MarginExceeded):
            found, sharpness = without_growth(lower, new_circuit, arithmetic)
            return found.circuit, found.answer, sharpness, found.source_map
    raise AssertionError("no way keeps its margins")


@pytest.mark.parametrize("weighting", ["softmax", "average-hard", "rightmost-hard"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_number_is_in_its_range_and_on_its_grid(name, weighting):
    program, longest = PROGRAMS[name], 9
    try:
        circuit, *_ = circuit_of(program, longest, weighting, "exact")
    except tf.TransformistError as refusal:
        assert weighting == "rightmost-hard" and "attends to several positions" in str(refusal)
        return
    for x in strings(program, longest, 4, 0):
        ideal = Ideal(circuit, x)
        for number, (values, law) in enumerate(zip(ideal.atoms, circuit.laws, strict=True)):
            for i, value in enumerate(values):
                kind = law.rows[ideal.symbols[i]]
                assert kind.lo <= value <= kind.hi, (circuit.names[number], x, i, value, kind)
            symbols = values[circuit.bos :]
            least = circuit.separation(Form.atom(number))
            if least is not None:
                assert all(abs(value) >= least for value in symbols if value), (number, x)
            if law.grid is not None and not law.grid.counts:
                assert all((value * law.grid.c).denominator == 1 for value in symbols)


def largest(program, weighting, arithmetic, limit):
    fits, fails = 0, limit + 1
    while fails - fits > 1:
        middle = (fits + fails) // 2
        try:
            tf.compile(program, max_length=middle, weighting=weighting, arithmetic=arithmetic)
            fits = middle
        except tf.TransformistError:
            fails = middle
    return fits


def require_within_margins(name, weighting, arithmetic, limit, count):
    """The streams at the longest N that fits, against the numbers of the circuit."""
    program = PROGRAMS[name]
    longest = largest(program, weighting, arithmetic, limit)
    if not longest:
        return 0
    circuit, read, sharpness, source_map = circuit_of(program, longest, weighting, arithmetic)
    require_margins(circuit, sharpness, read, arithmetic, source_map.served)
    margins = Margins(
        circuit=circuit,
        sharpness=sharpness,
        a=number_system(arithmetic),
        order=ORDER,
        on_margin=lambda *_: None,
    )
    for _ in circuit.atoms:
        follow(margins)
    allocation = allocate(schedule(circuit, read.read, "many"))
    model = emit(allocation, sharpness, read, source_map)
    compared = 0
    for x in strings(program, longest, count, arithmetic):
        ideal = Ideal(circuit, x)
        trace = model.run(given(program, x), arithmetic)
        for kept, span in zip(allocation.kept, model.stream.spans, strict=True):
            values = trace.values(span.name)
            bound = margins.error(kept.form)
            for i in ideal.rows:
                off = abs(Fraction(float(values[i])) - ideal.form(kept.form, i))
                compared += 1
                assert off <= bound, (name, span.name, x, i, float(off), bound)
    return compared


CASES = [
    (weighting, arithmetic)
    for weighting in ("softmax", "average-hard")
    for arithmetic in ("float16", "bfloat16", "float32")
]


QUICK = ("parity",)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS],
)
def test_no_error_exceeds_its_bound_at_the_longest_that_fits(name):
    compared = sum(require_within_margins(name, *case, 12, 2) for case in CASES)
    assert compared > 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [("softmax", "float32"), ("average-hard", "float16")], ids="-".join
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_error_exceeds_its_bound_on_longer_strings(name, case):
    require_within_margins(name, *case, 40, 3)


def test_a_weaker_temperature_exceeds_the_bound_or_the_margin():
    program = PROGRAMS["reverse"]
    circuit, read, sharpness, source_map = circuit_of(program, 12, "softmax", "float32")
    blunt = {head: Fraction(1, 4) for head in sharpness}
    with pytest.raises(MarginExceeded):
        require_margins(circuit, blunt, read, "float32", source_map.served)
