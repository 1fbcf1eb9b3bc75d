"""Programs of many steps: errors do not grow with depth, and the weights are certified."""

import itertools
import random
from collections import Counter
from fractions import Fraction

import pytest

import transformist as tf
from drawn_programs import drawn, outcome
from transformist.arithmetic import number_system
from transformist.compiler import pipeline
from transformist.compiler.error_growth import margined
from transformist.compiler.format_margins import GrowingErrors
from transformist.compiler.lower.resets import Resets

LARGEST = 7
"""Largest word of the machine's memory, and so its largest address."""


def parity_from_the_left(steps):
    """[an odd number of ones stands before a position], of the last `steps` symbols, in a loop."""

    @tf.program(alphabet="01")
    def parity(x):
        one = x == "1"
        odd = one
        for _ in range(1, steps):
            odd = odd.predecessor() ^ one
        return odd.tag()

    return parity


def flips(steps):
    """A Boolean that a fetched bit begins, and the own symbol flips at each other step."""

    @tf.program(alphabet="01")
    def flipped(x):
        one = x == "1"
        odd = one.predecessor()
        for _ in range(1, steps):
            odd = odd ^ one
        return odd.tag()

    return flipped


def one_instruction_machine(steps):
    """Memory and instructions are the input, from address 1; an address without a word holds 0.

    An instruction is three words: subtract the word at the first address from that at the second,
    modulo 8, and go to the third address if the difference, before the modulo, is at most 0. Else
    the next instruction follows; the last address is followed by itself.
    """

    @tf.program(alphabet=tuple(map(str, range(LARGEST + 1))))
    def machine(x):
        here = x.position("i")
        cell = x.map({str(word): word for word in range(LARGEST + 1)})
        at = x.map({str(word): 1 for word in range(LARGEST + 1)})
        for _ in range(steps):
            first, second, target = (cell.lookup(at + k, default=0) for k in range(3))
            value = cell.lookup(second, default=0) - cell.lookup(first, default=0)
            cell = (here == second).where(value % (LARGEST + 1), cell)
            at = (value <= 0).where(target, (at + 3).clip(0, LARGEST))
        return cell.tag()

    return machine


def parities(text, steps):
    return [text[max(0, end - steps) : end].count("1") % 2 == 1 for end in range(1, len(text) + 1)]


def flipped(text, steps):
    before = ("0" + text)[: len(text)]
    return [
        (int(bit) + (steps - 1) * int(own)) % 2 == 1 for bit, own in zip(before, text, strict=True)
    ]


def after(words, steps):
    """The memory of the machine after its steps."""
    memory, at = dict(enumerate(words, 1)), 1
    for _ in range(steps):
        first, second, target = (memory.get(at + k, 0) for k in range(3))
        value = memory.get(second, 0) - memory.get(first, 0)
        if second in memory:
            memory[second] = value % (LARGEST + 1)
        at = target if value <= 0 else min(at + 3, LARGEST)
    return [memory[k] for k in sorted(memory)]


def bits(draw, n):
    return "".join(draw.choices("01", k=n))


def require_certified(model):
    found = tf.certify(model, "float32")
    assert found.holds and found.grade == 1, found
    return found


@pytest.mark.parametrize(
    ("program", "answers", "steps"),
    [
        (flips, flipped, 20),
        pytest.param(flips, flipped, 100, marks=pytest.mark.slow),
        pytest.param(parity_from_the_left, parities, 100, marks=pytest.mark.slow),
    ],
)
def test_a_boolean_is_flipped_at_each_step(program, answers, steps):
    model = tf.compile(program(steps), max_length=steps)
    assert len(model.layers) == steps - 1
    require_certified(model)
    draw = random.Random(steps)
    given = ["", "1" * steps, "0" * steps, *(bits(draw, n) for n in (1, 2, steps - 1, steps))]
    for text, got in zip(given, model.answers(given, "float32"), strict=True):
        assert got == answers(text, steps), text


def drawn_memories(count):
    """Memories of up to eight words; the first one counts down in a loop of one instruction."""
    draw = random.Random(1)
    drawn = [draw.choices(range(LARGEST + 1), k=draw.randint(1, 8)) for _ in range(count)]
    return [[5, 4, 1, 6, 1, 0, 0, 3], [4, 5, 4, 1, 7], *drawn]


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3, 20])
def test_a_machine_takes_its_steps(steps):
    model = tf.compile(one_instruction_machine(steps), max_length=8)
    require_certified(model)
    memories = drawn_memories(60)
    answers = model.answers([[str(word) for word in each] for each in memories], "float32")
    for words, got in zip(memories, answers, strict=True):
        assert got == after(words, steps), words


def test_the_machine_of_the_reference_has_memories_that_tell_steps_apart():
    """Each further step changes some memory, and jumps are taken and not taken."""
    for steps in range(1, 20):
        assert any(after(m, steps) != after(m, steps - 1) for m in drawn_memories(60)), steps


@pytest.mark.slow
def test_errors_do_not_grow_with_depth():
    margins = [
        require_certified(tf.compile(flips(steps), max_length=8)).margin for steps in (20, 40)
    ]
    assert margins[1] > 0.99 * margins[0] > 0.9


def reset_wherever_possible(lower, new_circuit, arithmetic):
    """Stand-in for `without_growth` that resets every subexpression with few values."""
    circuit = new_circuit()
    a = number_system("float64" if arithmetic == "exact" else arithmetic)
    found = lower(Resets(GrowingErrors(circuit, a), part=Fraction(-1)), circuit)
    return found, margined(found, arithmetic)


@tf.program(alphabet="ab")
def unequal_gaps(x):
    """A number with the values −1, 1/2 and 5, and a Boolean, both fetched."""
    number = x.map({"a": -1, "b": Fraction(1, 2)}).predecessor(default=5)
    return (number + (x == "a").predecessor(2).where(3, 0)).tag()


def test_resets_of_a_number_with_unequal_gaps(monkeypatch):
    monkeypatch.setattr(pipeline, "without_growth", reset_wherever_possible)
    model = tf.compile(unequal_gaps, max_length=5)
    assert any("reset" in span.name for span in model.stream.spans), model.stream.spans
    for text in ("", *map("".join, itertools.product("ab", repeat=5))):
        assert model.run(text, "float32").answer == unequal_gaps(text), text


@pytest.mark.trials(4, 120)
def test_a_reset_keeps_the_values(monkeypatch, trials):
    monkeypatch.setattr(pipeline, "without_growth", reset_wherever_possible)
    draw, counts = random.Random(3), Counter()
    while counts.total() < trials:
        case = drawn(draw)
        if case.max_length is not None:
            what, found = outcome(case)
            assert what != "wrong", f"{case}: {found}"
            counts[what] += what != "no program"
    assert counts["right"] > trials / 3
