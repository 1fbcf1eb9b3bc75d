"""Programs that were once compiled to another function, or not at all, each with what was wrong."""

import itertools

import pytest

import transformist as tf
from transformist.compiler import compile as compiled
from transformist.errors import InvalidValue

HOW = [("average-hard", "exact"), ("softmax", "float32")]


def strings(longest):
    return ["".join(x) for n in range(longest + 1) for x in itertools.product("ab", repeat=n)]


def require_right(function, *, longest=5, max_length=6, heads="many", how=HOW):
    program = tf.program(alphabet="ab")(function)
    for weighting, arithmetic in how:
        model = compiled(
            program, max_length=max_length, weighting=weighting, arithmetic=arithmetic, heads=heads
        )
        for x in strings(longest):
            assert repr(model(x, arithmetic=arithmetic)) == repr(program(x)), (x, weighting)


def require_refused(function, message):
    with pytest.raises(InvalidValue, match=message):
        compiled(tf.program(alphabet="ab")(function), max_length=6)


def test_a_sum_that_one_head_fetches_of_sums_that_are_kept_apart():
    def once(x):
        doubled = x.lookup(x.position("i") * 2, default="none")
        same = x.select(x, mask="future").rightmost(x == "a", default=x == "a")
        return ((x == doubled).count() <= same.count()).accept(empty=True)

    def fetched(x):
        before = x.nearest_left(True, default="a")
        everywhere = x.isin("ab")
        return (x == "b").select(everywhere).rightmost(x, default=before).next_token()

    require_right(once, heads="one")
    require_right(fetched, heads="one")


def test_numbers_of_another_denominator_than_that_of_the_means_below():
    def of_matches(x):
        values = x.map({"a": 1, "b": 2})
        some = (x == "a").mean("future") > 0
        return some.where(x.select(x, mask="future").mean(values), 0).tag()

    def of_another_position(x):
        return (x == "a").mean("past").predecessor(default=0).tag()

    require_right(of_matches)
    require_right(of_another_position)

    def of_two(x):
        return ((x == "a").mean("future") + (x == "a").mean("past")).tag()

    require_refused(of_two, "made of means with the same denominator")

    def of_n(x):
        return ((x == "a").mean("past") > 0).where(x.position("i/n"), 0).tag()

    require_right(of_n)


def test_a_part_of_a_count_is_no_mean():
    require_right(lambda x: ((x == "a").count() / 2).tag())
    require_right(lambda x: ((x == "a").count() / 3 + "1/2").tag())


def test_a_count_that_is_negative():
    def less(k):
        return lambda x: ((x == "a").count("future") - k).tag()

    for k in (5, 6, 7, 8, 20):
        require_right(less(k))


def test_a_mean_over_no_positions_is_0_and_a_constant_beside_it_is_not():
    require_right(lambda x: ((x == "a").mean("strict-future") < "1/2").accept())
    require_right(lambda x: ((x == "a").mean("strict-future") == "1/4").any().accept())

    def one_more(mask):
        return lambda x: ((x == "a").mean(mask) + 1).tag()

    def twice(mask):
        return lambda x: ((x == "a").mean(mask) * 2).tag()

    for mask in ("strict-future", "strict-past"):
        require_refused(one_more(mask), "must be 0 where the mask leaves no position")
        require_right(twice(mask))


def test_what_softmax_leaves_of_a_mean_that_is_handed_out():
    def shifted(x):
        value = x.map({"a": 1, "b": 0})
        return (value - value.predecessor(default=0)).abs().mean("past").tag()

    program = tf.program(alphabet="ab")(shifted)
    model = compiled(program, max_length=24)
    for x in ("ab" * 12, "b" * 23 + "a", "a" * 24, "aab" * 8):
        assert model(x, arithmetic="float32") == program(x)


def test_whole_numbers_of_positions_are_handed_out():
    require_right(lambda x: x.position("i").tag())
    require_right(lambda x: (x.position("n") - x.position("i") * "3/2").tag())
    require_right(lambda x: x.position("i").predecessor(default=9).tag())


def test_a_mean_of_the_positions_is_no_whole_number():
    require_right(lambda x: x.position("i").mean().tag())
    require_right(lambda x: x.position("i").mean("past").tag())


def test_programs_that_are_nested_deeper_than_python():
    def deep(x):
        value = x.map({"a": 1, "b": 0}).mean()
        for _ in range(700):
            value = (value - 1).abs()
        return (value > 0).tag()

    require_right(deep, longest=2)


def test_a_conjunction_of_what_is_shared_is_lowered_once():
    def shared(x):
        b, c = (x == "a").any(), (x == "b").any("future")
        for _ in range(60):
            b = (b & c) & (b & (x == "a"))
        return b.accept(empty=False)

    require_right(shared, longest=3, how=HOW[:1])


def test_whether_there_is_one_is_a_whole_number_under_hard_attention():
    require_right(lambda x: ((x == "a").any("strict-past").count() >= 2).tag())
    require_right(lambda x: ((x == "a").any("future").mean("past") > "1/2").tag())


def test_a_function_without_a_value_at_bos_is_refused_where_it_is_written():
    def first(x):
        return (x.position("1/i") > "1/2").tag()

    message = r'test_programs_that_failed.py, line \d+: x.position\("1/i"\): a position function '
    require_refused(
        first, message + "must have a value at BOS, which is at i = 0; received .*1/i in a "
    )


def test_a_product_that_is_whole_is_handed_out_as_an_int():
    def doubled(x):
        half = (x == "a").predecessor().where(0.5, 1.5)
        return (half * (x == "a").where(2, 4)).tag()

    require_right(doubled)


def test_the_mean_of_ties_rounds():
    """One of several that are alike is their mean, 31 times 1/31, which is below 1 in float32."""

    @tf.program(alphabet="ab")
    def with_b(x):
        return ((x == "b").any().where(2**20, 0) > 2**20 - 1).accept()

    message = r"the error of the answer in float32 must be below 0.5; .* N = 31; no max_length fits"
    with pytest.raises(InvalidValue, match=message):
        compiled(with_b, max_length=31, weighting="average-hard")
    model = compiled(with_b, max_length=31, weighting="average-hard", arithmetic="float64")
    assert all(model("b" * n) for n in range(1, 32))


@pytest.mark.parametrize("mask", ["past", "strict-past"])
def test_what_is_behind_without_a_condition(mask):
    """All of it, which was taken for nothing, or for something that is not matched."""
    require_right(lambda x: x.nearest_right(True, default="none").tag())
    require_right(lambda x: (x == x).select(True, mask=mask).rightmost(x, default="none").tag())

    def often(symbols):
        def selected(x):
            found = (x == x).select(x.isin(symbols), mask=mask)
            return (found.mean(x == "b", default="1/3") > "1/4").tag()

        return selected

    for symbols in ("ab", "a", ""):
        require_right(often(symbols))
    require_right(lambda x: ((x == x).select(True, mask=mask).mean(x == "b") > "1/2").tag())


def test_a_selection_by_numbers_of_which_one_never_is():
    def signs(x):
        number = x.map({"a": 0, "b": 3})
        found = x.position("(-1)^i").select(number, mask="strict-past")
        return (found.mean(number) >= 1).tag()

    def beyond(x):
        return (x.position("i") > 2).select(x.isin("ab")).any().tag()

    require_right(signs)
    require_right(beyond, longest=1, max_length=1)
    require_right(lambda x: x.lookup(x.map({"a": 0, "b": -1}), default="none").tag())


def test_whole_keys_that_are_compared_with_one_constant_number():
    """The sum of products of a code is not 1 at a match: nothing was found under a past mask."""

    def zero(x):
        return x.isin("ab").count("future") - x.isin("ab").count("future")

    def without_bits(x):
        return zero(x).select(zero(x), mask="strict-past").any().tag()

    def with_bits(x):
        i = x.position("i")
        return zero(x).select(i * 0 + (x == "a").count(), mask="strict-past").any().tag()

    require_right(without_bits)
    require_right(with_bits)
