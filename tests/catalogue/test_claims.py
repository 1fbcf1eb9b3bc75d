"""One suite over the whole catalogue: every claim, in every arithmetic it names."""

import functools
import inspect
import itertools
import math
import re
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist import assembly, bounds
from transformist.arithmetic import EXACT, SYSTEMS, number_system
from transformist.claims import (
    FunctionClaim,
    LengthClaim,
    PositionClaim,
    SequenceClaim,
    StringClaim,
    ask,
)
from transformist.errors import (
    InvalidValue,
    NotFinite,
    NotRepresentable,
    ShapeMismatch,
    UndefinedValue,
    UnknownName,
)
from transformist.model import (
    Attention,
    FeedForwardStack,
    LayerStack,
    PositionEncoding,
    Sublayer,
    Weighting,
    rationals,
)
from transformist.report.size import size
from transformist.settings import SETTINGS
from transformist.verify import check_recipe

by_name = pytest.mark.parametrize("recipe", tf.recipes(), ids=lambda recipe: recipe.name)
functions = pytest.mark.parametrize(
    "recipe",
    [each for each in tf.recipes() if isinstance(each.claim, FunctionClaim)],
    ids=lambda recipe: recipe.name,
)


@by_name
def test_the_claim_holds_on_fewer_cases(recipe, short):
    """Under the defaults and the first of other settings."""
    recipe = replace(recipe, claim=replace(recipe.claim, variants=recipe.claim.variants[:1]))
    if recipe.name.startswith("almost-orthogonal-lookup"):
        model, settings = built_small(recipe)
        recipe = always(model, recipe, settings)
    verdict = check_recipe(recipe)
    assert verdict.held, str(verdict.counterexample)
    assert verdict.cases >= len(verdict.arithmetics)


@pytest.mark.slow
@by_name
def test_the_claim_holds(recipe):
    verdict = check_recipe(recipe)
    assert verdict.held, str(verdict.counterexample)
    assert verdict.cases >= 10 * len(verdict.arithmetics) or recipe.name == "not"


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe",
    [each for each in tf.recipes() if isinstance(each.claim, SequenceClaim)],
    ids=lambda recipe: recipe.name,
)
def test_the_claim_holds_for_lists_of_up_to_four(recipe):
    assert check_recipe(recipe, max_length=4).held


@by_name
def test_an_arithmetic_is_excluded_by_name_with_a_reason(recipe):
    excluded = recipe.claim.excluded
    assert set(excluded) <= set(SYSTEMS) and all(excluded.values())
    assert recipe.safe_lengths()


@by_name
def test_it_builds_without_arguments_and_knows_its_parameters(recipe):
    recipe.build()
    assert set(recipe.parameters) <= set(SETTINGS)
    assert recipe.section and recipe.summary
    assert recipe.sources[0] == f"{recipe.document}, {recipe.section}"


STABLE = """
    position-reciprocal position-fraction position-parity position-power position-one-hot
    position-almost-orthogonal position-sinusoidal position-layernorm-hash reciprocal-from-bos
    one-over-n-from-bos convert-boolean convert-category convert-integer
    cpwl max-affine cpwl-polyhedra cancel-residual zero identity min max add subtract
    linear scale relu-by-gelu multiply-by-gelu greater-than-zero greater-or-equal-zero
    equal-zero greater-than-zero-with greater-or-equal-zero-with equal-zero-with boolean and or
    not conditional clip step-by-sigmoid identity-by-tanh relu-by-elu switch-by-glu multiply-by-gate
    attend-nothing mean prefix-mean first first-value predecessor
    predecessor-strict predecessor-quadratic successor-strict nearest-left nearest-right
    one-hot-lookup almost-orthogonal-lookup quadratic-lookup quadratic-lookup-soft
    modulo-by-sinusoids split-heads tie-break soften soften-by-precision
    first-value-soft almost-orthogonal-lookup-soft layernorm-hash-head-soft round-to-bit
    layernorm-pairs layernorm-sign selective-layernorm layernorm-hash-head layernorm-hash-lookup
    exact-step route serial parallel flag add-at-flag zero-at-flag ignore-coordinates
    linear-to-the-right linear-in-place gate-by-flag max-of-two max-of-many parity count-modulo
    induction-most-recent induction-most-frequent dyck-1-uniform dyck-1 dyck-1-nonuniform
    dyck-1-exact-uniform dyck-1-2 dyck-k-d original-transformer
"""


def test_names_are_stable_and_in_order():
    names = [recipe.name for recipe in tf.recipes()]
    assert len(set(names)) == len(names)
    assert [name for name in names if name in STABLE.split()] == STABLE.split()


def test_a_recipe_declares_its_parameters():
    with pytest.raises(UnknownName, match="setting"):
        replace(tf.recipe("not"), construct=lambda flavour=1: None)


def test_a_reference_gives_a_list():
    claim = replace(tf.recipe("not").claim, reference=lambda x: 1 - x)
    with pytest.raises(InvalidValue, match="list of outputs"):
        check_recipe(replace(tf.recipe("not"), claim=claim))


def parts_of(model):
    """The networks and norms of a model, each with the function that puts another in its place."""
    if isinstance(model, FeedForwardStack):
        for k, part in enumerate(model.parts):
            yield (
                part,
                lambda new, k=k: FeedForwardStack((*model.parts[:k], new, *model.parts[k + 1 :])),
            )
    elif isinstance(model, Sublayer):
        for name in ("function", "pre_norm", "post_norm"):
            if getattr(model, name) is not None:
                yield getattr(model, name), lambda new, name=name: replace(model, **{name: new})
    else:
        yield model, lambda new: new


def planted(model):
    """For each weight, the models with it an eighth larger and smaller; a 0 becomes 1 and −1."""
    for index, (part, put) in enumerate(parts_of(model)):
        for each in fields(part):
            if not each.metadata.get("weights") or getattr(part, each.name) is None:
                continue
            exact = rationals(getattr(part, each.name))
            for place in np.ndindex(exact.shape):
                pair = []
                for direction in (1, -1):
                    moved = exact.copy()
                    moved[place] += direction * (moved[place] / 8 or 1)
                    if each.name != "epsilon" or moved[place] >= 0:
                        pair.append(put(changed(part, **{each.name: moved})))
                yield f"{each.name} of part {index} at {place}", pair


# Settings without redundancy, where the default has hidden units that are multiplied by 0.
PLANTED_IN = {
    "convert-category": {"categories": 3, "width": 8},
    "boolean": {"table": "11111111"},
    "max-affine": {
        "pieces": [[1, 0, 0], [0, 1, 0], [-1, -1, 1], [2, -1, -1]],
        "minus": [[1, 1, -2], [-1, 0, -1], [0, -2, 0], [-1, 2, -2]],
    },
}


@pytest.mark.slow
@functions
def test_a_planted_fault_is_caught(recipe):
    """Each weight matters, in one direction at least, and the claim notices."""
    given = PLANTED_IN.get(recipe.name, {})
    settings = recipe.settings(given)
    for where, pair in planted(recipe.build(**given)):
        if recipe.name == "zero" and "b_2" not in where:
            continue  # W₁ and b₁ are multiplied by 0, and W₂ multiplies 0
        if where in [f"gain of part 0 at ({k},)" for k in range(4, 8)]:
            assert recipe.name == "selective-layernorm"
            continue  # they multiply 0
        assert any(is_refuted(always(faulty, recipe, settings)) for faulty in pair), where


def is_refuted(recipe, max_length=None):
    """Whether the claim is seen not to hold; a root or a quotient that is refused shows it too."""
    try:
        return not check_recipe(recipe, max_length).held
    except (NotRepresentable, UndefinedValue):
        return True


def always(model, recipe, settings):
    """The recipe with this model whatever it is asked for, under these settings alone."""

    @functools.wraps(recipe.construct)
    def build(**_):
        return model

    signature = inspect.signature(recipe.construct)
    chosen = [each.replace(default=settings[each.name]) for each in signature.parameters.values()]
    build.__signature__ = signature.replace(parameters=chosen)
    return replace(recipe, construct=build, claim=replace(recipe.claim, variants=()))


def test_every_boolean_table_of_up_to_three_bits():
    for m in (1, 2, 3):
        inputs = list(itertools.product((0, 1), repeat=m))
        for table in itertools.product((0, 1), repeat=2**m):
            network = tf.recipe("boolean").build(table=table)
            for arithmetic in ("exact", "bfloat16"):
                got = network(inputs, arithmetic).tolist()
                assert [row[0] for row in got] == list(table)


def test_small_floats_of_min_and_max_one_and_all():
    """Every pair of bfloat16 numbers of three binades: the bound and where the result is exact."""
    system = number_system("bfloat16")
    u, w = system.unit_roundoff, Fraction(1, 2**24)
    axis = [s * m * 2.0**e for s in (1, -1) for e in (-9, -8, -3) for m in range(128, 256, 3)]
    pairs = np.array(list(itertools.product(axis, axis)))
    for name, reference, ordered in (
        ("min", np.minimum, pairs[:, 0] <= pairs[:, 1]),
        ("max", np.maximum, pairs[:, 0] >= pairs[:, 1]),
    ):
        got = system.numbers(tf.recipe(name).build()(system.array(pairs), system))[:, 0]
        error = np.abs(got - reference(*pairs.T))
        difference = pairs[:, 0] - pairs[:, 1]
        representable = system.numbers(system.array(difference)) == difference
        assert (error <= float(2 * (u + 2 * w)) * np.abs(difference)).all()
        assert (error[ordered | representable] == 0).all()
        assert (error > 0).any()  # "zero error", as sometimes said, is false


def test_the_known_float_failures_of_min_and_max():
    least, largest = tf.recipe("min").build(), tf.recipe("max").build()
    assert least([1e16, 1]).tolist() == [0]
    assert largest([-1e16, 1]).tolist() == [0]
    assert least([1, 0.1]).tolist() != [0.1]
    assert least([1e16, 1], "exact").tolist() == [1]


def test_the_reference_of_a_claim_gets_only_what_it_names():
    assert ask(lambda x, *, a: (x, a), Fraction(1), a=2, b=3) == (1, 2)
    with pytest.raises(KeyError):
        ask(lambda *, c: c, a=2)


@by_name
def test_functions_that_a_claim_names_can_be_called(recipe):
    named = re.findall(r"\b(bounds|assembly)\.(\w+)", f"{recipe.claim} {recipe.sources}")
    rooms = {"bounds": bounds, "assembly": assembly}
    assert all(callable(getattr(rooms[room], name)) for room, name in named), named


BAD = [
    ("greater-than-zero", {"epsilon": 0}, InvalidValue, "epsilon must be a positive number"),
    ("equal-zero", {"epsilon": "-1/8"}, InvalidValue, "positive"),
    ("clip", {"delta": 0}, InvalidValue, "positive"),
    ("cpwl", {"knots": [0, 0], "values": [1, 2]}, InvalidValue, "increase strictly"),
    ("cpwl", {"knots": [0, 1], "values": [1]}, InvalidValue, "2 knots and 1 values"),
    ("cpwl", {"knots": [0], "values": [1]}, InvalidValue, "at least two knots"),
    ("conditional", {"lo": 1, "hi": 1}, InvalidValue, "lo < hi"),
    ("multiply-by-gelu", {"activation": "gelu-sigmoid"}, InvalidValue, "second derivative"),
    ("multiply-by-gelu", {"lo": 0, "hi": 0}, InvalidValue, "lo < hi"),
    ("boolean", {"table": [0, 1, 1]}, InvalidValue, "2, 4, 8"),
    ("boolean", {"table": [0, 2]}, InvalidValue, "bits"),
    ("boolean", {"table": [0, 0.5]}, InvalidValue, "bits"),
    ("cancel-residual", {"matrix": [[1, 2]]}, ShapeMismatch, "square"),
    ("linear", {"matrix": [[1], [1, 2]]}, InvalidValue, "rows"),
    ("linear", {"matrix": []}, InvalidValue, "rows"),
    ("linear", {"matrix": [["nan"]]}, InvalidValue, "finite"),
    ("max-affine", {"pieces": [[1]]}, ShapeMismatch, "coefficient"),
    ("max-affine", {"minus": [[1, 2]]}, ShapeMismatch, "one length"),
    ("scale", {"factor": "x"}, InvalidValue, "factor must be a number"),
    ("scale", {"factor": True}, InvalidValue, "number"),
    ("identity", {"width": 0}, InvalidValue, "from 1 to 256"),
    ("identity", {"width": 1.5}, InvalidValue, "whole"),
    ("dyck-1", {"max_length": 0}, InvalidValue, "at least 1"),
    ("dyck-1", {"maxlength": 4}, UnknownName, "did you mean max_length"),
    ("min", {"width": 4}, UnknownName, "takes no parameters"),
]


@pytest.mark.parametrize(("name", "settings", "refusal", "words"), BAD)
def test_bad_settings_are_refused(name, settings, refusal, words):
    with pytest.raises(refusal, match=words):
        tf.recipe(name).build(**settings)


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(UnknownName, match="did you mean dyck-1"):
        tf.recipe("dyck1")


def test_a_format_that_cannot_hold_the_weights_refuses():
    sharp = tf.recipe("relu-by-gelu").build(tolerance="1e-9")
    with pytest.raises(NotFinite, match="65504"):
        sharp([1], "float16")


# What weights depend on, and how wide they are


def arrays(model, path=""):
    """Every parameter array of a model, with the place where it stands."""
    if isinstance(model, tuple):
        for index, each in enumerate(model):
            yield from arrays(each, f"{path}[{index}]")
    elif is_dataclass(model):
        for each in fields(model):
            value = getattr(model, each.name)
            if each.metadata.get("weights"):
                yield f"{path}.{each.name}", value
            elif each.init:
                yield from arrays(value, f"{path}.{each.name}")


def same(one, other):
    """Whether two models have the same parameters."""
    pairs = itertools.zip_longest(arrays(one), arrays(other), fillvalue=("", None))
    return all(
        place == where and (x is y or np.array_equal(x, y)) for (place, x), (where, y) in pairs
    )


def variants(recipe):
    return [recipe.settings(given) for given in ({}, *recipe.claim.variants)]


def test_the_walker_finds_every_parameter():
    for recipe in tf.recipes():
        model = recipe.build()
        found = (array for _, array in arrays(model) if array is not None)
        assert sum(np.count_nonzero(array) for array in found) == model.nonzero, recipe.name


bounded = pytest.mark.parametrize(
    "recipe",
    [each for each in tf.recipes() if "max_length" in each.parameters],
    ids=lambda recipe: recipe.name,
)


@bounded
def test_weights_and_width_change_with_the_longest_length_as_claimed(recipe):
    claim = recipe.claim
    kinds = {settings.get("weighting"): settings for settings in variants(recipe)[::-1]}
    for settings in kinds.values():
        small = {"alphabet": ("a", "b")} if "alphabet" in settings else {}
        models = [recipe.construct(**{**settings, **small, "max_length": N}) for N in (4, 16, 64)]
        depends = "N" in claim.dependence(settings)
        for one, other in itertools.combinations(models, 2):
            assert same(one, other) != depends
        grows = "N" in claim.size and "whatever N" not in claim.size
        assert len({size(model).width for model in models}) == (3 if grows else 1)


@pytest.mark.parametrize(
    "recipe",
    [each for each in tf.recipes() if isinstance(each.claim, SequenceClaim | StringClaim)],
    ids=lambda recipe: recipe.name,
)
def test_what_depends_on_n_is_a_feature_over_n(recipe):
    for settings in variants(recipe):
        over_n = any("/n" in feature for feature in recipe.claim.needed_features(settings))
        assert over_n == ("n" in recipe.claim.dependence(settings)), settings


@pytest.mark.parametrize(
    "recipe",
    [each for each in tf.recipes() if isinstance(each.claim, PositionClaim)],
    ids=lambda recipe: recipe.name,
)
def test_an_encoding_is_a_prefix_of_the_longer_one_unless_it_depends_on_n(recipe):
    encoding = recipe.build()
    vectors = encoding(9, "exact").tolist()
    prefixes = [encoding(n, "exact").tolist() == vectors[:n] for n in range(1, 9)]
    assert all(prefixes) == ("n" not in recipe.claim.dependence(recipe.settings({})))


def dimension(N, epsilon):
    return math.ceil(2 / epsilon**2 * math.log(2 * N * (N - 1)))


LONGEST = (4, 11, 64)
WIDTHS = [
    *[("position-one-hot", {"max_length": N}, N) for N in LONGEST],
    *[
        (name, {"max_length": N}, 2 * N + 1)
        for name in ("one-hot-lookup", "soften", "soften-by-precision")
        for N in LONGEST
    ],
    *[
        ("position-almost-orthogonal", {"max_length": N, "epsilon": e}, dimension(N, e))
        for N in LONGEST
        for e in (0.25, 0.4375)
    ],
    *[
        ("almost-orthogonal-lookup", {"max_length": N, "epsilon": e}, 2 * dimension(N, e) + 1)
        for N in LONGEST
        for e in (0.25, 0.4375)
    ],
    ("almost-orthogonal-lookup", {"max_length": 4, "width": 102}, 205),
    *[("split-heads", {"heads": H}, 2 * H) for H in (2, 3, 5)],
    *[("serial", {"times": t}, t + 2) for t in (1, 2, 5)],
    *[("induction-most-recent", {"alphabet": a}, 3 * len(a)) for a in ("ab", "xyz")],
    *[
        ("induction-most-recent", {"alphabet": a, "weighting": "average-hard"}, 3 * len(a) + 2)
        for a in ("ab", "xyz")
    ],
    *[
        ("induction-most-recent", {"alphabet": a, "weighting": "softmax"}, 4 * len(a) + 2)
        for a in ("ab", "xyz")
    ],
    *[
        ("induction-most-frequent", {"alphabet": a}, 2 * len(a) ** 2 + 4 * len(a) + 2)
        for a in ("ab", "xyz")
    ],
    *[
        (
            "induction-most-frequent",
            {"alphabet": a, "weighting": weighting},
            2 * len(a) ** 2 + 4 * len(a) + 4,
        )
        for a in ("ab", "xyz")
        for weighting in ("average-hard", "softmax")
    ],
    *[("dyck-k-d", {"kinds": k, "depth": D}, 8) for k in (1, 2, 9) for D in (1, 3)],
    ("dyck-1-2", {}, 8),
    ("parity", {}, 8),
]


@pytest.mark.parametrize(("name", "given", "width"), WIDTHS)
def test_the_width_is_the_claimed_formula(name, given, width):
    assert size(tf.recipe(name).build(**given)).width == width


def test_the_layers_and_hidden_units_are_the_claimed_numbers():
    for t in (1, 2, 5):
        assert size(tf.recipe("serial").build(times=t)).layers == t
    for weighting in ("rightmost-hard", "average-hard", "softmax"):
        given = {"weighting": weighting, "alphabet": "xyz"}
        assert size(tf.recipe("induction-most-recent").build(**given)).layers == 2
        model = tf.recipe("induction-most-frequent").build(**given)
        assert size(model).layers == 3
        assert max(len(layer.feed_forward.b_1) for layer in model.layers) == 2 * 3**2
    for k, D in ((1, 1), (2, 3), (9, 2)):
        model = tf.recipe("dyck-k-d").build(kinds=k, depth=D)
        assert size(model).layers == D + 1
        *rounds, last = model.layers
        assert {len(layer.feed_forward.b_1) for layer in rounds} == {10}
        assert last.feed_forward is None
    assert size(tf.recipe("dyck-1-2").build()).layers == 3
    parity = tf.recipe("parity").build()
    assert len(parity.layers) == 2 and not any(layer.feed_forward for layer in parity.layers)
    both = size(tf.recipe("parallel").build(max_length=9))
    one, other = size(tf.recipe("dyck-1").build(max_length=9)), size(tf.recipe("dyck-1-2").build())
    assert both.width == one.width + other.width
    assert both.layers == max(one.layers, other.layers)


# The gap


def heads_and_vectors(recipe, settings, n):
    """Each head with the exact vectors (lists, n, d) that it reads, for many inputs of length n."""
    model = recipe.construct(**settings)
    if isinstance(model, Attention):
        domain = ask(recipe.claim.domain, **settings)
        yield model, domain.encode(domain.cases(n, 16, EXACT), n, EXACT)
        return
    if isinstance(model, LayerStack):
        domain = ask(recipe.claim.domain, **settings)
        x = domain.encode(domain.cases(n, 16, EXACT), n, EXACT)
        before = model.streams(x, EXACT)
        for layer in model.layers:
            for name, _ in layer.sublayers():
                z = next(before)
                yield from ((head, z) for head in (layer.heads if name == "attention" else ()))
        return
    model = hardened(model)
    strings = ask(recipe.claim.domain, **settings)
    alphabet = strings.alphabet
    every = strings.every(n, n) if len(alphabet) ** n <= 64 else ()
    for x in dict.fromkeys([*every, *strings.hard(n), *strings.drawn(n, 10, seed=1)]):
        if len(x) != n:
            continue
        before = iter(model.run(x, EXACT).streams)
        for layer in model.layers:
            for name, _ in layer.sublayers():
                _, z = next(before)
                yield from ((head, z) for head in (layer.heads if name == "attention" else ()))


def hardened(model):
    """The model with average-hard heads for soft ones, whose scores exact arithmetic can follow."""
    return replace(
        model,
        layers=tuple(
            replace(
                layer,
                heads=tuple(
                    changed(head, weighting="average-hard") if head.weighting == "softmax" else head
                    for head in layer.heads
                ),
            )
            for layer in model.layers
        ),
    )


def least_gap(recipe, settings, n):
    """Where the scores of a row come nearest: the best dot product minus the next lower, d_key."""
    least = (math.inf, 1)
    for head, z in heads_and_vectors(recipe, settings, n):
        if not np.count_nonzero(head.W_Q):
            continue
        scores = head.scores(z, EXACT)
        rows = np.arange(scores.shape[-1])
        admissible = head.mask.admissible(rows[:, None], rows[None, :])
        dots = scores.numerators.reshape(-1, len(rows), len(rows))
        best = np.where(admissible, dots, dots.min()).max(axis=-1, keepdims=True)
        below = (best - dots)[np.broadcast_to(admissible & (dots < best), dots.shape)]
        if below.size:
            gap = Fraction(int(below.min()), scores.denominator)
            least = min(least, (gap, head.W_Q.shape[0]), key=squared_gap)
    return least


def squared_gap(gap):
    """Of the scores, which are dot products over √d_key."""
    dot, d_key = gap
    return dot**2 / d_key


def gap_claimed(recipe, settings, n):
    gap = getattr(recipe.claim, "gap", None)
    return None if gap is None else ask(gap, n=n, **settings)


with_gap = pytest.mark.parametrize(
    "recipe",
    [
        each
        for each in tf.recipes()
        if gap_claimed(each, each.settings({}), 4) and each.name != "layernorm-hash-lookup"
    ],
    ids=lambda recipe: recipe.name,
)


def gap_is_kept_and_attained(recipe, settings, lengths):
    attained = False
    for n in lengths:
        claimed, gap = gap_claimed(recipe, settings, n), least_gap(recipe, settings, n)
        assert squared_gap(gap) >= squared_gap(claimed), (n, settings)
        attained |= gap == claimed
    assert attained or "at least" in recipe.claim.gap_statement, settings


@with_gap
def test_the_claimed_gap_is_kept_and_attained(recipe):
    small = {"max_length": 5, "epsilon": Fraction(7, 16), "kinds": 1, "depth": 1, "alphabet": "ab"}
    settings = recipe.settings({name: small[name] for name in small if name in recipe.parameters})
    gap_is_kept_and_attained(recipe, settings, (2, 4))


@pytest.mark.slow
@with_gap
def test_the_claimed_gap_is_kept_and_attained_under_every_variant(recipe):
    for settings in variants(recipe):
        longest = settings.get("max_length")
        if recipe.name.startswith("almost-orthogonal-lookup"):
            settings, longest = {**settings, "max_length": 9, "epsilon": Fraction(2, 5)}, 9
        elif longest is not None and longest > 16:
            settings, longest = {**settings, "max_length": 16}, 16
        if longest != 1 and gap_claimed(recipe, settings, 4) is not None:
            gap_is_kept_and_attained(recipe, settings, range(2, min(9, longest or 9) + 1))


# Safe lengths and weightings

lengths = pytest.mark.parametrize(
    "recipe",
    [each for each in tf.recipes() if isinstance(each.claim, LengthClaim)],
    ids=lambda recipe: recipe.name,
)


@lengths
def test_safe_lengths_are_of_arithmetics_and_positive(recipe):
    for settings in variants(recipe):
        safe = recipe.claim.safe_lengths(settings)
        assert safe and set(safe) <= set(recipe.claim.arithmetics(settings))
        assert all(n is None or (type(n) is int and n >= 1) for n in safe.values())


def weightings_of(model):
    if isinstance(model, PositionEncoding):
        return set()
    layers = getattr(model, "layers", None)
    heads = [head for layer in layers for head in layer.heads] if layers else [model]
    return {head.weighting for head in heads}


@lengths
def test_every_weighting_claimed_is_reached_and_others_are_refused(recipe):
    claimed = recipe.claim.weightings
    if "weighting" not in recipe.parameters:
        assert set(claimed) == weightings_of(recipe.build())
        return
    assert recipe.parameters["weighting"] in claimed and len(set(claimed)) == len(claimed)
    assert set(claimed) <= set(Weighting)
    small = {"alphabet": "ab"} if "alphabet" in recipe.parameters else {}
    for weighting in claimed:
        assert weighting in weightings_of(recipe.build(weighting=weighting, **small))
    for weighting in set(Weighting) - set(claimed):
        with pytest.raises(InvalidValue) as refused:
            recipe.build(weighting=weighting)
        assert all(each in str(refused.value) for each in claimed)


# Faults in attention and in stacks of layers

SMALL = {
    "predecessor": {"lo": -3, "hi": "1/3"},
    "predecessor-quadratic": {"lo": -3, "hi": "1/3"},
    "one-hot-lookup": {"max_length": 6},
    "almost-orthogonal-lookup": {"max_length": 6, "epsilon": "2/5"},
    "almost-orthogonal-lookup-soft": {"max_length": 6, "epsilon": "2/5"},
    "first-value-soft": {"max_length": 6},
    "soften": {"max_length": 6},
    "soften-by-precision": {"max_length": 6},
}

UNNEEDED = {
    # The upper unit of the step: a share is at most 1, where the step ends.
    "first": ("layer 0 network W_1[1, 1]", "layer 0 network W_2[2, 1]"),
    # The same, and where the step starts: a mark of less than 1 elsewhere is still no maximum.
    "first-value": (
        "layer 0 network W_1[1, 3]",
        "layer 0 network b_1[0]",
        "layer 0 network W_2[4, 1]",
    ),
    "first-value-soft": (
        "layer 0 network W_1[1, 3]",
        "layer 0 network b_1[0]",
        "layer 0 network W_2[4, 1]",
    ),
    # The same, and the mark in the unit of the last odd position, which is 1 itself at i = 1.
    "predecessor": (
        "layer 0 network W_1[1, 3]",
        "layer 0 network W_2[4, 1]",
        "layer 1 network W_1[1, 4]",
    ),
    "predecessor-quadratic": ("layer 0 network W_1[1, 5]", "layer 0 network W_2[6, 1]"),
    # One unit of each pair that copies a number whose sign is known, and −v, which balances only.
    "layernorm-hash-lookup": (
        *(
            f"layer {k} network W_{place}"
            for k in (0, 1)
            for place in ("1[1, 1]", "1[3, 3]", "1[4, 0]", "1[6, 2]")
        ),
        *(
            f"layer {k} network W_2[{4 + 4 * k + row}, {column}]"
            for k in (0, 1)
            for row, column in ((0, 4), (1, 1), (2, 6), (3, 3))
        ),
        "layer 2 norm gain[9]",
    ),
}
"""Weights that change no answer."""

sequences = pytest.mark.parametrize(
    "recipe",
    [each for each in tf.recipes() if isinstance(each.claim, SequenceClaim)],
    ids=lambda recipe: recipe.name,
)


def parts(model):
    """The heads, networks and norms of a model, each with what puts another in its place."""
    if isinstance(model, Attention):
        yield "head", model, lambda part: part
        return
    for number, layer in enumerate(model.layers):

        def put(changed, number=number):
            layers = (*model.layers[:number], changed, *model.layers[number + 1 :])
            return replace(model, layers=layers)

        for h, head in enumerate(layer.heads):

            def put_head(part, h=h, layer=layer, put=put):
                return put(replace(layer, heads=(*layer.heads[:h], part, *layer.heads[h + 1 :])))

            yield f"layer {number} head {h}", head, put_head
        if layer.feed_forward is not None:

            def put_network(part, layer=layer, put=put):
                return put(replace(layer, feed_forward=part))

            yield f"layer {number} network", layer.feed_forward, put_network
        for which, norm in enumerate(layer.pre_norms):

            def put_norm(part, which=which, layer=layer, put=put):
                norms = list(layer.pre_norms)
                norms[which] = part
                return put(replace(layer, pre_norms=tuple(norms)))

            if norm is not None:
                yield f"layer {number} norm", norm, put_norm


def changed(part, **given):
    """The part with some fields anew."""
    kept = {each.name: getattr(part, each.name) for each in fields(part) if each.init}
    return type(part)(**{**kept, **given})


def caught(model, recipe, settings):
    return is_refuted(always(model, recipe, settings), max_length=6)


def built_small(recipe):
    settings = recipe.settings(SMALL.get(recipe.name, {}))
    return recipe.construct(**settings), settings


@pytest.mark.slow
@sequences
def test_a_weight_set_to_zero_is_caught(recipe):
    """Each weight matters but for those of `UNNEEDED`, and the claim notices."""
    model, settings = built_small(recipe)
    unnoticed = []
    for name, part, put in parts(model):
        for each in fields(part):
            weights = getattr(part, each.name) if each.metadata.get("weights") else None
            if weights is None:
                continue
            if recipe.name.startswith("almost-orthogonal-lookup") and each.name != "W_V":
                continue  # one coordinate of many: those left are almost orthogonal still
            for place in np.argwhere(weights).tolist():
                without = weights.copy()
                without[tuple(place)] = 0
                if not caught(put(changed(part, **{each.name: without})), recipe, settings):
                    unnoticed.append(f"{name} {each.name}{place}")
    assert sorted(unnoticed) == sorted(UNNEEDED.get(recipe.name, ()))


OPPOSITE = {
    "none": "strict-past",
    "future": "past",
    "strict-future": "strict-past",
    "past": "future",
    "strict-past": "strict-future",
}


@pytest.mark.slow
@sequences
def test_a_wrong_mask_is_caught(recipe):
    if recipe.name == "attend-nothing":
        return  # it has any mask
    model, settings = built_small(recipe)
    for name, part, put in parts(model):
        if isinstance(part, Attention):
            wrong = changed(part, mask=OPPOSITE[part.mask])
            assert caught(put(wrong), recipe, settings), name


@pytest.mark.slow
@sequences
def test_a_wrong_weighting_is_caught_where_scores_tie(recipe):
    """Scores tie where W_Q = 0, and in predecessor, of the last of them; softmax is a mean then."""
    model, settings = built_small(recipe)
    for name, part, put in parts(model):
        if not isinstance(part, Attention) or not np.count_nonzero(part.W_V):
            continue
        if np.count_nonzero(part.W_Q) and recipe.name != "predecessor":
            continue
        for weighting in ("average-hard", "leftmost-hard", "rightmost-hard"):
            if weighting == {"softmax": "average-hard"}.get(part.weighting, part.weighting):
                continue
            assert caught(put(changed(part, weighting=weighting)), recipe, settings), name
