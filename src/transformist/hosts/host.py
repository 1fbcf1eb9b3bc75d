"""The table of hosts: software that models are exported to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from transformist.errors import InvalidValue
from transformist.hosts.optional_library import optional
from transformist.position_features import POSITIONS

Logits: TypeAlias = Callable[[Any, Any], Any]
"""Function from tokens (batch, rows) and lengths (batch) to logits (batch, rows, k)."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """Software that runs exported models.

    Attributes:
        module: the module that has `write(model, arithmetic, max_length, facts)`, which returns
            the bytes of a file, or of each file of a directory by its name, and `run(data)`,
            which returns the function that the export computes.
        libraries: the libraries that `write` and `run` import.
        extra: the extra of `transformist` that installs them.
        suffix: the usual end of a file's name; empty if the export is a directory.
        options: the options with which a program is compiled for the host.

    """

    module: str
    libraries: tuple[str, ...]
    extra: str
    suffix: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def loaded(self) -> Any:
        """Import the module and the libraries.

        Raises:
            InvalidValue: for a missing library, with the command that installs it.

        """
        for library in self.libraries:
            optional(library, self.extra, "export")
        return optional(self.module, self.extra, "export")


OF_THE_POSITION = tuple(name for name in POSITIONS if not name.endswith("/n"))
"""The position functions that a table holds: those that do not depend on n."""


def _checkpoint(name: str, **options: Any) -> Host:
    """The row of a stock class of transformers, whose module has the name of the host."""
    return Host(
        module=f"transformist.hosts.{name.replace('-', '_')}",
        libraries=("torch", "transformers"),
        extra="huggingface",
        suffix="",
        options={**options, "reuse": False},
    )


HOSTS: Mapping[str, Host] = {
    "gpt2": _checkpoint("gpt2", masks="future"),
    "bert": _checkpoint("bert", masks="none", positions=OF_THE_POSITION),
    "llama": _checkpoint("llama", masks="future", positions="bos"),
    "qwen2": _checkpoint("qwen2", masks="future", positions="bos"),
    "mistral": _checkpoint("mistral", masks="future", positions="bos"),
    "opt": _checkpoint("opt", masks="future"),
    "gpt-neox": _checkpoint("gpt-neox", masks="future", positions="bos"),
    "onnx": Host(
        module="transformist.hosts.onnx_graph",
        libraries=("onnx", "onnxruntime"),
        extra="onnx",
        suffix=".onnx",
    ),
    "torch": Host(
        module="transformist.hosts.torch_program",
        libraries=("torch",),
        extra="torch",
        suffix=".pt2",
    ),
}
"""The hosts by name; a new one is its module and a row here."""


CHECKPOINT_FILES = frozenset(
    {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "README.md",
        "tokenizer.json",
        "tokenizer_config.json",
        "transformist.json",
    }
)
"""The files that a checkpoint may have."""


NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class Unhostable(InvalidValue):
    """A model that a host does not hold in a number format, and the nearest export that works.

    Attributes:
        host: the host that holds the model.
        arithmetic: the number format in which it does.
        options: the options with which a program is compiled for the host that refuses; empty if
            compiling it anew would not help.

    """

    def __init__(
        self,
        invariant: str,
        *,
        received: str,
        host: str,
        arithmetic: str,
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> None:
        given = ", ".join(f"{name}={value!r}" for name, value in options.items())
        anew = f"compile the program anew with {given}; or " if options else ""
        call = f'"model{HOSTS[host].suffix}", host="{host}", arithmetic="{arithmetic}"'
        super().__init__(
            invariant,
            received=received,
            where="export",
            remedy=f"{anew}call: tf.export(model, {call})",
        )
        self.host, self.arithmetic, self.options = host, arithmetic, options
