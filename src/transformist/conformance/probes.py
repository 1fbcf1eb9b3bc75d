"""Instruments that name the formula by which an engine computes.

A network with fixed weights ends each prompt with one number r = (f₀ + f₂)/f₁, a ratio of
coordinates of the vector f that the head over the vocabulary reads. By the formulas of the class,
r = 0. The labels are values of r, and the head answers with the nearest to it, since the logit of v
is 2 v (f₀ + f₂) − v² f₁. The r of each known mistake is computed in float64. Most mistakes have a
label of their own; others share one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from transformist.conformance.families import EVERY_FAMILY, FAMILIES
from transformist.conformance.family import TOKEN_TYPES, Array, DenseModel, Family, Sizes
from transformist.conformance.forward import Formulas, final_vectors
from transformist.conformance.instrument import OTHER, Checkpoint, Instrument, Prompt
from transformist.conformance.mistakes import norms_before, outer_norm_missing
from transformist.conformance.network_files import files_of
from transformist.hosts.vocabulary import Vocabulary

# Engines in float32 differ in r by less than 10⁻⁵ (the tests measure it), and the least change of r
# that changes the answer is half of a step, 10⁻³: a hundred times as much.
STEP = 2.0**-9
"""Distance between the right label and its neighbours."""

SPACING = 2.0**-7
"""Least distance between two labels of mistakes."""

LARGEST = 8.0
"""Largest label."""

LEAST = 0.25
"""Least f₁ for which a mistake gets a label of its own."""

HEADS, SIZE, HIDDEN = 4, 32, 256
"""Numbers of heads, of coordinates of a head, and of hidden units."""

WIDTH = HEADS * SIZE

WEAKER = 4
"""Divisor of the matrices that write to the stream, where each norm divides the stream: x₀ and x₁,
which only the word vector has, would be lost in the sums of many layers."""

SYMBOLS = "abcdefgh"
"""Symbols of the prompts; the last symbol of a prompt is a capital letter of its own."""

PROMPT_LENGTHS = (2, 5, 11, 23)
"""Numbers of symbols of the prompts."""

LONGEST = 256
"""The largest table of positions: no prompt has more than 24 tokens."""

BOS = "<bos>"


@dataclass(frozen=True, kw_only=True)
class _Probe:
    """The settings of a network that differ from the usual ones, and the mistakes that it names."""

    layers: int
    mistakes: Callable[[DenseModel], Mapping[str, Formulas]]
    epsilon: float | None = None
    theta: float = 10000.0
    groups: int = HEADS
    has_biases: bool = False
    has_tails: bool = False
    window: int | None = None


def _norm_mistakes(network: DenseModel) -> Mapping[str, Formulas]:
    family = network.family
    mean = "does not subtract the mean" if family.subtracts_mean else "subtracts the mean"
    return {
        f"eps is {family.epsilon:g}, not the value in the file": Formulas(epsilon=family.epsilon),
        "1 is added to the gain": Formulas(gain=lambda gain: gain + 1),
        f"the norm {mean}": Formulas(subtracts_mean=not family.subtracts_mean),
        **outer_norm_missing(family),
        **norms_before(family),
    }


def _activation_mistakes(network: DenseModel) -> Mapping[str, Formulas]:
    own = network.setting("activation")
    others = [each for each in ("gelu_new", "gelu", "quick_gelu", "silu", "relu") if each != own]
    found = {f"the activation is {each}": Formulas(activation=each) for each in others}
    if network.family.has_gates:
        found["the activation is applied to up_proj"] = Formulas(swaps_gate=True)
    return found


def _depth_mistakes(network: DenseModel) -> Mapping[str, Formulas]:
    found = {}
    for layer in range(network.setting("layers")):
        found[f"layer {layer} is skipped"] = Formulas(order=partial(_without, layer))
        for part in (f"{layer}.attention", f"{layer}.network"):
            found[f"{part} is skipped"] = Formulas(skipped=[part])
            found[f"the input of {part} is not added"] = Formulas(without_residual=[part])
    biases = [name for name in network.tensors if name.endswith(".bias")]
    # A bias of keys adds the same to all scores of a row without rotations; it is then no mistake.
    return found | {f"{name} is missing": Formulas(zeros=[name]) for name in biases}


def _without(layer: int, count: int) -> Sequence[int]:
    """The layers in their order, without one of them."""
    return [each for each in range(count) if each != layer]


def _head_mistakes(network: DenseModel) -> Mapping[str, Formulas]:
    found = {
        "scores have no scale": Formulas(scale=0.0),
        "scores are divided by the size of a head": Formulas(scale=-1.0),
    }
    if network.family.positions is None:
        found |= {
            "query heads take keys and values in turns": Formulas(groups="turns"),
            "rope_theta is 10000, not the value in the file": Formulas(theta=10000.0),
            "rotations pair neighbouring coordinates": Formulas(pairs="neighbours"),
            "there are no rotations": Formulas(theta=0.0),
        }
    if network.window:
        found |= {
            "there is no window": Formulas(window=lambda _size, _: None),
            "the window has one key less": Formulas(window=lambda size, _: size and size - 1),
            "the window has one key more": Formulas(window=lambda size, _: size and size + 1),
        }
    return found


def _network(family: Family, probe: _Probe, length: int, source: random.Random) -> DenseModel:
    """A network with weights that are multiples of 2⁻¹², the same on every machine."""

    def drawn(*shape: int, most: float) -> Array:
        numbers = [source.randint(-64, 64) for _ in range(int(np.prod(shape)))]
        return np.array(numbers, float).reshape(shape) * most / 64

    def norm(name: str) -> dict[str, Array]:
        made = {f"{name}.weight": 1 + drawn(WIDTH, most=0.5)}
        made |= {f"{name}.bias": drawn(WIDTH, most=0.5)} if family.subtracts_mean else {}
        if family.normalizes_after:
            # Each norm changes the stream: these keep x₀ and x₁ beside one another.
            made[f"{name}.weight"][:2], made[f"{name}.bias"][:2] = 1, 0
        return made

    sizes = Sizes(
        layers=probe.layers,
        heads=HEADS,
        groups=probe.groups,
        head=SIZE,
        hidden=HIDDEN,
        positions=length,
    )
    has_biases = probe.has_biases and family.can_have_biases
    tensors: dict[str, Array] = {}
    for layer in range(probe.layers):
        own = f"{family.layers}.{layer}"
        for name, shape in family.matrices(sizes).items():
            stored = shape[::-1] if family.is_transposed else shape
            tensors[f"{own}.{name}.weight"] = drawn(*stored, most=_most(shape))
            if has_biases or family.has_biases(name):
                tensors[f"{own}.{name}.bias"] = drawn(shape[1], most=0.5)
        for each in family.norms:
            tensors |= norm(f"{own}.{each}")
    tensors |= norm(family.outer)
    for table, rows in ((family.positions, length), (family.types, TOKEN_TYPES)):
        if table:
            tensors[table] = drawn(rows, WIDTH, most=0.5)
            tensors[table][:, 1] = 0
    for layer in range(probe.layers):
        # No sublayer writes to coordinate 1: f₁ is positive, as the word vectors have it.
        for name, shape in family.matrices(sizes).items():
            own = f"{family.layers}.{layer}.{name}"
            if name in family.written:
                _by_output(family, tensors[f"{own}.weight"])[:, 1] = 0
                if family.normalizes_after:
                    tensors[f"{own}.weight"] /= WEAKER
            if f"{own}.bias" in tensors and shape[1] == WIDTH:
                tensors[f"{own}.bias"][1] = 0
    if probe.has_tails and not family.has_gates:
        # gelu_new and gelu differ most, by 4.4 · 10⁻⁴, near −2.5: all hidden units add there.
        up, down = [*family.matrices(sizes)][-2:]
        own = f"{family.layers}.0"
        tensors[f"{own}.{up}.weight"] /= 16
        tensors[f"{own}.{up}.bias"] = np.full(HIDDEN, -2.5)
        tensors[f"{own}.{down}.weight"][:] = 0
        _by_output(family, tensors[f"{own}.{down}.weight"])[:, 0] = 1
    config = family.config(sizes, probe.epsilon or family.epsilon, probe.theta, has_biases)
    if "window" in family.settings:
        config[family.settings["window"]] = probe.window
    return DenseModel(family=family, config=config, tensors=tensors)


def _by_output(family: Family, matrix: Array) -> Array:
    """A view of a stored matrix, of shape (in, out)."""
    return matrix.T if family.is_transposed else matrix


def _most(shape: tuple[int, int]) -> float:
    """The largest weight of a matrix (in, out)."""
    # After a norm, a coordinate is about 1 and a weight on average half of the largest: queries and
    # keys then have coordinates of about 1.6, so that attention is neither uniform nor hard.
    return 0.125 if shape[0] == HIDDEN else 0.25


def _made(name: str, probe: _Probe) -> Callable[[str, int], Checkpoint]:
    def make(family: str, length: int) -> Checkpoint:
        source = random.Random(f"{name} {family}")
        network = _network(FAMILIES[family], probe, length, source)
        ends = "ABCDEFGH"[: len(PROMPT_LENGTHS)]
        bodies = ["".join(source.choices(SYMBOLS, k=n - 1)) for n in PROMPT_LENGTHS]
        inputs = [BOS, *SYMBOLS, *ends]
        place = {text: k for k, text in enumerate(inputs)}
        words = np.array([[source.randint(-64, 64) / 64 for _ in range(WIDTH)] for _ in inputs])
        # With 6 in coordinate 1 and at most 1 in the others, and no sublayer that writes to it, f₁
        # stays positive through the norm, for every weight from 1/2 to 3/2. `_zero` and `_labels`
        # check its size.
        words[:, 0], words[:, 1] = 0, 6
        rows = [
            [place[each] for each in (BOS, *body, end)]
            for body, end in zip(bodies, ends, strict=True)
        ]
        tensors = {**network.tensors, network.family.words: words}
        network = replace(network, tensors=tensors)
        for ids in rows:
            # What the last token adds to coordinate 0 reaches r by the residual stream, and little
            # by other ways: Newton's steps with a secant find r = 0.
            _zero(network, words[ids[-1]], ids)
        # Each mistake is evaluated here once: its answer is known before any engine is run.
        mistakes = probe.mistakes(network)
        found = [
            {words_: _read(network, ids, by) for words_, by in mistakes.items()} for ids in rows
        ]
        labels = _labels([read for each in found for read in each.values()])
        texts, files = _files(network, labels, inputs, length)
        prompts = [
            Prompt(
                tokens=[inputs[k] for k in ids],
                text=f"{body}{end}",
                reads=[len(ids) - 1],
                expected=[_text(0.0)],
                length=len(ids),
                wrong=_meanings(labels, each),
            )
            for ids, body, end, each in zip(rows, bodies, ends, found, strict=True)
        ]
        return Checkpoint(files=files, texts=texts, prompts=prompts)

    return make


def _read(network: DenseModel, ids: Sequence[int], by: Formulas) -> tuple[float, float]:
    """The numbers f₀ + f₂ and f₁ after the last token."""
    found = final_vectors(network, ids, by)[-1]
    return float(found[0] + found[2]), float(found[1])


def _ratio(network: DenseModel, ids: Sequence[int]) -> float:
    above, below = _read(network, ids, Formulas())
    return above / below


def _zero(network: DenseModel, word: Array, ids: Sequence[int]) -> None:
    """Set coordinate 0 of the last word, a multiple of 2⁻¹⁸, so that r = 0."""
    # The secant through (x₀, r₀) and (x₁, r₁) meets 0 at x₁ − r₁ (x₁ − x₀)/(r₁ − r₀). r is nearly
    # linear in the word's coordinate, so that a few steps reach 10⁻⁹.
    x0, r0 = 0.0, _ratio(network, ids)
    x1 = 1.0
    for _ in range(12):
        word[0] = x1
        r1 = _ratio(network, ids)
        if abs(r1) < 1e-9 or r1 == r0:
            break
        x0, x1, r0 = x1, x1 - r1 * (x1 - x0) / (r1 - r0), r1
    word[0] = round(word[0] * 2.0**18) / 2.0**18
    # An engine then has STEP (1/2 − 1/64) to spare before its answer is a neighbour of 0.
    if abs(_ratio(network, ids)) > STEP / 64 or _read(network, ids, Formulas())[1] < LEAST:
        raise AssertionError(f"no r = 0 for {ids}")


def _labels(reads: Sequence[tuple[float, float]]) -> list[float]:
    """Labels: 0 first, its neighbours, and one within `SPACING` of most r of mistakes."""
    found = [0.0, STEP, -STEP]
    for r in sorted(above / below for above, below in reads if below > LEAST):
        near = round(r * 2**12) / 2**12
        # Two labels of mistakes differ by `SPACING`, so that each has its half of this on both
        # sides. A mistake within `SPACING` of a label shares it, and one within 2 `STEP` of 0 has
        # ±`STEP` or 0.
        is_far = all(abs(near - each) >= SPACING for each in found[3:])
        if is_far and 2 * STEP <= abs(near) <= LARGEST:
            found.append(near)
    return found


def _text(label: float) -> str:
    return f"{label:+.5f}"


def _meanings(labels: Sequence[float], reads: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """The meanings of labels: the mistakes that have each of them as their answer."""
    named: dict[str, list[str]] = {}
    for words, (above, below) in reads.items():
        # 2 v (f₀ + f₂) − v² f₁ = f₁ (r² − (v − r)²): for f₁ > 0 it is largest at the label nearest
        # to r. For a mistake with f₁ ≤ 0 it is still what the head answers.
        answer = max(labels, key=lambda v: 2 * v * above - v * v * below)
        if answer:
            named.setdefault(_text(answer), []).append(words)
    return {
        **{text: " or ".join(every) for text, every in named.items()},
        OTHER: "another formula, a coarser format, or another order of weights",
    }


def _files(
    network: DenseModel, labels: Sequence[float], inputs: Sequence[str], length: int
) -> tuple[tuple[str, ...], dict[str, bytes]]:
    """The texts of the tokens, and the files of the checkpoint."""
    front = [*map(_text, labels), *inputs, "<pad>", "<eos>"]
    texts = (*front, *(f"<unused{k}>" for k in range(-len(front) % 8)))
    number = {text: k for k, text in enumerate(texts)}
    tokens = Vocabulary(
        texts=texts,
        symbols=tuple(number[each] for each in inputs),
        answers=tuple(range(len(labels))),
        front=(number[BOS],),
        back=(),
        pad=number["<pad>"],
        bos=number[BOS],
        eos=number["<eos>"],
        by_character=True,
    )
    name = network.family.words
    words = np.zeros((len(texts), WIDTH))
    words[[*tokens.symbols]] = network.tensors[name]
    head = np.zeros((len(texts), WIDTH))
    # The row of the label v is 2 v at f₀ and f₂ and −v² at f₁: its logit is the formula above.
    head[: len(labels), [0, 2]] = 2 * np.array(labels)[:, None]
    head[: len(labels), 1] = -np.square(labels)
    # f₁ is positive, so that no symbol and no special token has the largest logit.
    head[len(labels) :, 1] = -1024
    tensors = {**network.tensors, name: words, network.family.head: head}
    if network.family.head_bias:
        tensors[network.family.head_bias] = np.zeros(len(texts))
    return texts, files_of(replace(network, tensors=tensors), tokens, length)


NORM = _Probe(layers=1, epsilon=0.5, mistakes=_norm_mistakes)
ACTIVATION = _Probe(layers=1, has_tails=True, mistakes=_activation_mistakes)
DEPTH = _Probe(layers=3, has_biases=True, mistakes=_depth_mistakes)
ATTENTION = _Probe(layers=2, theta=500.0, groups=2, window=9, mistakes=_head_mistakes)

INSTRUMENTS = (
    Instrument(
        name="norm",
        summary="names the formula of the norms; eps in the file is 0.5",
        depends_on=("norms",),
        families=EVERY_FAMILY,
        make=_made("norm", NORM),
        longest=LONGEST,
    ),
    Instrument(
        name="activation",
        summary="names the activation",
        depends_on=("activation",),
        families=EVERY_FAMILY,
        make=_made("activation", ACTIVATION),
        longest=LONGEST,
    ),
    Instrument(
        name="depth",
        summary="names the sublayer or the bias that is left out",
        depends_on=("biases", "layers", "residual stream"),
        families=EVERY_FAMILY,
        make=_made("depth", DEPTH),
        longest=LONGEST,
    ),
    Instrument(
        name="heads",
        summary="names the formula of heads: groups, scale of scores, rotations",
        depends_on=("heads", "scale of scores", "rotations"),
        families=EVERY_FAMILY,
        make=_made("heads", ATTENTION),
        longest=LONGEST,
    ),
)
