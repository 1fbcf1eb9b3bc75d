"""A transformer in a file, exactly: safetensors, with the structure in the metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from transformist.errors import InvalidValue, TransformistError, UnreadableInput, require_type
from transformist.hosts.certifying import check_certificate
from transformist.hosts.plain_values import Tensors, decoded, encoded
from transformist.hosts.whole_file import path_of, replace_file, require_writable
from transformist.model import Transformer, require_transformer
from transformist.verify import Certificate
from transformist.verify.certificate import VERSION as CERTIFICATE_VERSION

VERSION = 1
"""Version of the format; a reader takes its own and earlier ones."""

KEY = "transformist"
"""The one key of the metadata: safetensors writes several in an order that varies by process."""

LARGEST_HEADER = 100_000_000
"""In bytes: safetensors reads no larger one."""


OTHER_KINDS = frozenset(
    {
        ".csv",
        ".gguf",
        ".html",
        ".json",
        ".md",
        ".npy",
        ".npz",
        ".onnx",
        ".pt",
        ".pth",
        ".py",
        ".txt",
    }
)
"""Endings of names of files that hold no model of this format."""


def model_path(path: Any, where: str) -> Path:
    """Return the path of a model's file, if its name fits and a file can be written there.

    Raises:
        InvalidValue: for a name that says that the file is of another kind, and for a place that
            cannot be written to.

    """
    target = path_of(path, where)
    if target.suffix.lower() in OTHER_KINDS:
        raise InvalidValue(
            f"a model file must not end in {target.suffix}, the ending of another kind of file",
            received=f"{target}",
            where=where,
            remedy=f"name it {target.with_suffix('.safetensors').name}; "
            "transformist export writes a model for other software",
        )
    require_writable(target, where)
    return target


def save(
    model: Transformer,
    path: str | os.PathLike[str],
    certificates: Iterable[Certificate] = (),
) -> None:
    """Write a transformer to one safetensors file, every weight exactly.

    Each array of weights is a float64 tensor, such as `layers.0.heads.1.W_Q`; all else, and the
    rationals that float64 does not hold, are JSON in the metadata. The bytes are a function of the
    model. The file is written beside its place and moved there when it is whole.

    Args:
        model: the transformer.
        path: of the file; a file that is there is replaced.
        certificates: of the model, each of which is checked first.

    Raises:
        Unproved: for a certificate that does not follow from the weights.
        InvalidValue: for another kind of model, rationals whose digits are too many for the
            metadata, or a place that cannot be written to.

    Example:
        >>> import pathlib, tempfile
        >>> import transformist as tf
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     path = pathlib.Path(directory) / "dyck-1.safetensors"
        ...     tf.save(tf.recipe("dyck-1").build(), path)
        ...     tf.load(path)("(())")
        True

    """
    require_transformer(model, "save")
    target = model_path(path, "save")
    proofs = _listed(certificates)
    for each in proofs:
        check_certificate(model, each)
    replace_file(target, _bytes(model, proofs), "save")


def _listed(certificates: Any) -> tuple[Certificate, ...]:
    given = tuple(certificates) if isinstance(certificates, Iterable) else (certificates,)
    for each in given:
        require_type(
            each,
            Certificate,
            "`certificates` must be Certificate objects",
            where="save",
            remedy="give a list of what tf.certify returns",
        )
    return given


def _bytes(model: Transformer, proofs: tuple[Certificate, ...]) -> bytes:
    from safetensors.numpy import save as serialized

    tensors: Tensors = {}
    described = {"version": VERSION, "model": encoded(model, "", tensors)}
    if proofs:
        described["certificates"] = encoded(proofs, "", tensors)
    text = json.dumps(described, separators=(",", ":"))
    data = serialized(dict(tensors), {KEY: text})
    header = int.from_bytes(data[:8], "little")
    if header > LARGEST_HEADER:
        raise InvalidValue(
            f"the header of a safetensors file must have at most {LARGEST_HEADER:,} bytes",
            received=f"{header:,}, most of them digits of rationals",
            where="save",
            remedy="build the model with dyadic weights, which are tensors",
        )
    return data


def load(path: str | os.PathLike[str]) -> Transformer:
    """Read the transformer that `save` wrote.

    Args:
        path: the path of the file.

    Raises:
        UnreadableInput: if the file is missing, truncated, from another program or from a newer
            version, or if its parts do not fit together.
        InvalidValue: if the argument is not a path.

    """
    model: Transformer = _opened(path_of(path, "load"), _model)
    return model


def load_certificates(path: str | os.PathLike[str]) -> tuple[Certificate, ...]:
    """The certificates that were saved with a model; `check_certificate` checks them again.

    Args:
        path: of the file.

    Raises:
        UnreadableInput, InvalidValue: as `load`.

    Example:
        >>> import pathlib, tempfile
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=100)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     path = pathlib.Path(directory) / "dyck-1.safetensors"
        ...     tf.save(model, path, [tf.certify(model)])
        ...     [each.arithmetic for each in tf.load_certificates(path)]
        ['float32']

    """
    proofs: tuple[Certificate, ...] = _opened(path_of(path, "load_certificates"), _certificates)
    return proofs


def _opened(path: Path, read: Callable[[Path, Any], Any]) -> Any:
    """Open a safetensors file and read it; refuse a file that is none."""
    from safetensors import SafetensorError, safe_open

    if not _is_there(path):
        raise _unreadable("is a file that is there", f"{path}", "check the path")
    try:
        with safe_open(path, framework="numpy") as file:
            return read(path, file)
    except (SafetensorError, OSError) as error:
        raise _unreadable(
            "is a whole safetensors file",
            f"{path} ({error})",
            "check the file and its permissions, or save the model again",
        ) from None


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _model(path: Path, file: Any) -> Transformer:
    version, described = _described(path, file)
    model: Transformer = _attempt(
        path, lambda: _whole(version, described["model"], file.get_tensor)
    )
    return model


def _certificates(path: Path, file: Any) -> tuple[Certificate, ...]:
    _, described = _described(path, file)
    for version in _attempt(path, lambda: _versions(described)):
        if version != CERTIFICATE_VERSION:
            raise UnreadableInput(
                f"a saved certificate must be of version {CERTIFICATE_VERSION}",
                received=f"one of version {version} in {path}",
                where="load",
                remedy="certify the model again; certificates of version 1 could be false for "
                "weights that the compiler never makes",
            )
    proofs: tuple[Certificate, ...] = _attempt(path, lambda: _proofs(described, file.get_tensor))
    return proofs


def _versions(described: Any) -> list[Any]:
    """The versions of the certificates of a file; the first had none."""
    found = described.get("certificates", [])
    return [each["Certificate"].get("version", 1) for each in found]


def _proofs(described: Any, tensor: Any) -> tuple[Certificate, ...]:
    proofs = decoded(described.get("certificates", []), tensor)
    if not isinstance(proofs, tuple) or not all(isinstance(x, Certificate) for x in proofs):
        raise TypeError("certificates")
    return proofs


def _described(path: Path, file: Any) -> tuple[Any, Any]:
    """The version, and the metadata."""
    text = (file.metadata() or {}).get(KEY)
    if text is None:
        raise _unreadable(
            "is a file that tf.save wrote",
            f"{path}, a safetensors file of another program",
            "give one that tf.save or transformist compile wrote",
        )
    described = _attempt(path, lambda: json.loads(text))
    version = described.get("version") if isinstance(described, dict) else None
    if type(version) is int and version > VERSION:
        raise _unreadable(
            f"has a format version of at most {VERSION}",
            f"{path}, of version {version}",
            "update transformist",
        )
    return version, described


def _whole(version: Any, described: Any, tensor: Any) -> Transformer:
    model = decoded(described, tensor)
    if version != VERSION or not isinstance(model, Transformer):
        raise TypeError(f"version {version!r:.20}, {type(model).__name__}")
    return model


def _attempt(path: Path, read: Callable[[], Any]) -> Any:
    """Read a part of a file; refuse any fault of it in one line."""
    from safetensors import SafetensorError

    try:
        return read()
    except (SafetensorError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError,
            RecursionError) as error:  # fmt: skip
        reason = error.invariant if isinstance(error, TransformistError) else f"{error}"
        raise _unreadable(
            "has metadata that fit its tensors, as tf.save writes them",
            f"{path} ({type(error).__name__}: {reason:.120})",
            "save the model again",
        ) from None


def _unreadable(invariant: str, received: str, remedy: str) -> UnreadableInput:
    return UnreadableInput(
        f"a saved model {invariant}", received=received, where="load", remedy=remedy
    )
