"""The engine llama.cpp: a checkpoint written as GGUF, through the C functions of `llama.h`.

The functions of llama-cpp-python have the names of the header. A prompt is a sequence of its own,
and a batch is a list of tokens, each with its sequence and its position: there is no padding.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.conformance.gguf_file import write_gguf
from transformist.errors import UnknownName, is_name
from transformist.hosts.optional_library import optional

ERROR = 4
"""The level of errors in the log, `GGML_LOG_LEVEL_ERROR` of `ggml.h`."""

CACHES = {"float32": 0, "float16": 1, "bfloat16": 30, "q8_0": 8, "q4_0": 2}
"""Formats of keys and values in the cache, with their numbers `GGML_TYPE_…` of `ggml.h`."""


class _Token(NamedTuple):
    """A token of a batch: its sequence, its position there, and whether its logits are read."""

    id: int
    sequence: int
    position: int
    is_read: bool


@dataclass(frozen=True)
class _Model:
    """A checkpoint in llama.cpp.

    Attributes:
        library: the module `llama_cpp`.
        model: the pointer to the model.
        cache: the format of keys and values in the cache.
        has_flash: whether attention is evaluated by its flash kernel, which takes keys in pieces.

    """

    library: Any
    model: Any
    cache: str
    has_flash: bool

    modes = ("alone", "right-padded", "chunks", "decoding")
    """The modes of `next_tokens`. Rows have no padding, so that padding on the left adds none."""

    def run(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Return the tokens of the greedy sampler after a prompt."""
        with self._context(len(ids) + max_new_tokens, 1) as context:
            self._decode(context, _sequence(ids, 0, 0))
            return self._continued(context, 0, len(ids), max_new_tokens)

    @property
    def generations(self) -> dict[str, Callable[[Sequence[int], int], list[int]]]:
        """Other ways of generation, by the names of their modes."""
        return {"prefix-cache": self._after_prefix}

    def _after_prefix(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Generate in a sequence that gets the first half of the prompt from another one."""
        most = len(ids) // 2
        with self._context(len(ids) + max_new_tokens, 2) as context:
            if most:
                self._decode(context, _sequence(ids[:most], 0, 0))
                memory = self.library.llama_get_memory(context)
                self.library.llama_memory_seq_cp(memory, 0, 1, -1, -1)
            self._decode(context, _sequence(ids[most:], 1, most))
            return self._continued(context, 1, len(ids), max_new_tokens)

    def next_tokens(self, ids: Any, mask: Any, ends: Sequence[int]) -> NDArray[np.int64]:
        """Return the token of largest logit after each position of a batch."""
        found = np.zeros(ids.shape, np.int64)
        places = np.asarray(mask).cumsum(1) - 1
        with self._context(ids.shape[1], len(ids)) as context:
            begin = 0
            for end in ends:
                where = [
                    (row, column)
                    for row in range(len(ids))
                    for column in range(begin, end)
                    if mask[row, column]
                ]
                batch = [
                    _Token(int(ids[each]), each[0], int(places[each]), is_read=True)
                    for each in where
                ]
                tokens = self._decode(context, batch) if batch else []
                for each, token in zip(where, tokens, strict=True):
                    found[each] = token
                begin = end
        return found

    @contextmanager
    def _context(self, length: int, sequences: int) -> Iterator[Any]:
        """A context whose sequences have at least this many cells each."""
        library = self.library
        settings = library.llama_context_default_params()
        settings.n_ctx = settings.n_batch = length * sequences
        settings.n_seq_max = sequences
        settings.n_threads = settings.n_threads_batch = 1
        settings.type_k = settings.type_v = CACHES[self.cache]
        settings.flash_attn_type = int(self.has_flash)
        context = library.llama_init_from_model(self.model, settings)
        if not context:
            raise RuntimeError("llama_init_from_model gave no context")
        try:
            yield context
        finally:
            library.llama_free(context)

    def _decode(self, context: Any, tokens: Sequence[_Token]) -> list[int]:
        """Evaluate a batch, and return the token of largest logit at each that is read."""
        library = self.library
        batch = library.llama_batch_init(len(tokens), 0, 1)
        try:
            batch.n_tokens = len(tokens)
            for k, each in enumerate(tokens):
                batch.token[k], batch.pos[k] = each.id, each.position
                batch.n_seq_id[k], batch.seq_id[k][0] = 1, each.sequence
                batch.logits[k] = each.is_read
            code = library.llama_decode(context, batch)
        finally:
            library.llama_batch_free(batch)
        if code:
            raise RuntimeError(f"llama_decode returned {code}")
        size = library.llama_vocab_n_tokens(library.llama_model_get_vocab(self.model))
        return [
            int(np.ctypeslib.as_array(library.llama_get_logits_ith(context, k), (size,)).argmax())
            for k, each in enumerate(tokens)
            if each.is_read
        ]

    def _continued(self, context: Any, sequence: int, position: int, count: int) -> list[int]:
        """The tokens of the greedy sampler, after a batch whose last logits are read."""
        library = self.library
        sampler = library.llama_sampler_init_greedy()
        found: list[int] = []
        try:
            while True:
                found.append(library.llama_sampler_sample(sampler, context, -1))
                if len(found) == count:
                    return found
                at = position + len(found) - 1
                self._decode(context, [_Token(found[-1], sequence, at, is_read=True)])
        finally:
            library.llama_sampler_free(sampler)


def _sequence(ids: Sequence[int], sequence: int, position: int) -> list[_Token]:
    """The tokens of one sequence from a position on; the logits of the last one are read."""
    return [
        _Token(each, sequence, position + k, is_read=k == len(ids) - 1)
        for k, each in enumerate(ids)
    ]


def llama_cpp_engine(
    number_format: str = "float32", cache: str | None = None, *, has_flash: bool = True
) -> Callable[[Path], _Model]:
    """Return the function that writes a checkpoint as GGUF and opens it in llama.cpp.

    Args:
        number_format: the format of matrices and word vectors, as `write_gguf` takes it.
        cache: the format of keys and values in the cache, one of `CACHES`; when left out, that of
            the matrices.
        has_flash: whether attention is evaluated by the flash kernel.

    Raises:
        UnknownName: for another format of the cache.
        InvalidValue: if llama-cpp-python or gguf is not installed.

    """
    kept_in = number_format if cache is None else cache
    if not is_name(kept_in, CACHES):
        raise UnknownName.among("format of the cache", kept_in, CACHES, "conformance")
    library = optional("llama_cpp", "llama-cpp", "conformance")
    optional("gguf", "llama-cpp", "conformance")
    said: list[str] = []

    def keep(level: int, text: bytes, _data: Any) -> None:
        if level == ERROR:
            said.append(text.decode("utf-8", "replace").strip())

    kept = library.llama_log_callback(keep)

    def opened(checkpoint: Path) -> _Model:
        library.llama_log_set(kept, ctypes.c_void_p(0))
        said.clear()
        with TemporaryDirectory() as held:
            path = Path(held) / f"{checkpoint.name}.gguf"
            write_gguf(checkpoint, path, number_format)
            settings = library.llama_model_default_params()
            settings.n_gpu_layers = 0
            # The file is read into memory, since it is removed when this function returns.
            settings.load_mode = library.LLAMA_LOAD_MODE_NONE
            model = library.llama_model_load_from_file(str(path).encode(), settings)
        if not model:
            raise RuntimeError(" ".join(said) or "llama_model_load_from_file gave no model")
        made = _Model(library, model, kept_in, has_flash)
        weakref.finalize(made, library.llama_model_free, model)
        return made

    return opened
