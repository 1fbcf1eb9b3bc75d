"""Search for the first wrong answer of a checkpoint in the class of transformers that runs it."""

from __future__ import annotations

from transformist.errors import InvalidValue, UnknownName, is_name
from transformist.hosts.checkpoint import WRITTEN_IN, without_grades
from transformist.hosts.host import HOSTS
from transformist.hosts.host_comparison import HostSearch, planned_comparison, search_logits
from transformist.hosts.named_arrays import longest_input, require_hostable
from transformist.hosts.plain_model import FORMAT
from transformist.model import Transformer
from transformist.settings import whole_length

LOADED_IN = ("float32", "float64", "bfloat16", "float16")
"""The number formats in which a class of transformers can load a checkpoint."""

STOCK_HOSTS = tuple(name for name, host in HOSTS.items() if not host.suffix)
"""The hosts that are stock classes of transformers."""


def search_host(
    model: Transformer,
    host: str,
    arithmetic: str = FORMAT,
    max_length: int | None = None,
) -> HostSearch:
    """Search the checkpoint of a model for its first wrong answer, in the class that runs it.

    The checkpoint is the one that `export` writes in float32, or for float16 in that format. The
    class loads it in the number format and answers at every position that is read. The right
    answers are those of transformist's reference in float32. The inputs are every short string and
    hard strings of growing lengths; after a wrong answer, hard strings of up to 30 shorter lengths
    are tried. For a recognizer, the hard strings include grown ones (docs/glossary.md). No file is
    kept.

    Args:
        model: a transformer that `export` writes for the host.
        host: a stock class of transformers, such as `gpt2`.
        arithmetic: `float32`, `float64`, `bfloat16` or `float16`.
        max_length: the longest input that is tried, at most N; N when left out.

    Returns:
        The inputs that were tried, the length up to which all of them are right, and the length of
        an input with a wrong answer, if one was found. A search proves nothing about other inputs.

    Raises:
        UnknownName: for a host that does not exist.
        InvalidValue: for a host or a format that is not one of these, a missing library, or a model
            that the host does not hold.
        NotFinite: for a weight that the format of the checkpoint does not hold.

    Example:
        >>> import transformist as tf
        >>> parity = tf.programs.PROGRAMS["parity"]
        >>> model = tf.compile(parity, max_length=24, masks="future", reuse=False)
        >>> print(tf.search_host(model, "gpt2", "bfloat16"))  # doctest: +SKIP
        gpt2 in bfloat16: 677 inputs were right, up to length 16; a wrong answer at length 17

    """
    require_hostable(model, "search_host")
    require_searchable(host, arithmetic, "search_host")
    if max_length is not None:
        max_length = whole_length(max_length, "search_host")
        own = longest_input(model)
        if own is not None and max_length > own:
            raise InvalidValue(
                f"max_length must be at most the model's (N = {own})",
                received=f"max_length = {max_length}",
                where="search_host",
                remedy=f"give max_length = {own} or less, or build the model with max_length = "
                f"{max_length} or more",
            )
    stock = HOSTS[host].loaded().STOCK
    written = arithmetic if arithmetic in WRITTEN_IN else FORMAT
    data = without_grades(stock, model, written, max_length)
    planned = planned_comparison(model, FORMAT, max_length, max_length)
    logits = HOSTS[host].loaded().run(data, arithmetic)
    return search_logits(model, logits, host, arithmetic, planned, FORMAT)


def require_searchable(host: str, arithmetic: str, where: str) -> None:
    """Require a stock class of transformers, and a format in which it can load a checkpoint.

    Raises:
        UnknownName: for a host that does not exist.
        InvalidValue: for another host or format.

    """
    if not is_name(host, HOSTS):
        raise UnknownName.among("host", host, HOSTS, where)
    if host not in STOCK_HOSTS:
        raise InvalidValue(
            f"the host must be a class of transformers: {', '.join(STOCK_HOSTS)}",
            received=host,
            where=where,
            remedy=f"export compares the model in {host} with the reference before it writes",
        )
    if not is_name(arithmetic, LOADED_IN):
        raise InvalidValue(
            f"a class of transformers must compute in one of {', '.join(LOADED_IN)}",
            received=f"{arithmetic!r:.40}",
            where=where,
            remedy="give one of these, or leave out the host for transformist's own evaluation",
        )
