"""Saved transformers: what comes back is what was given, and what is no saved model is refused."""

import dataclasses
import hashlib
import inspect
import json
import os
import pickle
import subprocess
import sys
import typing
from fractions import Fraction

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import transformist as tf
from transformist import model as definitions
from transformist.circuit.atoms import FunctionOfPlace, Rounded, RowNumber
from transformist.claims import StringClaim, ask
from transformist.cli import main
from transformist.domains import Strings
from transformist.errors import InvalidValue, TransformistError, UnreadableInput
from transformist.hosts import plain_values, saved_model
from transformist.hosts.certifying import SearchedCertificate
from transformist.hosts.host_comparison import HostSearch
from transformist.hosts.plain_values import CLASSES, decoded, encoded
from transformist.programs import PROGRAMS
from transformist.verify.certificate import PARTS, Certificate

STRINGS = [each.name for each in tf.recipes() if isinstance(each.claim, StringClaim)]


def built(name):
    recipe = tf.recipe(name)
    return recipe.build(**({"max_length": 9} if "max_length" in recipe.parameters else {}))


def same(one, other):
    """Whether two values have the same parts, down to the bits of each number."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if (one.shape, one.dtype) != (other.shape, other.dtype) or other.flags.writeable:
            return False
        if one.dtype == object:
            pairs = list(zip(one.ravel(), other.ravel(), strict=True))
            return all(type(p) is type(q) is Fraction and p == q for p, q in pairs)
        return one.tobytes() == other.tobytes()
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        parts = (name for name in vars(one) if not name.startswith("_"))
        return all(same(getattr(one, name), getattr(other, name)) for name in parts)
    return one == other


def small(**changes):
    """A model of one slot, for what no recipe has."""
    parts = {
        "stream": tf.Stream(("x",)),
        "embedding": tf.Embedding(symbols=("a", "b"), vectors=[[1], [2]]),
        "layers": (),
        "read_out": tf.Binary(W_out=[[1]]),
    }
    return tf.Transformer(**(parts | changes))


def through_a_file(model, tmp_path):
    path = tmp_path / "model.safetensors"
    tf.save(model, path)
    return tf.load(path)


class TestWhatComesBack:
    @pytest.mark.parametrize("name", STRINGS)
    def test_every_recipe_on_strings(self, name, tmp_path):
        model = built(name)
        back = through_a_file(model, tmp_path)
        assert same(model, back) and repr(model) == repr(back)
        domain = ask(tf.recipe(name).claim.domain, **tf.recipe(name).settings({}))
        strings = [x for x in (*domain.hard(6), *domain.drawn(6, 5, seed=1)) if len(x)]
        assert strings and model.answers(strings) == back.answers(strings)

    @pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
    @pytest.mark.parametrize("name", PROGRAMS)
    def test_every_compiled_program(self, name, weighting, tmp_path):
        model = tf.compile(PROGRAMS[name], max_length=20, weighting=weighting)
        back = through_a_file(model, tmp_path)
        assert same(model, back) and repr(model) == repr(back)
        strings = Strings(model.alphabet, lambda _: ()).drawn(20, 10, seed=2)
        assert model.answers(strings) == back.answers(strings)

    def test_there_is_no_other_recipe_of_a_transformer(self):
        others = (each for each in tf.recipes() if each.name not in STRINGS)
        assert not any(isinstance(each.build(), tf.Transformer) for each in others)

    @pytest.mark.parametrize(
        "number", ["1/3", "-22/7", Fraction(2**1100, 3), Fraction(-(10**400)), Fraction(1, 10**400)]
    )
    def test_rationals(self, number, tmp_path):
        read_out = tf.Binary(W_out=[[number]], b_out=["1/3"])
        back = through_a_file(small(read_out=read_out), tmp_path)
        assert same(back.read_out, read_out) and back.read_out.W_out[0, 0] == Fraction(number)

    def test_a_rational_of_more_digits_than_python_prints(self, tmp_path):
        number = Fraction(7**9000, 3)
        back = through_a_file(small(read_out=tf.Binary(W_out=[[number]])), tmp_path)
        assert back.read_out.W_out[0, 0] == number

    @pytest.mark.parametrize("number", [-0.0, 5e-324, 1.7976931348623157e308, 0.1])
    def test_floats_to_the_bit(self, number, tmp_path):
        read_out = tf.Binary(W_out=np.array([[number]]))
        assert same(through_a_file(small(read_out=read_out), tmp_path).read_out, read_out)

    def test_arrays_in_another_order_of_memory(self, tmp_path):
        vectors = np.asfortranarray(np.arange(6.0).reshape(2, 3))
        embedding = tf.Embedding(symbols=("a", "b"), vectors=vectors)
        model = small(
            stream=tf.Stream(("x", "y", "z")),
            embedding=embedding,
            read_out=tf.RealVector(W_out=[[1, 0, 0]]),
        )
        assert same(through_a_file(model, tmp_path).embedding, embedding)

    @pytest.mark.parametrize(
        "symbols", [(1, -1), (2**70, -(2**70)), ("ab", "c"), ("é", "\ud800"), ("", '"'), (0, "0")]
    )
    def test_symbols(self, symbols, tmp_path):
        model = small(embedding=tf.Embedding(symbols=symbols, vectors=[[1], [2]]))
        assert same(through_a_file(model, tmp_path).alphabet, symbols)

    @pytest.mark.parametrize(
        "positions",
        [
            tf.PositionFunctions(("i/n",)),
            tf.PositionFunctions((None,)),
            tf.PositionTable(vectors=[["1/3"], [2]]),
            tf.Sinusoids(1),
        ],
    )
    def test_positions(self, positions, tmp_path):
        embedding = tf.Embedding(symbols=("a", "b"), vectors=[[1], [2]], positions=positions)
        back = through_a_file(small(embedding=embedding, max_length=2), tmp_path)
        assert same(back.embedding, embedding) and back.max_length == 2

    @pytest.mark.parametrize(
        "read_out",
        [
            tf.MultiClass(W_out=[[1], [-1]], labels=("yes", 0), at="every"),
            tf.LanguageModel(W_out=[[1], [-1]], labels=("a", "EOS")),
            tf.RealVector(W_out=[[1]]),
            tf.NearZero(W_out=[[1], [2]], powers=(1, 2)),
        ],
    )
    def test_read_outs(self, read_out, tmp_path):
        assert same(through_a_file(small(read_out=read_out), tmp_path).read_out, read_out)

    def test_norms(self, tmp_path):
        norm = tf.LayerNorm(gain=["1/3"], epsilon="1/100000", W_N=[[2]])
        network = tf.FeedForward(W_1=[[1]], W_2=[[1]], activation="gelu-tanh")
        layer = tf.Layer((), network, pre_norms=(None, norm), post_norms=(None, norm))
        model = small(layers=(layer,), final_norm=norm)
        assert same(through_a_file(model, tmp_path), model)

    def test_every_weight_of_a_head_and_a_network(self, tmp_path):
        head = tf.Attention(
            W_Q=[[1]], W_K=[[2]], W_V=[[3]], W_O=[[4]], b_Q=[5], b_K=[6], b_V=[7], b_O=[8],
            weighting="leftmost-hard", mask="strict-past",
        )  # fmt: skip
        network = tf.FeedForward(W_1=[[1]], b_1=[2], W_2=[[3]], b_2=[4])
        model = small(layers=(tf.Layer((head, head), network),))
        assert same(through_a_file(model, tmp_path), model)

    def test_tensors_bear_the_names_of_their_places(self, tmp_path):
        tf.save(tf.recipe("dyck-1").build(), tmp_path / "model")
        names = set(load_file(tmp_path / "model"))
        assert {"layers.0.heads.0.W_Q", "read_out.W_out", "embedding.vectors"} <= names


class TestTheTables:
    def test_every_class_that_a_transformer_may_hold_is_written(self):
        met, left = set(), [tf.Transformer]
        while left:
            each = left.pop()
            if each in met:
                continue
            met.add(each)
            left += each.__subclasses__()
            if dataclasses.is_dataclass(each):
                left += _classes_in(typing.get_type_hints(each).values())
        concrete = {
            each
            for each in met
            if dataclasses.is_dataclass(each)
            and not inspect.isabstract(each)
            and each.__module__.startswith(definitions.__name__)
            and each is not definitions.ReadOut
        }
        assert concrete == set(CLASSES.values()) - set(PARTS)

    def test_every_class_that_a_certificate_may_hold_is_written(self):
        met, left = set(), [Certificate]
        while left:
            each = left.pop()
            if each not in met:
                met.add(each)
                left += [*_classes_in(typing.get_type_hints(each).values()), *each.__subclasses__()]
        of_circuits = {RowNumber, Rounded, FunctionOfPlace}  # no certificate finds them in weights
        of_searches = {SearchedCertificate, HostSearch}  # they do not hold, and `save` refuses them
        # Libraries, where they are loaded, have data classes that are strings.
        ours = {each for each in met if each.__module__.startswith("transformist.")}
        found = {each for each in ours if dataclasses.is_dataclass(each)}
        assert of_circuits | of_searches < found
        assert found - of_circuits - of_searches == set(PARTS)

    def test_atoms_keep_the_keys_that_files_have(self):
        keys = {"Embedded", "Feature", "Relu", "Step", "Fetched", "Kept"}
        assert keys <= set(CLASSES)
        assert encoded(CLASSES["Feature"]("i"), "", {}) == {"Feature": {"name": "i"}}

    def test_what_is_no_plain_value_is_refused(self):
        with pytest.raises(
            InvalidValue, match=r"stream: a saved value must be .*; received 1\.5j, a c"
        ):
            encoded(1.5j, "stream", {})
        numpys = small(embedding=tf.Embedding(symbols=(np.int64(1), 2), vectors=[[1], [2]]))
        with pytest.raises(InvalidValue, match=r"embedding\.symbols\.0: .* a int64"):
            encoded(numpys, "", {})

    @pytest.mark.parametrize(
        "value", ["a", 3, -(2**60), True, None, Fraction(-1, 3), ((1, ("b",)), ()), Fraction(2)]
    )
    def test_plain_values(self, value):
        back = decoded(json.loads(json.dumps(encoded(value, "", {}))), {}.__getitem__)
        assert same(back, value)

    def test_a_whole_number_of_more_digits_than_python_prints(self):
        back = decoded(json.loads(json.dumps(encoded(-(7**9000), "", {}))), {}.__getitem__)
        assert back == -(7**9000)

    def test_a_new_field_needs_nothing(self, monkeypatch):
        @dataclasses.dataclass(frozen=True)
        class Stay:
            slot: str
            values: tuple[str | int, ...] = ()
            note: Fraction | None = None

        for table, entry in (
            (plain_values._WRITERS, {Stay: plain_values._write_fields}),
            (
                plain_values._READERS,
                {"Stay": plain_values.functools.partial(plain_values._read_fields, Stay)},
            ),
        ):
            for key, value in entry.items():
                monkeypatch.setitem(table, key, value)
        stays = (Stay("x", ("a", 1), Fraction(1, 3)), Stay("y"))
        assert same(decoded(encoded(stays, "", {}), {}.__getitem__), stays)
        older = {"Stay": {"slot": "x"}}  # written before the field was there
        assert decoded(older, {}.__getitem__) == Stay("x")


def _classes_in(hints):
    for hint in hints:
        if isinstance(hint, type) and not typing.get_args(hint):
            yield hint
        yield from _classes_in(typing.get_args(hint))


class TestTheFile:
    @pytest.mark.parametrize("seeds", ["01", pytest.param("012", marks=pytest.mark.slow)])
    def test_the_bytes_are_a_function_of_the_model(self, tmp_path, seeds):
        code = (
            "import sys, transformist as tf;"
            "from transformist.programs import PROGRAMS;"
            "tf.save(tf.compile(PROGRAMS['reverse'], max_length=9), sys.argv[3]);"
            "tf.save(tf.recipe('dyck-k-d').build(kinds=2, depth=2), sys.argv[1]);"
            "tf.save(tf.recipe('parity').build(), sys.argv[2])"
        )
        digests = set()
        for seed in seeds:
            files = [tmp_path / f"{number}-{seed}" for number in range(3)]
            environment = {**os.environ, "PYTHONHASHSEED": seed}
            subprocess.run([sys.executable, "-c", code, *files], check=True, env=environment)
            digests.add(tuple(hashlib.sha256(each.read_bytes()).hexdigest() for each in files))
        assert len(digests) == 1

    def test_what_is_there_is_replaced_whole(self, tmp_path, monkeypatch):
        path = tmp_path / "any name"
        tf.save(small(), path)
        before = path.read_bytes()
        monkeypatch.setattr(os, "fsync", _full)
        with pytest.raises(
            InvalidValue,
            match=r"save: the output must be a file.*No "
            "space left",
        ):
            tf.save(small(max_length=3), path)
        assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
        monkeypatch.undo()
        tf.save(small(max_length=3), path)
        assert tf.load(path).max_length == 3 and list(tmp_path.iterdir()) == [path]

    def test_a_link_stays_a_link(self, tmp_path):
        place, link = tmp_path / "there" / "place", tmp_path / "link"
        place.parent.mkdir()
        link.symlink_to(place)
        tf.save(small(), link)
        assert link.is_symlink() and tf.load(place).width == 1

    def test_it_is_written_in_the_directory_of_its_place(self, tmp_path, monkeypatch):
        place, link = tmp_path / "there" / "place", tmp_path / "link"
        place.parent.mkdir()
        link.symlink_to(place)
        seen = []
        monkeypatch.setattr(os, "fsync", lambda _: seen.extend(place.parent.iterdir()))
        tf.save(small(), link)
        assert len(seen) == 1 and seen != [place] and list(place.parent.iterdir()) == [place]

    @pytest.mark.parametrize("path", ["", "no/such/directory", "\0", "a" * 300, "/dev/null"])
    def test_a_place_that_is_none(self, tmp_path, path):
        with pytest.raises(
            InvalidValue, match="save: the output must be a file in a writable directory"
        ):
            tf.save(small(), path if path.startswith("/") else tmp_path / path)
        assert not list(tmp_path.iterdir())

    def test_another_kind_of_model(self, tmp_path):
        with pytest.raises(
            InvalidValue,
            match=r"save: the model must be a Transformer; "
            "received FeedForw",
        ):
            tf.save(tf.recipe("min").build(), tmp_path / "min")

    def test_too_many_digits(self, tmp_path, monkeypatch):
        monkeypatch.setattr(saved_model, "LARGEST_HEADER", 500)
        with pytest.raises(InvalidValue, match=r"at most 500 bytes; received 1,\d+, most of them"):
            tf.save(small(read_out=tf.Binary(W_out=[[Fraction(7**900, 3)]])), tmp_path / "model")
        assert not list(tmp_path.iterdir())


def _full(_descriptor):
    raise OSError(28, "No space left on device")


def described(**parts):
    """A file's metadata: those of `small`, changed."""
    tensors = {}
    model = encoded(small(), "", tensors)
    model["Transformer"] |= parts
    return {"version": 1, "model": model}, tensors


class TestRefusals:
    def refused(self, path):
        with pytest.raises(UnreadableInput) as caught:
            tf.load(path)
        assert "\n" not in str(caught.value) and str(path) in str(caught.value)
        assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
        return str(caught.value)

    def written(self, tmp_path, metadata, tensors):
        path = tmp_path / "model.safetensors"
        save_file(tensors, path, {"transformist": json.dumps(metadata)})
        return path

    @pytest.mark.parametrize("name", ["absent", ".", "\0", "a" * 300])
    def test_no_file(self, tmp_path, name):
        assert "load: a saved model is a file that is there; received" in self.refused(
            tmp_path / name
        )

    @pytest.mark.parametrize("data", [b"", b"{}", b"\xff" * 64, b"PK\3\4 a zip file, no doubt"])
    def test_no_safetensors(self, tmp_path, data):
        path = tmp_path / "model"
        path.write_bytes(data)
        assert "a saved model is a whole safetensors file" in self.refused(path)

    def test_cut_short_anywhere(self, tmp_path):
        path = tmp_path / "model"
        tf.save(small(), path)
        data = path.read_bytes()
        for length in range(len(data)):
            path.write_bytes(data[:length])
            assert "a saved model is a whole safetensors file" in self.refused(path)

    def test_of_another_program(self, tmp_path):
        path = tmp_path / "model"
        for metadata in (None, {"format": "pt"}):
            save_file({"weight": np.zeros(3)}, path, metadata)
            assert "a safetensors file of another program; give" in self.refused(path)

    def test_of_a_newer_version(self, tmp_path):
        metadata, tensors = described()
        path = self.written(tmp_path, metadata | {"version": 2, "model": {"Mamba": {}}}, tensors)
        assert "has a format version of at most 1; received" in self.refused(path)
        assert self.refused(path).endswith("of version 2; update transformist")

    @pytest.mark.parametrize("version", [0, None, "1", 1.5])
    def test_of_no_version(self, tmp_path, version):
        metadata, tensors = described()
        path = self.written(tmp_path, metadata | {"version": version}, tensors)
        assert "has metadata that fit its tensors" in self.refused(path)

    @pytest.mark.parametrize(
        "parts",
        [
            {"max_length": "3"},
            {"max_length": True},
            {"max_length": 3.0},
            {"layers": None},
            {"layers": [None]},
            {"layers": {}},
            {"layers": {"Layer": {}, "Stream": {}}},
            {"stream": {"Stream": {"slots": [1]}}},
            {"stream": {"Stream": {"slots": ["x", "y"]}}},
            {"stream": {"Stream": {}}},
            {
                "embedding": {
                    "Embedding": {"symbols": "ab", "vectors": {"tensor": "embedding.vectors"}}
                }
            },
            {"stream": {"Path": {"slots": ["x"]}}},
            {"stream": {"Stream": {"slots": ["x"], "colour": "red"}}},
            {"final_norm": {"Stream": {"slots": ["x"]}}},
            {"read_out": {"Binary": {"W_out": {"tensor": "absent"}}}},
            {"read_out": {"Binary": {"W_out": {"tensor": ["x"]}}}},
            {"read_out": {"Binary": {"W_out": {"rationals": ["read_out.W_out", [[9, "1/3"]]]}}}},
            {"read_out": {"Binary": {"W_out": {"rationals": ["read_out.W_out", [[0, "1/0"]]]}}}},
            {"read_out": {"Binary": {"W_out": {"rationals": ["read_out.W_out", [[0, "x"]]]}}}},
            {"read_out": {"Binary": {"W_out": "read_out.W_out"}}},
            {"read_out": {"Binary": {"W_out": {"tensor": "embedding.vectors"}}}},
        ],
        ids=str,
    )
    def test_metadata_that_do_not_fit(self, tmp_path, parts):
        path = self.written(tmp_path, *described(**parts))
        assert "a saved model has metadata that fit its tensors" in self.refused(path)

    @pytest.mark.parametrize("text", ["", "[1", "3", "[]", '{"version": 1}', "[" * 100_000])
    def test_metadata_that_are_none(self, tmp_path, text):
        path = tmp_path / "model"
        save_file({"weight": np.zeros(3)}, path, {"transformist": text})
        assert "a saved model has metadata that fit its tensors" in self.refused(path)

    def test_weights_that_are_not_finite(self, tmp_path):
        metadata, tensors = described()
        path = self.written(tmp_path, metadata, tensors | {"read_out.W_out": np.array([[np.nan]])})
        assert "(NotFinite: every number must be finite)" in self.refused(path)

    @pytest.mark.parametrize("version", [None, 1, 3, "2"])
    def test_a_certificate_of_another_version(self, tmp_path, version):
        """Those of the first have none; the model is read as ever."""
        model, path = built("dyck-1"), tmp_path / "file"
        tf.save(model, path, tf.certify(model))
        with safe_open(path, framework="np") as file:
            metadata = json.loads(file.metadata()["transformist"])
        (written,) = metadata["certificates"]
        assert written["Certificate"].pop("version", None) == 2
        if version is not None:
            written["Certificate"]["version"] = version
        path = self.written(tmp_path, metadata, load_file(path))
        assert same(tf.load(path), model)
        words = f"of version 2; .*one of version {version or 1} in "
        with pytest.raises(UnreadableInput, match=words) as caught:
            tf.load_certificates(path)
        assert "certify the model again" in str(caught.value) and str(path) in str(caught.value)
        assert main(["certify", str(path), "--check"]) == 2

    def test_a_whole_model_is_wanted(self, tmp_path):
        metadata, tensors = described()
        stream = metadata["model"]["Transformer"]["stream"]
        path = self.written(tmp_path, {"version": 1, "model": stream}, tensors)
        assert "(TypeError: version 1, Stream)" in self.refused(path)

    @pytest.mark.parametrize("given", [None, 5, b"model", ["model"]])
    def test_what_is_no_path(self, given):
        read = [tf.load, tf.load_certificates, lambda path: tf.save(built("dyck-1"), path)]
        for each in read:
            with pytest.raises(InvalidValue, match="must be a string or a pathlib") as error:
                each(given)
            assert f"received {given!r}, a {type(given).__name__};" in str(error.value)

    def test_each_is_one_of_ours(self):
        assert issubclass(UnreadableInput, TransformistError)


def test_importing_does_not_load_safetensors():
    code = "import transformist, sys; print('safetensors' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_program_is_not_overwritten_by_its_model(tmp_path):
    source = tmp_path / "mine.py"
    source.write_text("kept = True\n")
    with pytest.raises(
        tf.TransformistError,
        match=r"must not end in .py, .*; received .*mine\.py; name it mine.saf",
    ):
        tf.save(tf.recipe("dyck-1").build(max_length=4), source)
    assert source.read_text() == "kept = True\n"
