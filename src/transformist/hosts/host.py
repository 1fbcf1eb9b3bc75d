"""The table of hosts: software that models are exported to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from transformist.errors import InvalidValue
from transformist.hosts.optional_library import optional

Logits: TypeAlias = Callable[[Any, Any], Any]
"""Function from tokens (batch, rows) and lengths (batch) to logits (batch, rows, k)."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """Software that runs exported models.

    Attributes:
        module: the module that has `write(model, arithmetic, max_length, facts)`, which returns
            the bytes of a file, and `run(data)`, which returns the function that the file computes.
        libraries: the libraries that `write` and `run` import.
        extra: the extra of `transformist` that installs them.
        suffix: the usual end of a file's name.

    """

    module: str
    libraries: tuple[str, ...]
    extra: str
    suffix: str

    def loaded(self) -> Any:
        """Import the module and the libraries.

        Raises:
            InvalidValue: for a missing library, with the command that installs it.

        """
        for library in self.libraries:
            optional(library, self.extra, "export")
        return optional(self.module, self.extra, "export")


HOSTS: Mapping[str, Host] = {
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


class Unhostable(InvalidValue):
    """A model that a host does not hold in a number format, and the nearest export that works.

    Attributes:
        host: the host that holds the model.
        arithmetic: the number format in which it does.

    """

    def __init__(self, invariant: str, *, received: str, host: str, arithmetic: str) -> None:
        call = f'"model{HOSTS[host].suffix}", host="{host}", arithmetic="{arithmetic}"'
        super().__init__(
            invariant,
            received=received,
            where="export",
            remedy=f"call: tf.export(model, {call})",
        )
        self.host, self.arithmetic = host, arithmetic
