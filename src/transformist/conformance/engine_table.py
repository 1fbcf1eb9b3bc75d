"""The engines of `transformist conformance run`, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from transformist.conformance.ctranslate2_engine import ctranslate2_engine
from transformist.conformance.llama_cpp_engine import llama_cpp_engine
from transformist.conformance.onnxruntime_engine import onnxruntime_engine
from transformist.conformance.transformers_engine import transformers_engine
from transformist.conformance.vllm_engine import vllm_engine

ENGINES: dict[str, Callable[..., Callable[[Path], Any]]] = {
    "transformers": transformers_engine,
    "transformers-eager": partial(transformers_engine, "eager"),
    "onnxruntime": onnxruntime_engine,
    "ctranslate2": ctranslate2_engine,
    "llama.cpp": llama_cpp_engine,
    "llama.cpp-without-flash": partial(llama_cpp_engine, has_flash=False),
    "vllm": vllm_engine,
}
"""For each engine a function that returns the opener of checkpoints."""

IN_FORMATS = tuple(each for each in ENGINES if each not in ("onnxruntime", "ctranslate2"))
"""The engines whose function takes a `number_format`; the others compute in float32."""
