"""The adapter of llama.cpp, against a library of the same functions; and llama.cpp itself."""

import ctypes
import sys
import types

import numpy as np
import pytest

from transformist.conformance import llama_cpp_engine as adapter
from transformist.conformance import run
from transformist.conformance.engine_table import ENGINES
from transformist.errors import InvalidValue, UnknownName

SIZE = 11


def following(tokens):
    """The greedy token after some tokens, which depends on each of them and on its position."""
    return sum((place + 3) * (token + 1) ** 2 for place, token in enumerate(tokens)) % SIZE


class Batch:
    """The arrays of a `llama_batch`."""

    def __init__(self, count):
        self.n_tokens = 0
        self.token, self.pos, self.n_seq_id, self.logits = ([0] * count for _ in range(4))
        self.seq_id = [[0] for _ in range(count)]


class Library(types.ModuleType):
    """Functions of `llama.h` on sequences of tokens, which refuse what the header forbids."""

    LLAMA_LOAD_MODE_NONE = 0

    def __init__(self):
        super().__init__("llama_cpp")
        self.contexts, self.settings, self.freed, self.pieces = [], [], [], []
        self.code, self.says = 0, None
        self.llama_context_default_params = self.llama_model_default_params = types.SimpleNamespace
        self.llama_log_callback = lambda function: function
        self.llama_batch_init = lambda count, _size, _sequences: Batch(count)
        self.llama_batch_free = self.llama_sampler_free = lambda each: self.freed.append(each)
        self.llama_model_free = self.llama_batch_free
        self.llama_model_get_vocab = self.llama_get_memory = lambda each: each
        self.llama_vocab_n_tokens = lambda _vocab: SIZE
        self.llama_sampler_init_greedy = lambda: "sampler"

    def llama_log_set(self, function, _data):
        self.log = function

    def llama_model_load_from_file(self, path, settings):
        assert settings.n_gpu_layers == 0
        if self.says:
            for level, text in self.says:
                self.log(level, text, None)
            return None
        return {"file": path}

    def llama_init_from_model(self, _model, settings):
        self.settings.append(settings)
        self.contexts.append({number: [] for number in range(settings.n_seq_max)})
        return self.contexts[-1]

    def llama_free(self, context):
        self.freed.append("context")
        self.contexts.remove(context)

    def llama_memory_seq_cp(self, context, source, target, _first, _last):
        context[target] = [*context[source]]

    def llama_decode(self, context, batch):
        if self.code:
            return self.code
        assert 0 < batch.n_tokens <= self.settings[-1].n_batch
        self.pieces.append(batch.n_tokens)
        self.rows = {}
        for k in range(batch.n_tokens):
            assert batch.n_seq_id[k] == 1
            (number,) = batch.seq_id[k]
            own = context[number]
            assert batch.pos[k] == len(own), "positions of a sequence go on without a gap"
            own.append(batch.token[k])
            assert sum(map(len, context.values())) <= self.settings[-1].n_ctx
            if batch.logits[k]:
                self.rows[k] = following(own)
        return 0

    def llama_get_logits_ith(self, _context, k):
        logits = [0.0] * SIZE
        logits[self.rows[k]] = 1.0
        return (ctypes.c_float * SIZE)(*logits)

    def llama_sampler_sample(self, _sampler, _context, k):
        assert k == -1
        return self.rows[max(self.rows)]


@pytest.fixture
def library(monkeypatch):
    made = Library()
    monkeypatch.setitem(sys.modules, "llama_cpp", made)
    monkeypatch.setitem(sys.modules, "gguf", types.ModuleType("gguf"))
    made.weights = []
    monkeypatch.setattr(
        adapter, "write_gguf", lambda _checkpoint, _path, weights: made.weights.append(weights)
    )
    return made


def engine(tmp_path, **settings):
    return adapter.llama_cpp_engine(**settings)(tmp_path / "norm")


def continued(ids, count):
    found = [*ids]
    for _ in range(count):
        found.append(following(found))
    return found[len(ids) :]


@pytest.mark.parametrize("ids", [[4], [4, 9], [1, 2, 3, 4, 5]])
@pytest.mark.parametrize("way", ["generation", "prefix-cache"])
def test_generation_goes_on_token_by_token(library, tmp_path, way, ids):
    opened = engine(tmp_path)
    greedy = {"generation": opened.run, **opened.generations}[way]
    assert greedy(ids, 6) == continued(ids, 6)
    first = [len(ids)] if way == "generation" or len(ids) == 1 else []
    first = first or [len(ids) // 2, len(ids) - len(ids) // 2]
    assert library.pieces == [*first, 1, 1, 1, 1, 1]
    assert not library.contexts and library.freed.count("sampler") == 1


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("ends", [[7], [3, 6, 7], [5, 6, 7], [1, 2, 3, 4, 5, 6, 7]])
def test_every_row_is_a_sequence_without_padding(library, tmp_path, side, ends):
    rows = [[1], [2, 3, 4], [5, 6, 7, 8, 9, 10, 0]]
    ids, mask = np.zeros((3, 7), int), np.zeros((3, 7), bool)
    for row, tokens in enumerate(rows):
        at = slice(7 - len(tokens), 7) if side == "left" else slice(len(tokens))
        ids[row, at], mask[row, at] = tokens, True
    found = engine(tmp_path).next_tokens(ids, mask, ends)
    for row, tokens in enumerate(rows):
        wanted = [following(tokens[: k + 1]) for k in range(len(tokens))]
        assert found[row, mask[row]].tolist() == wanted
    counts = [int(mask[:, a:b].sum()) for a, b in zip([0, *ends], ends, strict=False)]
    assert library.pieces == counts and not library.contexts


def test_settings_reach_the_context(library, tmp_path):
    engine(tmp_path).run([1], 1)
    engine(tmp_path, cache="q8_0", has_flash=False).run([1], 1)
    engine(tmp_path, number_format="bfloat16").run([1], 1)
    kinds = [(each.type_k, each.type_v, each.flash_attn_type) for each in library.settings]
    assert kinds == [(0, 0, 1), (8, 8, 0), (30, 30, 1)]
    assert library.weights == ["float32", "float32", "bfloat16"]
    with pytest.raises(UnknownName, match="format of the cache"):
        adapter.llama_cpp_engine(cache="q8_1")
    assert all(each.n_threads == each.n_threads_batch == 1 for each in library.settings)


def test_a_model_is_freed_with_its_engine(library, tmp_path):
    opened = engine(tmp_path)
    assert not library.freed
    del opened
    assert [each["file"].endswith(b"norm.gguf") for each in library.freed] == [True]


def test_the_words_of_the_library_are_kept(library, tmp_path):
    library.says = [(2, b"loading\n"), (4, b"unknown architecture\n")]
    with pytest.raises(RuntimeError, match=r"^unknown architecture$"):
        engine(tmp_path)
    library.says = [(2, b"loading\n")]
    with pytest.raises(RuntimeError, match="llama_model_load_from_file gave no model"):
        engine(tmp_path)
    library.says, library.code = None, -1
    with pytest.raises(RuntimeError, match="llama_decode returned -1"):
        engine(tmp_path).run([1], 1)
    assert not library.contexts


@pytest.mark.parametrize("missing", ["llama_cpp", "gguf"])
def test_a_missing_library_is_refused_with_the_command(library, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    for name in ("llama.cpp", "llama.cpp-without-flash"):
        with pytest.raises(InvalidValue, match=r"pip install 'transformist\[llama-cpp\]'"):
            ENGINES[name]()


@pytest.mark.hosts
@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama.cpp", "llama.cpp-without-flash"])
def test_llama_cpp_answers_as_the_page_says(name):
    for each in ("llama_cpp", "gguf"):
        pytest.importorskip(each, reason=f"{each} is not installed (pip extra llama-cpp)")
    found = run(ENGINES[name](), family="llama", length=32)
    modes = {"alone", "right-padded", "chunks", "decoding", "generation", "prefix-cache"}
    assert {each.mode for each in found.rows()} == modes and found.not_run == 0
    wrong = {each.name for each in found.rows() if each.wrong}
    # The flash kernel rounds keys, values and their sums to float16.
    assert wrong == ({"depth", "number"} if name == "llama.cpp" else set())
