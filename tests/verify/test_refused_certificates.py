"""Weights of which the laws do not tell are refused: each was once taken for what it is not."""

import itertools
from dataclasses import fields, replace
from fractions import Fraction as F

import pytest

import transformist as tf
from laws import by_laws, confirmed, holds_by_laws, require_refused_by_laws
from transformist.arithmetic import number_system
from transformist.circuit import Circuit, Embedded, Fetched, Form, Match
from transformist.cli import main
from transformist.host_evaluation import HostEvaluation
from transformist.programs import PROGRAMS
from transformist.verify.certificate import Certificate, Uncertifiable, Unproved, certify
from transformist.verify.certificate.observing import TieScan
from transformist.verify.certificate.recorded_margins import follow_within, noted
from transformist.verify.certificate.statement import Assumption

AB = [[1], [0]]


def model(slots, layers, read_out, words=AB, positions=None, n=6, alphabet="ab", front=()):
    stream = tf.Stream(tuple(slots))
    vectors = [[*word, *[0] * (len(slots) - len(word))] for word in words]
    names = tuple((positions or {}).get(slot) for slot in slots)
    embedding = tf.Embedding(
        symbols=(*alphabet, *front),
        vectors=vectors,
        positions=tf.PositionFunctions(names) if positions else None,
        front=front,
    )
    return tf.Transformer(
        stream=stream, embedding=embedding, layers=layers, read_out=read_out, max_length=n
    )


def accepts(row, shift):
    return tf.Binary(W_out=[row], b_out=[shift])


def ramp(W_1, b_1, W_2):
    return tf.Layer((), tf.FeedForward(W_1=W_1, b_1=b_1, W_2=W_2))


def copies(a, b):
    first = ramp([[1, 0, 0], [-1, 0, 0]], [0, 0], [[0, 0], [a, -a], [0, 0]])
    second = ramp([[0, 1, 0], [0, -1, 0]], [0, 0], [[0, 0], [0, 0], [b, -b]])
    return model("vxo", (first, second), accepts([0, 0, 1], "-1/2"))


def attending(slots, positions=None, row=(0, 0, 1), shift="-1/4", **given):
    out = [[0]] * (len(slots) - 1) + [[1]]
    head = tf.Attention(W_V=[[1] + [0] * (len(slots) - 1)], W_O=out, **given)
    return model(slots, (tf.Layer((head,)),), accepts(list(row), shift), positions=positions)


def behind_bos(slots, layers, words, positions=None):
    """The words are of a, b and BOS; the answer is in the last slot."""
    read_out = accepts([*[0] * (len(slots) - 1), 1], "-1/4")
    return model(slots, layers, read_out, words, positions, front=("BOS",))


def fetching(size, slot, mask, **given):
    """A head in two or four dimensions that fetches the first slot, or more, into these."""
    into = [slot] if isinstance(slot, int) else slot
    values = [[int(j == k) for j in range(size)] for k in range(len(into))]
    out = [[int(into[k] == j) for k in range(len(into))] for j in range(size)]
    given = {"W_Q": [[0] * size], "W_K": [[0] * size]} | given
    return tf.Attention(W_V=values, W_O=out, mask=mask, weighting="average-hard", **given)


def seen_behind(size, source, slot):
    """The mean of a slot over all rows behind."""
    return replace(
        fetching(size, slot, "strict-past"), W_V=[[int(j == source) for j in range(size)]]
    )


def looking_up(size, slot, index, unit, places, mask="none"):
    """Scores 2 q j − w j², of the slots of q and w, or w = 1, and of j and j²."""
    nothing = [[0] * size] * 2
    query = [2 * int(j == index) for j in range(size)]
    square = [-int(j == unit) for j in range(size)]
    keys = [[int(j == k) for j in range(size)] for k in places]
    return fetching(
        size, slot, mask,
        W_Q=[query, square, *nothing], b_Q=[0, -(unit is None), 0, 0], W_K=[*keys, *nothing],
    )  # fmt: skip


REFUSED = {
    "a number to look up that is at BOS between two places": (
        behind_bos(
            "vqpso",
            (tf.Layer((looking_up(5, 4, 1, None, (2, 3)),)),),
            [[1, 1], [0, 2], [0, F(3, 2) + F(1, 2**30)]],
            {"p": "i", "s": "i^2"},
        ),
        "whole number at BOS",
    ),
    "a lookup in a unit that is 0": (
        behind_bos(
            "vfpscuo",
            (
                tf.Layer((fetching(7, (4, 5), "past"),)),
                tf.Layer((looking_up(7, 6, 4, 5, (2, 3)),)),
            ),
            [[1], [0], [0, 1]],
            {"p": "i", "s": "i^2"},
        ),
        "the scale of a lookup must be 1 or 1/D",
    ),
    "a key of BOS that only BOS sees": (
        behind_bos(
            "vkpo",
            (tf.Layer((fetching(4, 3, "past", W_Q=[[0] * 4], b_Q=[1], W_K=[[0, 8, 1, 0]]),)),),
            [[1, 0], [1, 1], [0, F(3, 8) + F(1, 2**30)]],
            {"p": "i"},
        ),
        "whole numbers at BOS",
    ),
    "a step that is at BOS in its zone": (
        behind_bos(
            "vmo",
            (
                tf.Layer(
                    (fetching(3, 1, "past"),),
                    tf.FeedForward(
                        W_1=[[0, 16, 0]] * 2, b_1=["-1/2", "-3/2"], W_2=[[0, 0], [0, 0], [1, -1]]
                    ),
                ),
            ),
            [[1], [0], ["3/16"]],
        ),
        "between values at BOS",
    ),
    "a step that is at BOS in its zone, of means that there are over n + 1 rows and over n": (
        replace(
            behind_bos(
                "vwmno",
                (
                    tf.Layer(
                        (fetching(5, 2, "past"), seen_behind(5, 1, 3)),
                        tf.FeedForward(
                            W_1=[[0, 0, 32, -32, 0]] * 2,
                            b_1=["-1/2", "-3/2"],
                            W_2=[*[[0, 0]] * 4, [1, -1]],
                        ),
                    ),
                ),
                [[1, 1], [0, 0], ["3/4"]],  # after aab, (2 + 3/4)/4 − 2/3 = 1/48, of 1/16
            ),
            max_length=3,
        ),
        "between values at BOS",
    ),
    "the units of 8 steps, all lower ones first": (
        model(
            "vpo",
            (
                ramp(
                    [[0, 2, 0]] * 16,
                    [F(-401, 2)] * 8 + [F(-403, 2)] * 8,
                    [[0] * 16] * 2 + [[1] * 8 + [-1] * 8],
                ),
            ),
            accepts([0, 0, 1], "-15/2"),
            positions={"p": "i^3"},
        ),
        "follow each other",
    ),
    "a step that is written with 1/3": (
        model(
            "vpo",
            (ramp([[0, 2, 0]] * 2, ["-1/2", "-3/2"], [[0] * 2, [0] * 2, ["1/3", "-1/3"]]),),
            accepts([0, 0, 1], "-1/50"),
            positions={"p": "i^3"},
        ),
        "times whole numbers",
    ),
    "a step of height 1/3": (
        model(
            "vo",
            (ramp([["2/3", 0]] * 2, ["-1/6", "-1/2"], [[0, 0], [3, -3]]),),
            accepts([0, 1], "-1/2"),
        ),
        "height",
    ),
    "copies that vanish on the way": (copies(F(1, 2**13), 2**13), "copied with weight 1"),
    "copies by 1/7 and 7": (copies(F(1, 7), 7), "copied with weight 1"),
    "a query that is too small to be held": (
        attending("vo", W_Q=[[0, 0]], b_Q=[F(1, 2**26)], W_K=[[1024, 0]], row=(0, 1)),
        "read with weight 1",
    ),
    "keys beside a large constant": (
        attending("vpo", {"p": "i"}, W_Q=[[0] * 3], b_Q=[1], W_K=[[0, 1, 0]], b_K=[2**24]),
        "constant",
    ),
    "a coordinate whose key is constant": (
        attending(
            "vpo",
            {"p": "i"},
            W_Q=[[0] * 3, [0, 1, 0], [0] * 3, [0] * 3],
            b_Q=[1, 0, 0, 0],
            W_K=[[1, 0, 0], [0] * 3, [0] * 3, [0] * 3],
            b_K=[0, 2**25, 0, 0],
        ),
        "read with weight 1",
    ),
    "scores that are all the same, and too large": (
        attending("vpo", {"p": "i"}, W_Q=[[0, 300, 0]], W_K=[[0] * 3], b_K=[300]),
        "constant",
    ),
    "constants that add up off the grid": (
        model(
            "vcp",
            (ramp([[0, 1, 1]], ["1/2"], [[0], [0], [0]]),),
            accepts([1, 0, 0], "-1/2"),
            words=[[1, "1/2"], [0, "1/2"]],
            positions={"p": "i^3"},
        ),
        "on the grid",
    ),
    "a step of a height above 1": (
        model(
            "vpo",
            (
                ramp(
                    [[0, 2**13, 0]] * 2,
                    [-(2**11), -3 * 2**11],
                    [[0] * 2] * 2 + [["1/4096", "-1/4096"]],
                ),
            ),
            accepts([0, 0, 1], "-1/2"),
            positions={"p": "i"},
        ),
        "height",
    ),
    "a step of zone 1/3": (
        model(
            "vpo",
            (ramp([[0, 1, 0]] * 2, ["-1/12", "-1/4"], [[0] * 2] * 2 + [[6, -6]]),),
            accepts([0, 0, 1], "-7/8"),
            positions={"p": "i^2"},
        ),
        "zone",
    ),
    "units that are all the same": (
        model("vo", (ramp([[1, 0]] * 8, [0] * 8, [[0] * 8, [1] * 8]),), accepts([0, 1], "-1/2")),
        "added once",
    ),
    "heads that are all the same": (
        model(
            "vo",
            (
                tf.Layer(
                    (
                        tf.Attention(
                            W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[1, 0]], W_O=[[0], [1]], mask="future"
                        ),
                    )
                    * 8
                ),
            ),
            accepts([0, 1], "-1/2"),
        ),
        "added once",
    ),
    "a number in two slots, read together": (
        model(
            "vo",
            (ramp([[1, 0], [-1, 0]], [0, 0], [[0, 0], [1, -1]]),),
            accepts(["1/10", "9/10"], "-1/2"),
        ),
        "on the grid|once",
    ),
    "a d_key of which nearly all is 0": (
        attending(
            "vpo",
            {"p": "i"},
            W_Q=[[0] * 3] * 64,
            b_Q=[8] + [0] * 63,
            W_K=[[0, 1, 0]] + [[0] * 3] * 63,
        ),
        "d_key",
    ),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_weights_of_which_the_laws_do_not_tell(given, message):
    """Where a proof follows them, it is true of every input."""
    with pytest.raises(Uncertifiable, match=message):
        by_laws(given, "float32")
    require_refused_by_laws(given, "float32")


def test_a_lookup_in_a_unit_that_is_0_decides_otherwise_in_a_format():
    """All scores are 0 where the count is, and the mean of all lies in the zone of the step."""
    layers = (
        tf.Layer((fetching(8, (4, 5), "past"),)),
        tf.Layer(
            (looking_up(8, 6, 4, 5, (2, 3)),),
            tf.FeedForward(
                W_1=[[0] * 6 + [2, 0]] * 2, b_1=["-1/2", "-3/2"], W_2=[[0, 0]] * 7 + [[1, -1]]
            ),
        ),
    )
    words, places = [[1], [0], [0, 1]], {"p": "i", "s": "i^2"}
    read_out = accepts([0] * 7 + [1], "-1/6")
    built = model("vfpscuor", layers, read_out, words, places, front=("BOS",))
    assert built("ab", "exact") != built("ab", "float32")
    with pytest.raises(Uncertifiable, match="the scale of a lookup must be 1 or 1/D"):
        by_laws(built, "float32")
    assert not require_refused_by_laws(built, "float32")


def test_a_count_that_is_compared_with_a_unit_of_0_is_no_count():
    """Its labels 2 k y are all the largest where y is 0: D is counted behind, without BOS."""
    head = fetching(4, (2, 3), "past")
    rows = [[0, 0, 2 * k, -(k**2)] for k in range(4)]
    read_out = tf.MultiClass(W_out=rows, labels=(0, 1, 2, 3), at="every")
    built = model("vfyw", (tf.Layer((head,)),), read_out, [[1], [0], [0, 1]], n=2, front=("BOS",))
    require_refused_by_laws(built, "float32")


def test_steps_whose_units_are_finer_at_bos_round_where_they_are_added_up():
    """The sum is 43 at b and BOS; in float32, 1/2^18 less at BOS, which then is no more the first.

    At BOS the units of three steps lie between the multiples of 2^−17 that there are beyond 64.
    """
    thresholds = [(2, k, 4) for k in range(10)] + [(1, k, 1) for k in range(3)]
    rows = [[2 * int(j == slot) for j in range(5)] for slot, _, _ in thresholds for _ in "ab"]
    shifts = [-2 * k - shift for _, k, _ in thresholds for shift in (F(1, 2), F(3, 2))]
    sums = [sign * size for _, _, size in thresholds for sign in (1, -1)]
    nothing = [0] * len(sums)
    steps = tf.FeedForward(W_1=rows, b_1=shifts, W_2=[*[nothing] * 3, sums, nothing])
    first = fetching(5, 4, "none", W_Q=[[0] * 5], b_Q=[1], W_K=[[0, 0, 0, 1, 0]])
    layers = (tf.Layer((), steps), tf.Layer((replace(first, weighting="leftmost-hard"),)))
    words = [[0, 0, 0], [1, 15, 15], [0, 15 + F(1, 2**19), 15]]
    built = behind_bos("vxyso", layers, words)
    assert built("b", "exact") != built("b", "float32")
    for order in ("any", "reference"):
        assert not certify(built, "float32", order=order).holds


@pytest.mark.parametrize("shifted_by", ["the embedding", "a bias"])
def test_a_number_that_is_shifted_is_stored_and_rounds_again_where_it_is_read(shifted_by):
    """In float16 256 + 1/16 is stored as 256, and so on: 9 (i + 1/16) is off by up to 1.6."""
    n, shift = 250, F(1, 16)
    last = ramp([[0, 9, 0]], [0], [[0], [0], [1]])
    if shifted_by == "the embedding":
        words, layers, places = [[0, shift], [0, shift]], (last,), {"x": "i"}
    else:
        layers = (
            tf.Layer(
                (), tf.FeedForward(W_1=[[1, 0, 0]], b_1=[0], W_2=[[0], [1], [0]], b_2=[0, shift, 0])
            ),
            last,
        )
        words, places = [[0], [0]], {"v": "i"}
    given = model("vxo", layers, accepts([0, 0, 1], "-1/2"), words, places, n=n)
    found = confirmed(given, "float16", order="reference")
    a, (stream,) = number_system("float16"), given.run("a" * n, "float16").streams[-1:]
    far = max(
        abs(F(float(x)) - 9 * (i + shift)) for i, x in enumerate(a.numbers(stream[1])[:, 2], 1)
    )
    assert found.holds and 1 < far <= max(line.errors.absolute for line in found.lines)
    tf.check_certificate(given, certify(given, "float16", order="reference"))


def test_a_number_that_nothing_reads_may_overflow():
    given = model("vso", (), accepts([1, 0, 0], "-1/2"), positions={"s": "i^2"}, n=300)
    assert certify(given, "float32").holds and holds_by_laws(given)
    found = by_laws(given, "float16")
    assert not found.holds and found.limiting.what == "the size of a number"
    assert not certify(given, "float16").holds
    with pytest.raises(tf.TransformistError, match="overflow|finite|number"):
        given("a" * 300, "float16")


def test_sixteen_large_steps_are_not_added_up_in_any_order():
    @tf.program(alphabet="ab")
    def passed(x):
        place = x.position("i^2")
        steps = sum((place > 1000 * k).where(1, 0) for k in range(1, 17))
        return (steps > (x == "a").where(15, 16)).accept(empty=False)

    with pytest.raises(tf.TransformistError, match="error of the answer"):
        tf.compile(passed, max_length=1700)
    given = tf.compile(passed, max_length=1700, arithmetic="exact")
    assert not certify(given, "float32").holds
    assert certify(given, "float64").holds and holds_by_laws(given, "float64")


def equal_labels_at_four():
    """Two labels are the largest together behind three a and one b, in any order."""
    head = tf.Attention(W_Q=[[0] * 4], W_K=[[0] * 4], W_V=[[1, 0, 0, 0], [0, 1, 0, 0]],
                        W_O=[[0, 0], [0, 0], [1, 0], [0, 1]], mask="future")  # fmt: skip
    return model(
        "xymn",
        (tf.Layer((head,)),),
        tf.MultiClass(W_out=[[0, 0, 1, 0], [0, 0, 0, 1]], labels=("p", "q"), at="every"),
        words=[["1/10", "3/10"], ["7/10", "1/10"]],
    )


def test_labels_that_are_largest_together_are_found():
    found = certify(equal_labels_at_four(), "float32")
    assert not found.holds
    assert [each.what for each in found.assumes] == ["no two labels are the largest together"]


@pytest.mark.parametrize("lengths", [(2, 3, 4, 5, 6), (6, 2, 4, 3, 5), (3, 6, 3)])
def test_a_scan_for_equal_labels_answers_for_any_length(lengths):
    scan = TieScan(equal_labels_at_four())
    for most in lengths:
        assert scan(most) == ((False, 4) if most >= 4 else (True, most)), most


def test_a_search_of_a_length_tries_each_input_once(monkeypatch):
    given, tried, values = equal_labels_at_four(), [], tf.Transformer.values

    def recorded(self, inputs, arithmetic):
        tried.append(len(inputs[0]))
        return values(self, inputs, arithmetic)

    monkeypatch.setattr(tf.Transformer, "values", recorded)
    assert certify(given, "float32").largest_length == 3
    assert tried == [0, 1, 2, 3, 4]


def test_one_label_is_always_the_answer():
    read_out = tf.MultiClass(W_out=[[1]], labels=("p",), at="every")
    given = model("v", (), read_out)
    assert certify(given, "float32").holds and holds_by_laws(given)


def test_a_scale_that_is_no_power_of_two_is_no_traceback():
    given = attending(
        "vpo", {"p": "i"}, W_Q=[[0] * 3] * 2, b_Q=[1, 0], W_K=[[0, 1, 0], [0] * 3],
        weighting="average-hard",
    )  # fmt: skip
    confirmed(given, "float32", 4)
    tf.check_certificate(given, certify(given, "float32", 4))
    hard = [given(x, "exact") for x in map("".join, itertools.product("ab", repeat=4))]
    assert hard == [given(x, "float32") for x in map("".join, itertools.product("ab", repeat=4))]


def test_the_checker_takes_no_word_for_an_assumption(seen_up_to):
    built = tf.recipe("dyck-k-d").build()
    found = certify(built, "float32", seen_up_to)
    first, *others = found.assumes
    for assumes in (
        (replace(first, what="the moon is round"), *others),
        (replace(first, line=0), *others),
        tuple(others),
        (*found.assumes, replace(first, line=None)),
    ):
        with pytest.raises(Unproved):
            tf.check_certificate(built, replace(found, assumes=assumes))


CHANGES = {
    "largest_length": 10**9,
    "model": "another",
    "weights": "0" * 32,
    "arithmetic": "bfloat16",
    "max_length": 49,
    "order": "reference",
    "weighting": "average-hard",
    "demands": (),
    "lines": (),
    "heads": ((),) * 9,
    "units": ((),) * 9,
    "assumes": (Assumption("the moon is round", None, 50),),
    "grade": 2,
    "stopped": "the read-out",
    "version": 1,
    "host": HostEvaluation("gpt2", 64, (0,) * 9),
}
"""A forgery of each field."""


def test_every_field_is_forged():
    assert {*CHANGES} == {each.name for each in fields(Certificate)}


@pytest.mark.parametrize("field", CHANGES)
def test_no_field_of_a_certificate_is_free(field):
    built = tf.recipe("dyck-1").build(max_length=50)
    found = certify(built)
    said = "must belong to the model" if field == "weights" else "must follow from the weights"
    for other in (CHANGES[field], None, (), 3, "", ("x",), ((3,),), 0.5):
        if other != getattr(found, field):
            with pytest.raises(Unproved, match=said):
                tf.check_certificate(built, replace(found, **{field: other}))


@pytest.mark.parametrize("other", [None, "a certificate", 5])
def test_what_is_no_certificate_is_refused(other):
    with pytest.raises(Unproved):
        tf.check_certificate(tf.recipe("dyck-1").build(), other)


@pytest.mark.parametrize(
    "given",
    [
        lambda program, built: tf.run(program, "abc"),
        lambda program, built: tf.plan(program),
        lambda program, built: tf.decoder(program),
        lambda program, built: tf.compile(built),
        lambda program, built: tf.compile(len),
        lambda program, built: tf.program(alphabet={"a", "b"})(lambda x: x.tag()),
    ],
)
def test_a_program_is_no_model_and_a_model_no_program(given):
    program = PROGRAMS["majority"]
    with pytest.raises(tf.TransformistError, match="received"):
        given(program, tf.compile(program, max_length=5))


def test_what_is_no_certificate_is_not_saved(tmp_path):
    built = tf.compile(PROGRAMS["majority"], max_length=5)
    with pytest.raises(tf.TransformistError, match="must be Certificate objects"):
        tf.save(built, tmp_path / "m", ["certified"])
    tf.save(built, tmp_path / "m", tf.certify(built))
    assert len(tf.load_certificates(tmp_path / "m")) == 1


def test_names_between_colons_are_no_pictures(tmp_path, capsys):
    path = tmp_path / "rev.py"
    path.write_text(
        "import transformist as tf\n"
        '@tf.program(alphabet="ab:x")\n'
        "def flip(x):\n"
        '    return x.lookup(x.position("n") + 1 - x.position("i"), default="a").tag()\n'
    )
    assert main(["run", f"{path}:flip", ":ba:x"]) == 0
    assert "x:ab:" in capsys.readouterr().out


def test_a_mean_beside_a_hidden_constant_rounds():
    head = tf.Attention(
        W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[1, 0]], W_O=[[0], [1]], b_O=[0, 2**20], mask="future"
    )
    read_out = tf.Binary(W_out=[[0, 1]], b_out=[-(2**20) - F(1, 7)])
    assert not certify(model("vm", (tf.Layer((head,)),), read_out, n=60), "float32").holds


def test_constant_queries_may_come_in_any_order():
    """A lookup of position 3, the square of the place first, or last."""
    for places in ([[0, 0, 1, 0], [0, 1, 0, 0]], [[0, 1, 0, 0], [0, 0, 1, 0]]):
        shift = [-1, 6] if places[0][2] else [6, -1]
        built = attending(
            "vpso",
            {"p": "i", "s": "i^2"},
            row=(0, 0, 0, 1),
            shift="-1/2",
            W_Q=[[0] * 4] * 4,
            b_Q=[*shift, 0, 0],
            W_K=[*places, [0] * 4, [0] * 4],
            weighting="average-hard",
        )
        assert confirmed(built, "float32").holds
        tf.check_certificate(built, certify(built, "float32"))


def test_halves_of_a_score_are_bits_too():
    """Products of matches are halves: with 30 times 8.5 a format of 8 bits rounds."""
    circuit = Circuit(("a", "b"), False, 8, "softmax")
    key = circuit.add(Embedded((F(0), F(17))), "key")
    head = Match((key,), (Form.of(F(1, 2)),), "mean", "none")
    circuit.add(Fetched(head, key), "fetched")
    margins, demands = noted(circuit, {head: F(15)}, number_system("bfloat16"))
    for _ in circuit.atoms:
        follow_within(margins)
    assert any(demand.what == "the error of a selection" for demand in demands), margins.errors


def test_what_is_known_at_bos_is_on_the_grid_too():
    stream = tf.Stream(("x", "y", "r", "t"))
    embedding = tf.Embedding(
        symbols=("a", "b", "BOS"),
        vectors=[[1, 0, 0, 0], [0, 1, 0, 0], [2**22, "1/8", 0, 0]],
        front=("BOS",),
    )
    layers = (
        ramp([[1, 1, 0, 0]], [0], [[0], [0], [1], [0]]),
        ramp([[0, 0, 1, 0]], [-(2**22)], [[0], [0], [0], [1]]),
    )
    built = tf.Transformer(
        stream=stream,
        embedding=embedding,
        layers=layers,
        read_out=tf.Binary(W_out=[[0, 0, 0, 1]], b_out=["-1/16"]),
        max_length=4,
    )
    assert built("", "exact") is True and built("", "float32") is False
    assert not certify(built, "float32").holds


def test_an_assumption_is_of_all_symbols_together(seen_up_to):
    built = tf.recipe("dyck-k-d").build()
    found = certify(built, "float32", seen_up_to)
    number = found.assumes[0].line
    line = found.lines[number]
    rows = (replace(line.law.rows[0], hi=line.law.rows[0].lo), *line.law.rows[1:])
    narrow = replace(line, law=replace(line.law, rows=rows))
    lines = (*found.lines[:number], narrow, *found.lines[number + 1 :])
    with pytest.raises(Unproved):
        tf.check_certificate(built, replace(found, lines=lines))
    assumes = tuple(replace(each, checked=10**6) for each in found.assumes)
    with pytest.raises(Unproved):
        tf.check_certificate(built, replace(found, assumes=assumes))


@pytest.mark.parametrize("factor", ["1", "3", "1/3", "7"])
def test_what_is_compiled_with_factors_is_certified(factor):
    @tf.program(alphabet="ab")
    def beyond(x):
        place = x.position("i") * F(factor)
        return ((place > 2 * F(factor)) & (x == "a")).accept(empty=False)

    built = tf.compile(beyond, max_length=20)
    assert confirmed(built, "float32").holds and not by_laws(built, "float32").assumes
    found = certify(built, "float32")
    assert found.holds and not found.assumes
    tf.check_certificate(built, found)


@pytest.mark.parametrize("threshold", ["1/3", "2/5", "1/2", "3/7"])
def test_a_mean_of_matches_is_certified_beside_a_threshold(threshold):
    @tf.program(alphabet="abc")
    def often(x):
        follows = x.select(x.predecessor(default="none"), mask="future").mean(x == "a")
        return (follows > F(threshold)).accept()

    built = tf.compile(often, max_length=40)
    assert confirmed(built, "float32").holds and not by_laws(built, "float32").assumes
    found = certify(built, "float32")
    assert found.holds and not found.assumes
    tf.check_certificate(built, found)
    assert not certify(built, "bfloat16").holds
