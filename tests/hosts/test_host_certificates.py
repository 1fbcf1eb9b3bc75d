"""Certificates for GPT-2 and Llama, against what the classes of transformers compute.

The ideal is the library's exact arithmetic with hard attention, which shares no code with a proof.
"""

import contextlib
import itertools
import json
import random
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.cli import main
from transformist.errors import InvalidValue, TransformistError
from transformist.host_evaluation import HOST_CLASSES, HostEvaluation
from transformist.hosts import certifying, checkpoint, gpt2, llama
from transformist.hosts.certifying import OnlySearched, SearchedCertificate
from transformist.hosts.host import HOSTS
from transformist.programs import PROGRAMS
from transformist.verify.proof import proving
from transformist.verify.proof.host_walking import HostWalk
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.softmax_orders import host_orders
from transformist.verify.proof.upwards import Unfollowed

MODULES = {"gpt2": gpt2, "llama": llama}
CERTIFIED = ("dyck-1", "majority", "parity", "induction-most-recent", "sort")
IN_HOSTS = [(name, host) for name in CERTIFIED for host in MODULES]


def compiled(name, host, n):
    """The model for inputs of n symbols; `sort` answers after these and `=`."""
    program, longest = PROGRAMS[name], n
    if name == "sort":
        program, longest = tf.answered_after(program), 2 * n + 1
    return tf.compile(program, max_length=longest, **HOSTS[host].options)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "host"), IN_HOSTS)
def test_programs_are_certified_in_hosts_at_64(name, host):
    model = compiled(name, host, 64)
    found = tf.certify(model, "float32", host=host)
    assert (found.grade, found.holds, found.largest_length) == (1, True, model.max_length)
    assert found.host.host == host
    assert host in str(found)
    tf.check_certificate(model, found)


@pytest.mark.parametrize("host", MODULES)
def test_a_certificate_is_checked_where_bounds_differ_in_the_last_place(host, monkeypatch):
    """As on another processor: the second of the orders has errors that are an ulp larger."""
    model = compiled("dyck-k-d", host, 8)
    found = tf.certify(model, host=host)
    orders, proved = itertools.cycle((0.0, 2.0**-52)), proving._proved

    def moved(walk):
        proof, more = proved(walk), next(orders)
        margins = (each._replace(error=each.error * (1 + more)) for each in proof.margins)
        return replace(proof, margins=tuple(margins))

    monkeypatch.setattr(proving, "_proved", moved)
    tf.check_certificate(model, found)


@pytest.mark.slow
@pytest.mark.parametrize("host", MODULES)
def test_the_command_certifies_a_tagger_that_answers_after_its_input(host, capsys):
    given = ["certify", "programs/sort", "--host", host, "--max-length", "64"]
    assert main(given) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "answers after its input: N = 129 is 64 symbols, =, and 64 tags" in said
    assert "in float32 for N = 129" in said and "first grade" in said
    assert main([*given, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["answers_after"], facts["max_length"], facts["grade"]) == ("=", 129, 1)


@pytest.mark.parametrize("host", MODULES)
def test_a_bound_in_a_host_is_wider_than_in_the_model(host):
    model = compiled("parity", host, 16)
    assert tf.certify(model, host=host).margin < tf.certify(model).margin


@pytest.mark.slow
def test_no_certificate_says_which_operation_stopped_it():
    model = compiled("parity", "gpt2", 1023)
    found = certifying.certify_unsearched(model, host="gpt2")
    assert not found.holds
    assert "layer 1 head 0" in found.stopped


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"host": "onnx"}, "a class of transformers: gpt2, bert"),
        ({"host": "gtp2"}, "did you mean gpt2"),
        ({"host": "gpt2", "arithmetic": "float8_e4m3"}, "one of float32, float64, bfloat16"),
        ({"host": "gpt2", "order": "flash"}, "every order"),
        ({"host": "gpt2", "max_length": 9}, "at most the model's"),
        ({"host": "bert", "max_length": 9}, "at most the model's"),
    ],
)
def test_what_has_no_bounds_is_refused(arguments, error):
    with pytest.raises(TransformistError, match=error):
        tf.certify(compiled("majority", "gpt2", 8), **arguments)


@pytest.fixture
def without_torch(monkeypatch):
    """An environment in which PyTorch cannot be imported."""
    monkeypatch.setitem(sys.modules, "torch", None)


def test_where_there_is_no_certificate_a_missing_library_is_named(without_torch):
    model = compiled("majority", "gpt2", 8)
    for given in ({"host": "bert"}, {"host": "gpt2", "arithmetic": "bfloat16"}):
        with pytest.raises(OnlySearched, match="no input was tried: torch must be") as refusal:
            tf.certify(model, **given)
        searched = refusal.value.searched
        assert (searched.inputs, searched.failed, searched.host) == (0, None, given["host"])
        assert "pip install 'transformist[huggingface]'" in searched.ended
    with pytest.raises(InvalidValue, match="pip install"):
        tf.search_host(model, "gpt2")


@pytest.mark.slow
def test_a_certificate_that_does_not_hold_says_that_nothing_was_searched(without_torch):
    found = tf.certify(compiled("parity", "gpt2", 1023), host="gpt2")
    assert isinstance(found, SearchedCertificate) and not found.holds
    assert "no input was tried: torch must be installed" in str(found)


@pytest.mark.parametrize("host", MODULES)
def test_a_certificate_that_holds_runs_no_host(host, monkeypatch):
    monkeypatch.setattr(certifying, "search_host", None)
    assert tf.certify(compiled("majority", host, 8), host=host).holds


def test_the_command_says_what_was_searched(without_torch, capsys):
    given = ["certify", "programs/majority", "--max-length", "8", "--json", "--host"]
    assert main([*given, "gpt2"]) == 0
    held = json.loads(capsys.readouterr().out)
    assert held["searched"] is None and held["holds"]
    for other in (["opt"], ["gpt2", "--arithmetic", "bfloat16"]):
        assert main([*given, *other]) == 1
        found = json.loads(capsys.readouterr().out)
        assert found["host"] == other[0] and found["grade"] == 0 and not found["holds"]
        assert held.keys() == found.keys()
        assert "pip install" in found["searched"]["ended"]
    assert main([*given[:-2], "--host", "opt"]) == 1
    assert "searched opt in float32: no input was tried" in capsys.readouterr().out


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize("host", ["gpt2", "bert"])
def test_without_a_certificate_the_class_is_searched(torch, host, capsys, tmp_path):
    """In bfloat16 parity fails early; in float32 no wrong answer is known."""
    model = compiled("parity", host, 24)
    with pytest.raises(OnlySearched) as refusal:
        tf.certify(model, "bfloat16", host=host)
    found = refusal.value.searched
    assert found == tf.search_host(model, host, "bfloat16")
    assert 0 <= found.right_to < found.failed <= 24 and found.inputs > 0
    tf.export(model, tmp_path / "made", host)
    (row,) = [
        each
        for each in (tmp_path / "made" / "README.md").read_text().splitlines()
        if each.startswith("| bfloat16 |")
    ]
    assert row.startswith(f"| bfloat16 | {found.right_to} | searched |")
    right = tf.search_host(model, host, max_length=20)
    assert (right.failed, right.right_to, right.longest) == (None, 20, 20)
    given = ["certify", "programs/parity", "--host", host, "--max-length", "24"]
    assert main([*given, "--arithmetic", "bfloat16", "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["searched"]["failed"] is not None and facts["searched"]["host"] == host


def test_what_export_refuses_is_not_certified():
    model = compiled("majority", "gpt2", 8)
    # Two different labels with one text cannot be two tokens.
    labels = tf.MultiClass(W_out=[[1, 0], [0, 1]], b_out=[0, 0], labels=(1, "1"), at="last")
    with pytest.raises(InvalidValue, match="different texts"):
        tf.certify(replace(model, read_out=labels), host="gpt2")


@pytest.mark.parametrize("host", MODULES)
def test_a_number_that_is_kept_may_underflow(host):
    model = compiled("majority", host, 8)
    evaluation = tf.certify(model, host=host).host
    walk = next(iter(walks(model, host, evaluation, 8)))
    z = walk.streams[-1]  # it has means, which are on no grid
    assert not walk.rounding.ideal.quantum(z.forms[-1])
    kept = walk.rounding.affine(np.eye(model.width), np.zeros(model.width), z, "copy")
    assert (kept.rounding[0, -1] >= 2.0**-76).all()


def test_forged_hosts_are_refused():
    model = compiled("parity", "gpt2", 16)
    found = tf.certify(model, host="gpt2")
    k = found.host.exponents
    for other in (
        None,
        HostEvaluation("llama", found.host.width, k),
        HostEvaluation("gpt2", found.host.width + 64, k),
        HostEvaluation("gpt2", found.host.width, (k[0] + 1, *k[1:])),
    ):
        with pytest.raises(InvalidValue):
            tf.check_certificate(model, replace(found, host=other))
    # The proof for other factors holds: only the comparison with the checkpoint can refuse it.
    plain = tf.certify(model)
    with pytest.raises(InvalidValue):
        tf.check_certificate(model, replace(plain, host=found.host))


def test_a_host_certificate_is_saved_and_read_again(tmp_path):
    model = compiled("majority", "llama", 16)
    found = tf.certify(model, host="llama")
    tf.save(model, tmp_path / "model.safetensors", [found])
    assert tf.load_certificates(tmp_path / "model.safetensors") == (found,)


@pytest.mark.parametrize("host", MODULES)
@pytest.mark.parametrize(
    "change",
    [{"shrink": 2.0**-10}, {"epsilon": 1e-35}, {"epsilon": 1e-12, "shrink": 2.0**-20}],
)
def test_a_norm_that_changes_the_stream_is_not_certified(host, change, monkeypatch):
    constants = replace(HOST_CLASSES[host], **change)
    monkeypatch.setitem(HOST_CLASSES, host, constants)
    with pytest.raises(InvalidValue, match="norm"):
        tf.certify(compiled("parity", host, 64), host=host)


@pytest.mark.parametrize("host", MODULES)
def test_tensors_are_the_rounded_weights_times_powers_of_two(host):
    """A proof takes this of a checkpoint; it is read here from the files."""
    import safetensors.numpy

    model = compiled("induction-most-recent", host, 16)
    found = tf.certify(model, host=host).host
    s, scales = found.constants.shrink, 2.0 ** np.array(found.exponents)
    files = MODULES[host].write(model, "float32")
    tensors = safetensors.numpy.load(files["model.safetensors"])
    d = model.width
    for number, layer in enumerate(model.layers):
        maps = [head.W_O for head in layer.heads]
        values = [head.W_V for head in layer.heads]
        if host == "gpt2":
            prefix = f"transformer.h.{number}."
            stored = tensors[f"{prefix}attn.c_proj.weight"].T[:d]
            width = stored.shape[0] and tensors[f"{prefix}attn.c_attn.weight"].shape[1] // 3
            read = tensors[f"{prefix}attn.c_attn.weight"].T[2 * width :, :d]
        else:
            prefix = f"model.layers.{number}.self_attn."
            stored = tensors[f"{prefix}o_proj.weight"][:d]
            read = tensors[f"{prefix}v_proj.weight"][:, :d]
        for k, (W_O, W_V) in enumerate(zip(maps, values, strict=True)):
            wanted = np.asarray(W_O).astype(np.float32)
            own = stored[:, 64 * k : 64 * k + W_O.shape[1]].astype(float)
            assert np.array_equal(own / s * scales[:, None], wanted)
            wanted = np.asarray(W_V).astype(np.float32)
            own = read[64 * k : 64 * k + len(W_V)].astype(float)
            assert np.array_equal(own / scales, wanted)


# The classes themselves


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("transformers")
    return pytest.importorskip("torch")


def hardened(model):
    layers = [
        replace(layer, heads=tuple(replace(h, weighting="average-hard") for h in layer.heads))
        for layer in model.layers
    ]
    return replace(model, layers=tuple(layers))


def walks(model, host, evaluation, n):
    for order in host_orders(evaluation.constants.angle):
        walk = HostWalk(model, number_system("float32"), n, order, Ledger(), evaluation)
        # What was bounded until a walk stops must hold.
        with np.errstate(all="ignore"), contextlib.suppress(Unfollowed):
            walk.run()
        yield walk


def hold_in_class(torch, model, host, n, inputs, tmp_path):
    """Hold the stream after every layer, and what the last norm gives, against their bounds."""
    module = MODULES[host]
    files = module.write(model, "float32", n)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    network = checkpoint.loaded(tmp_path, module.STOCK.auto)[1]
    facts = json.loads(files[checkpoint.FACTS])
    evaluation = checkpoint.evaluation(module.STOCK, model, n)
    found = list(walks(model, host, evaluation, n))
    s, scales = evaluation.constants.shrink, 2.0 ** np.array(evaluation.exponents, float)
    kinds = [*model.alphabet, *model.embedding.front]
    steps = np.cumsum([0, *[bool(x.heads) + (x.feed_forward is not None) for x in model.layers]])
    worst = 0.0
    for x, kernel in itertools.product(inputs, ("eager", "sdpa")):
        network.set_attn_implementation(kernel)
        rows = [kinds.index(symbol) for symbol in (*model.embedding.front, *x)]
        tokens = [facts["symbol_tokens"][model.embedding.symbols.index(kinds[k])] for k in rows]
        with torch.inference_mode():
            given = network(torch.tensor([tokens]), output_hidden_states=True)
        streams = [z[0, :, : model.width].double().numpy() for z in given.hidden_states]
        exact = number_system("exact")
        ideal = [exact.numbers(z)[0] for _, z in hardened(model).streams([x], "exact")]
        walk = found[kernel == "sdpa" and len(found) > 1]
        for number, step in enumerate(steps.tolist()):
            is_last = number == len(model.layers)
            if step >= len(walk.streams):
                break
            known = walk.streams[step]
            if is_last:
                known, factor = walk.read(known, None, "read-out"), scales
            else:
                factor = scales / s
            for i, kind in enumerate(rows):
                for slot in range(model.width):
                    computed = Fraction(streams[number][i, slot] * factor[slot])
                    off = abs(computed - Fraction(ideal[step][i][slot]))
                    bound = known.error[0, slot, kind]
                    assert off <= bound, (host, kernel, x, number, i, slot, float(off), bound)
                    worst = max(worst, float(off / Fraction(bound)) if bound else 0.0)
    return worst


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize(("name", "host"), IN_HOSTS)
def test_programs_stay_within_their_bounds_in_a_class(torch, name, host, tmp_path):
    model, draw = compiled(name, host, 64), random.Random(name)
    alphabet = model.alphabet
    inputs = [tuple(draw.choices(alphabet, k=64)), (alphabet[0],) * 20 + (alphabet[-1],) * 20, ()]
    worst = hold_in_class(torch, model, host, model.max_length, inputs, tmp_path)
    assert 0 < worst < 1


def any_model(seed, host):
    """One or two layers, of width 9 to 12, with heads that choose, tie, mix and take means."""
    rng = np.random.default_rng(seed)
    d, grid = int(rng.integers(9, 13)), int(rng.choice([1, 3, 4, 64]))
    sizes = 4.0 ** rng.integers(-2, 4, d)

    def numbers(*shape, dense=0.4):
        return rng.integers(-grid, grid + 1, shape) / grid * (rng.random(shape) < dense)

    def head(is_mean):
        score = 0 if is_mean else float(rng.choice([1, 8, 2**12]))
        biases = {"b_Q": numbers(4) * score, "b_K": numbers(4) * score, "b_V": numbers(3)}
        return tf.Attention(
            W_Q=numbers(4, d) * score, W_K=numbers(4, d) * (score > 0), W_V=numbers(3, d),
            W_O=numbers(d, 3) * sizes[:, None], mask="future", **biases,
        )  # fmt: skip

    def network():
        W_1, b_1 = numbers(6, d), numbers(6)
        W_1[1], W_1[3] = W_1[0], -W_1[2]  # steps and copies
        b_1[1], b_1[3] = b_1[0] - 1, -b_1[2]
        W_2 = numbers(d, 6) * sizes[:, None]
        W_2[:, 1], W_2[:, 3] = -W_2[:, 0], -W_2[:, 2]
        return tf.FeedForward(W_1=W_1, b_1=b_1, W_2=W_2, b_2=numbers(d) * sizes)

    stream = tf.Stream(tuple(f"s{k}" for k in range(d)))
    words = {
        each: dict(zip(stream.slots, (numbers(d) * sizes).tolist(), strict=True))
        for each in ("a", "b", "BOS")
    }
    places = {"s0": "i", "s1": "i^2", "s2": "(-1)^i"} if host == "gpt2" else None
    layers = tuple(
        tf.Layer((head(rng.random() < 0.5), head(False)), network())
        for _ in range(int(rng.integers(1, 3)))
    )
    return tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(stream, words, positions=places, front=("BOS",)),
        layers=layers,
        read_out=tf.MultiClass(
            W_out=numbers(3, d), b_out=numbers(3), labels=("x", "y", "z"), at="every"
        ),
        max_length=9,
    )


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize("host", MODULES)
def test_drawn_models_stay_within_their_bounds_in_a_class(torch, host, tmp_path):
    bounded = 0
    for seed in range(5):
        model, draw = any_model(seed, host), random.Random(seed)
        inputs = [tuple(draw.choices(model.alphabet, k=m)) for m in (1, 5)]
        evaluation = checkpoint.evaluation(MODULES[host].STOCK, model, None)
        if any(len(walk.streams) < 3 for walk in walks(model, host, evaluation, 9)):
            continue
        bounded += 1
        (tmp_path / str(seed)).mkdir()
        hold_in_class(torch, model, host, 9, inputs, tmp_path / str(seed))
    assert bounded >= 3
