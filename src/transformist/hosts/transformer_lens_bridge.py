"""Conversion of a transformer to a `TransformerBridge`.

The bridge is a native model of TransformerLens without norms, so that its residual stream holds the
numbers of the model, unscaled. A checkpoint of `export` scales the slots instead, and adds slots
that make its norms neutral.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import InputTooLarge, InvalidValue, TransformistError
from transformist.hosts.host import Unhostable
from transformist.hosts.host_comparison import Differs, compare_host, planned_comparison
from transformist.hosts.named_arrays import require_hostable, warn_if_coarser
from transformist.hosts.next_token import answer_logits, word_vectors
from transformist.hosts.optional_library import optional
from transformist.hosts.plain_model import (
    ACTIVATIONS,
    FORMAT,
    Matrix,
    PlainModel,
    as_tensor,
    network_of,
    plain_model,
    refuse_first,
    rows_of,
    stacked,
    with_constant,
)
from transformist.hosts.vocabulary import Vocabulary, vocabulary_of
from transformist.memory import free_memory
from transformist.model import Binary, Mask, Transformer
from transformist.settings import whole_length

if TYPE_CHECKING:
    from transformer_lens.model_bridge import TransformerBridge

NAME, EXTRA, WHERE = "TransformerLens", "lens", "to_transformer_lens"

OPTIONS: Mapping[str, Any] = {"weighting": "softmax", "reuse": False}
"""Options with which a program is compiled for TransformerLens, `masks` aside."""

ACTIVATIONS_HELD = ("relu", "gelu", "gelu-tanh")
"""The activations of native models."""

WORDS = {
    "a checkpoint": "a bridge",
    "an exported model": "a bridge",
    "exported model": "bridge",
    "export it with host='onnx'": "call tf.to_torch(model)",
    "export the model with host='onnx', or for": "call tf.to_torch(model), or build it for",
}
"""Words of refusals by code that `export` has too, and those that stand here in their place."""

SUBLAYERS = {
    **{letter: f"attn.{letter.lower()}" for letter in "QKVO"},
    "1": "mlp.in",
    "2": "mlp.out",
}
"""The name of each linear map of a layer in a bridge."""


def to_transformer_lens(model: Transformer, max_length: int | None = None) -> TransformerBridge:
    """Return a transformer as a `TransformerBridge` of TransformerLens, in float32.

    Coordinate k of the residual stream is the slot `model.stream.slots[k]`, with the numbers that
    `model.run` gives, up to rounding. The last coordinate is 1 in the row of every symbol; the bias
    of the logits is read from it.

    Every layer has as many heads as the largest layer of the model, and at least one; the heads of
    the model come first. Added heads have weights 0: their pattern is uniform, and they write 0.
    Added hidden units have weights 0 too. `d_head` is the smallest power of 4 that is at least
    every d_key and d_value. TransformerLens divides scores by √d_head, and the model by √d_key, so
    W_Q and b_Q are multiplied by √(d_head/d_key): scores and patterns are those of the model up to
    rounding, which can break ties unless d_key is a power of 4.

    Tokens and tokenizer are those of a checkpoint that `export` writes. The answer is the token
    with the largest logit, at the last row or at every row, as the model is read; a recognizer
    answers `yes` or `no`. The first answer has the logit 0, and tokens that are no answers −1024.

    The answers of the bridge are compared with those of the model in float32 before it is returned,
    on the inputs on which `export` compares. `certify` proves nothing about the bridge, which
    computes with other kernels.

    Args:
        model: a transformer without norms, whose heads have softmax and all the mask `future` (a
            causal bridge) or all the mask `none` (a bidirectional one); each number has a slot of
            its own, and the answer is a label. `compile` gives it with `masks="future",
            reuse=False`, or with `masks="none", reuse=False`.
        max_length: the longest input, for a model without N.

    Warns:
        CoarserFormat: for a model that is compiled for a finer format than float32. In float32 it
            and the bridge may answer wrongly.

    Raises:
        MissingLibrary: if TransformerLens (extra `lens`) is not installed.
        InvalidValue: for a part that a native model does not have, symbols or labels that have the
            same text or contain white space, a model of any length without `max_length`, or an
            answer that differs.
        InputTooLarge: for a longest input for which the bridge needs more than half of the free
            memory.
        NotFinite: for a weight that is not a normal number of float32.
        TransformistError: if the model itself refuses an input in float32.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["parity"], max_length=16, masks="future", reuse=False)
        >>> bridge = tf.to_transformer_lens(model)  # doctest: +SKIP
        >>> logits, cache = bridge.run_with_cache("0110")  # doctest: +SKIP
        >>> bridge.to_string(logits[:, -1].argmax(-1))  # doctest: +SKIP
        'no'
        >>> cache["resid_post", 0].shape  # doctest: +SKIP
        torch.Size([1, 5, 9])

    """
    require_hostable(model, WHERE)
    if max_length is not None:
        max_length = whole_length(max_length, WHERE, optional=True)
    for library in ("torch", "transformer_lens"):
        optional(library, EXTRA, WHERE)
    warn_if_coarser(model, FORMAT, "bridge", f"compile the program with arithmetic={FORMAT!r}")
    try:
        _require_room(model, rows_of(model, max_length))
        mask = _mask_of(model)
        options = {**OPTIONS, "masks": str(mask)}
        plain = with_constant(plain_model(model, NAME, (mask,), max_length, options))
        _require_activation(plain)
        tokens = vocabulary_of(model, plain.answers)
        bridge = _bridge(plain, tokens, mask)
        planned = planned_comparison(model, FORMAT, max_length)
        compare_host(model, _logits(bridge, model, tokens), FORMAT, planned)
    except TransformistError as refusal:
        raise _in_words_of(refusal) from None
    return bridge


def _require_room(model: Transformer, rows: int) -> None:
    """Require a row, and memory for the table of positions and the masks of all layers.

    Raises:
        InvalidValue: for a model whose inputs have no rows.
        InputTooLarge: for a bridge that needs more than half of the free memory.

    """
    if not rows:
        raise InvalidValue(
            "an input of a bridge must have at least one row",
            received="N = 0, and a model that adds no symbol",
            where=WHERE,
            remedy="build the model for longer inputs",
        )
    # TransformerLens has a mask of Booleans for each layer; vectors of positions are copied thrice.
    layers = max(1, len(model.layers))
    needed = layers * rows**2 + 3 * 8 * rows * (model.stream.width + 1)
    if needed > free_memory() // 2:
        raise InputTooLarge(
            "a bridge must need at most half of the free memory",
            received=f"{rows:,} rows, which take {needed / 2**30:,.1f} GiB",
            where=WHERE,
            remedy="give a smaller max_length, or build the model for shorter inputs",
        )


def _mask_of(model: Transformer) -> Mask:
    """The mask required of every head: `none` if the first head has it, else `future`."""
    masks = [head.mask for layer in model.layers for head in layer.heads]
    return Mask.NONE if masks[:1] == [Mask.NONE] else Mask.FUTURE


def _require_activation(plain: PlainModel) -> None:
    """Require an activation of native models.

    Raises:
        Unhostable: for another activation.

    """
    held = plain.activation in ACTIVATIONS_HELD
    refuse_first(
        NAME, {f"networks must have {', '.join(ACTIVATIONS_HELD)}": (not held, plain.activation)}
    )


def _bridge(plain: PlainModel, tokens: Vocabulary, mask: Mask) -> TransformerBridge:
    """The native model with the weights of a plain model, and a tokenizer."""
    torch = optional("torch", EXTRA, WHERE)
    library = optional("transformer_lens.model_bridge", EXTRA, WHERE)
    optional("transformer_lens.model_bridge.sources.native", EXTRA, WHERE)  # adds `boot_native`
    config = optional("transformer_lens.config", EXTRA, WHERE).TransformerBridgeConfig(
        model_name="transformist",
        n_layers=len(plain.layers),
        d_model=plain.width,
        n_heads=plain.most_heads,
        d_head=plain.head_size_from(1),
        d_mlp=plain.most_hidden,
        act_fn=ACTIVATIONS[plain.activation],
        n_ctx=len(plain.positions),
        d_vocab=len(tokens.texts),
        normalization_type=None,
        attention_dir="causal" if mask == Mask.FUTURE else "bidirectional",
        init_weights=False,
    )
    bridge: TransformerBridge = library.TransformerBridge.boot_native(config, dtype=torch.float32)
    weights = {
        name: torch.tensor(as_tensor(name, each))
        for name, each in _weights(plain, tokens, config.d_head).items()
    }
    _require_parameters(bridge, weights)
    bridge.load_state_dict(weights, strict=False)
    # `boot_native` would try the tokenizer on the text "a", which may be no symbol, to find out
    # whether it adds tokens. A tokenizer that is said to append EOS has it removed again.
    bridge.tokenizer = _tokenizer(tokens)
    bridge.cfg.tokenizer_prepends_bos = bridge.cfg.default_prepend_bos = bool(tokens.front)
    bridge.cfg.tokenizer_appends_eos = False
    return bridge.eval()


def _weights(plain: PlainModel, tokens: Vocabulary, size: int) -> dict[str, Matrix]:
    """The arrays of a native model by their names in a bridge."""
    found = {
        "embed.weight": word_vectors(plain, tokens),
        "pos_embed.weight": plain.positions,
        # The last slot holds 1: biases of logits are read from it.
        "unembed.weight": answer_logits(plain, tokens, plain.width - 1),
    }
    for number, layer in enumerate(plain.layers):
        arrays = {
            **stacked(layer, plain.most_heads, np.arange(size), size),
            "b_O": layer.b_O,
            **network_of(layer, plain.most_hidden),
        }
        for letter, name in SUBLAYERS.items():
            found[f"blocks.{number}.{name}.weight"] = arrays[f"W_{letter}"]
            found[f"blocks.{number}.{name}.bias"] = arrays[f"b_{letter}"]
    return found


def _require_parameters(bridge: TransformerBridge, weights: Mapping[str, Any]) -> None:
    """Require parameters of a bridge with the names and shapes of these weights.

    Raises:
        InvalidValue: for a version of TransformerLens with others.

    """
    own = {name: tuple(each.shape) for name, each in bridge.state_dict().items()}
    own.pop("unembed.bias", None)  # zeros, which a bridge adds to an unembedding
    given = {name: tuple(each.shape) for name, each in weights.items()}
    others = sorted(name for name in own | given if own.get(name) != given.get(name))
    if others:
        name = others[0]
        raise InvalidValue(
            "a bridge must have the parameters of TransformerLens 4.3",
            received=f"version {version('transformer-lens')}, where {name} has shape "
            f"{own.get(name)} in place of {given.get(name)}",
            where=WHERE,
            remedy=f"run: pip install 'transformist[{EXTRA}]', for a tested version",
        )


def _tokenizer(tokens: Vocabulary) -> Any:
    """The tokenizer of a checkpoint, which pads on the right and refuses what it would cut."""
    tokenizers = optional("tokenizers", EXTRA, WHERE)
    return optional("transformist.hosts.strict_tokenizer", EXTRA, WHERE).StrictTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(tokens.tokenizer().decode()),
        bos_token=tokens.texts[tokens.bos],
        eos_token=tokens.texts[tokens.eos],
        pad_token=tokens.texts[tokens.pad],
        padding_side="right",
    )


def _logits(
    bridge: TransformerBridge, model: Transformer, tokens: Vocabulary
) -> Callable[[Any, Any], NDArray[Any]]:
    """A function from tokens of the model and lengths to logits of the answers, by the bridge.

    The logit of a recognizer is that of `yes` minus that of `no`. The function raises an
    InvalidValue for a text that the tokenizer splits into other tokens.
    """
    torch = optional("torch", EXTRA, WHERE)
    front, back = len(tokens.front), len(tokens.back)

    def tokenized(ids: Any) -> list[int]:
        wanted = [tokens.symbols[each] for each in ids]
        text = tokens.text(wanted[front : len(wanted) - back])
        found = bridge.to_tokens(text, truncate=False)[0].tolist()
        if found != wanted:
            raise InvalidValue(
                f"the tokens of the text {text!r:.40} must be {wanted}"[:200],
                received=f"{found}"[:60],
                where=WHERE,
                remedy="build the model with other symbols",
            )
        return wanted

    def logits(ids: Any, lengths: Any) -> NDArray[Any]:
        # The comparison adds a column of padding, for which the table of positions has no row at
        # length N.
        width = min(len(ids[0]), bridge.cfg.n_ctx)
        rows = [tokenized(each[:n]) for each, n in zip(ids, lengths, strict=True)]
        given = torch.tensor([row + [tokens.pad] * (width - len(row)) for row in rows])
        is_token = torch.arange(width) < torch.tensor(lengths)[:, None]
        with torch.inference_mode():
            values = bridge(given, attention_mask=is_token.long()).double().numpy()
        found = np.zeros((len(rows), len(ids[0]), len(tokens.answers)))
        found[:, :width] = values[..., [*tokens.answers]]
        is_binary = isinstance(model.read_out, Binary)
        return found[..., 1:] - found[..., :1] if is_binary else found

    return logits


def _in_words_of(refusal: TransformistError) -> TransformistError:
    """The refusal of code that `export` has too, as one of `to_transformer_lens`."""
    invariant, remedy = refusal.invariant, refusal.remedy
    kind: type[TransformistError] = type(refusal)
    if isinstance(refusal, Unhostable):
        given = ", ".join(f"{name}={value!r}" for name, value in refusal.options.items())
        anew = f"compile the program anew with {given}; or " if given else ""
        kind, remedy = InvalidValue, f"{anew}call tf.to_torch(model), which takes every model"
    elif isinstance(refusal, Differs):
        remedy = "build the model for shorter inputs, with a smaller max_length"
    for words, own in WORDS.items():
        invariant, remedy = invariant.replace(words, own), remedy.replace(words, own)
    return kind(invariant, received=refusal.received, where=WHERE, remedy=remedy)
