"""The export of a transformer to a file of other software."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
from pathlib import Path
from typing import Any

from transformist.arithmetic import Arithmetic
from transformist.errors import InvalidValue, UnknownName, is_name, require_type
from transformist.hosts.checkpoint import with_searches
from transformist.hosts.host import CHECKPOINT_FILES, HOSTS
from transformist.hosts.host_comparison import (
    Differs,
    HostComparison,
    compare_host,
    planned_comparison,
    search_logits,
)
from transformist.hosts.model_card import SEARCHED
from transformist.hosts.named_arrays import require_format, require_hostable, warn_if_coarser
from transformist.hosts.plain_model import FORMAT
from transformist.hosts.whole_directory import replace_directory, require_free
from transformist.hosts.whole_file import path_of, replace_file, require_writable, resolved
from transformist.model import Transformer
from transformist.settings import whole_length

LOG = logging.getLogger(__name__)


def export(
    model: Transformer,
    path: str | os.PathLike[str],
    host: str,
    arithmetic: Arithmetic | str = "float32",
    max_length: int | None = None,
    claim: str = "",
    force: bool = False,
    license: str = "",
) -> HostComparison:
    """Write a transformer for other software, to a file or a directory, if the answers agree.

    The host loads the exported model, and its answers are compared with those of the transformer in
    the same format: on every short string and on hard strings up to length N, at every position
    that is read. Hard strings are shorter than N if a string of length N takes more than 2²⁸
    attention scores or more than half of the free memory; for a model without N they have at most
    256 symbols. The file's metadata and the value that is returned say what was compared. The file
    is written only if all answers are the same. It is written whole or not at all.

    Args:
        model: the transformer. A host of one kind of mask takes a model that is compiled for it:
            `gpt2` and `opt` one with `masks="future", reuse=False`, `llama`, `qwen2`, `mistral` and
            `gpt-neox` one with `positions="bos"` as well, and `bert` one with `masks="none",
            reuse=False`.
        path: the path of the file; an existing file is replaced. For a checkpoint, the path of a
            directory that is new or empty.
        host: `onnx`, a graph of opset 18, or `torch`, an exported program (.pt2). Both take
            `token_ids` (batch, rows), with the symbols that the model adds, and `lengths` (batch),
            and give the final vectors and the logits. The others are checkpoints of stock classes
            of transformers, with a tokenizer.
        arithmetic: the number format of weights and results. A checkpoint is in `float32` or
            `float16`, and answers as the transformer does in float32.
        max_length: the longest input, a whole number, of a model without N; a model with N keeps
            its own.
        claim: what the model computes, in words, for the file's metadata; the comparison does not
            read it.
        force: true to replace a directory that holds an earlier export.
        license: the identifier of the weights' licence, such as `apache-2.0`, for the metadata and
            the card.

    Returns:
        The inputs that were compared.

    Warns:
        CoarserFormat: for a format coarser than the one that the model is compiled for. The
            comparison is with the model in the same format, in which both may answer wrongly.

    Raises:
        UnknownName: for another host or format.
        InvalidValue: for another kind of model, a missing library, a model that the host cannot
            hold, an answer that differs, or a place that cannot be written to.
        NotFinite: for a weight that is too large for the format.

    Example:
        >>> import transformist as tf
        >>> model = tf.recipe("dyck-1").build(max_length=9)
        >>> tf.export(model, "dyck-1.onnx", host="onnx").every_to  # doctest: +SKIP
        8

    """
    require_hostable(model, "export")
    _require_host(host)
    # A name that no arithmetic has is refused, with a list of the names.
    name = require_format(getattr(arithmetic, "name", arithmetic), "export")
    how_far = f"certify(model, {name!r}) says to which length they are right"
    warn_if_coarser(model, name, "file", how_far)
    require_type(
        claim,
        str,
        "`claim` must be a string",
        where="export",
        remedy="say in words what the model computes, or leave it out",
    )
    if not _is_identifier(license):
        raise InvalidValue(
            "`license` must be the identifier of a licence",
            received=f"{license!r:.60}",
            where="export",
            remedy="give a name of letters, digits, dots and hyphens, such as apache-2.0, or leave "
            "it out",
        )
    if max_length is not None:
        max_length = whole_length(max_length, "export", optional=True)
    target, room = export_target(path, host, force)
    # The bytes that are compared are the bytes that are written: nothing is serialized twice. The
    # metadata in them say what is compared, so the inputs are chosen first.
    # A checkpoint has to answer as the reference does in float32, also if it is in float16.
    expected = name if HOSTS[host].suffix else FORMAT
    planned = planned_comparison(model, expected, max_length)
    facts = {"claim": claim, "license": license, "compared": dataclasses.asdict(planned)}
    LOG.debug("making the weights for %s in %s", host, name)
    data = room.write(model, name, max_length, facts)
    try:
        compare_host(model, room.run(data), expected, planned)
    except Differs as refusal:
        if HOSTS[host].suffix:
            raise
        # A checkpoint has no wider format than float32.
        raise Differs(
            refusal.invariant,
            received=refusal.received,
            where=refusal.where,
            remedy="nothing was written; export the model with host='onnx', or build it for "
            "another N",
        ) from None
    if not HOSTS[host].suffix:
        # The weights and the tokenizer stay those that were compared: the card tells more.
        searches = [
            search_logits(model, room.run(data, each), host, each, planned, expected)
            for each in SEARCHED[name]
        ]
        data = with_searches(room.STOCK, data, searches)
    if isinstance(data, bytes):
        replace_file(target, data, "export")
    else:
        replace_directory(target, data, "export")
    return planned


def export_target(path: str | os.PathLike[str], host: str, force: bool = False) -> tuple[Path, Any]:
    """Return the path of an exported model and the module of its host, before any work.

    Raises:
        UnknownName: for another host.
        InvalidValue: for a missing library, the name of a file of another kind, a directory with
            other contents, or a place that cannot be written to.

    """
    _require_host(host)
    target = path_of(path, "export")
    if not HOSTS[host].suffix:
        require_free(target, CHECKPOINT_FILES, "export", force=force)
        return target, HOSTS[host].loaded()
    # A link may lead to a model under any name, and some disks ignore the case of names.
    if {each.suffix.lower() for each in (target, resolved(target))} & {".py", ".safetensors"}:
        raise InvalidValue(
            "the file of an exported model must not have the name of a file of another kind",
            received=f"{target}",
            where="export",
            remedy=f"give a name such as model{HOSTS[host].suffix}",
        )
    require_writable(target, "export")
    return target, HOSTS[host].loaded()


def _is_identifier(name: Any) -> bool:
    # The head of a card is YAML: a value without white space, quotes and colons stays one text.
    return isinstance(name, str) and bool(re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9.+-]*)?", name))


def _require_host(host: str) -> None:
    if not is_name(host, HOSTS):
        raise UnknownName.among("host", host, HOSTS, "export")
