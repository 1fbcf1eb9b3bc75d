"""A transformer as a native model of TransformerLens, whose residual stream has the same slots.

The native class has no norms here, so that the stream holds the numbers of the model as they are;
checkpoints of stock classes scale slots and add others, which make norms neutral.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import InvalidValue, TransformistError
from transformist.hosts.host import Unhostable
from transformist.hosts.host_comparison import (
    Differs,
    compare_host,
    planned_comparison,
    warn_if_coarser,
)
from transformist.hosts.named_arrays import require_hostable
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
    stacked,
    with_constant,
)
from transformist.hosts.vocabulary import Vocabulary, vocabulary_of
from transformist.model import Binary, Mask, Transformer
from transformist.settings import whole_length

if TYPE_CHECKING:
    from transformer_lens.model_bridge import TransformerBridge

NAME, EXTRA, WHERE = "TransformerLens", "transformer-lens", "to_transformer_lens"

OPTIONS: Mapping[str, Any] = {"weighting": "softmax", "masks": "future", "reuse": False}
"""The options with which a program is compiled for it."""

ACTIVATIONS_HELD = ("relu", "gelu", "gelu-tanh")
"""The activations that the native class has."""

SUBLAYERS = {
    **{letter: f"attn.{letter.lower()}" for letter in "QKVO"},
    "1": "mlp.in",
    "2": "mlp.out",
}
"""The name of each linear map of a layer in a bridge."""


def to_transformer_lens(model: Transformer, max_length: int | None = None) -> TransformerBridge:
    """Return a transformer as a `TransformerBridge` of TransformerLens, in float32.

    Coordinate k of the residual stream is the slot `model.stream.slots[k]`, with the numbers that
    `model.run` gives, up to rounding; one more coordinate, the last, holds 1. The number of layers
    and of heads is that of the model. Heads have one size, the least power of 4 that holds every
    query and value: the first coordinates are those of the model's head, of which the queries have
    a factor, as TransformerLens divides scores by the root of this size. Networks have the units of
    the largest one. What a model has less is filled up with zeros.

    Tokens are those of a checkpoint that `export` writes, with its tokenizer: texts of symbols and
    of answers, where `no` and `yes` are those of a recognizer. The answer is the token with the
    largest logit, at the last row or at every row, as the model is read.

    The bridge is compared with the model in float32 before it is returned, on the inputs on which
    `export` compares. A certificate is of other evaluations: it says nothing of the bridge.

    Args:
        model: the transformer, with softmax; all its heads have the mask `future`, or all have none
            and the bridge is bidirectional. `compile` gives one with `masks="future", reuse=False`.
        max_length: the longest input, for a model without N.

    Warns:
        CoarserFormat: for a model that is compiled for a finer format than float32. In float32 it
            and the bridge may answer wrongly.

    Raises:
        InvalidValue: for a part that the native class does not have, symbols or labels without
            texts, a model of any length without `max_length`, an answer that differs, or if
            TransformerLens (extra `transformer-lens`) is not installed.
        NotFinite: for a weight that is not a normal number of float32.

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
    warn_if_coarser(model, FORMAT, "bridge")
    try:
        mask = _mask_of(model)
        plain = with_constant(plain_model(model, NAME, (mask,), max_length, OPTIONS))
        _require_activation(plain)
        tokens = vocabulary_of(model, plain.answers)
        bridge = _bridge(plain, tokens, mask)
        planned = planned_comparison(model, FORMAT, max_length)
        compare_host(model, _logits(bridge, model, tokens), FORMAT, planned)
    except TransformistError as refusal:
        raise _in_words_of(refusal) from None
    return bridge


def _mask_of(model: Transformer) -> Mask:
    """The mask that all heads must have: that of the first head, or `future` if it is another."""
    masks = [head.mask for layer in model.layers for head in layer.heads]
    return Mask.NONE if masks[:1] == [Mask.NONE] else Mask.FUTURE


def _require_activation(plain: PlainModel) -> None:
    """Require an activation of the native class.

    Raises:
        Unhostable: for another one.

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
        d_head=_head_size(plain),
        d_mlp=plain.most_hidden,
        act_fn=ACTIVATIONS[plain.activation],
        n_ctx=len(plain.positions),
        d_vocab=len(tokens.texts),
        normalization_type=None,
        attention_dir="causal" if mask == Mask.FUTURE else "bidirectional",
        init_weights=False,
    )
    bridge: TransformerBridge = library.TransformerBridge.boot_native(config)
    weights = {
        name: torch.tensor(as_tensor(name, each))
        for name, each in _weights(plain, tokens, config.d_head).items()
    }
    _require_names(bridge, weights)
    bridge.load_state_dict(weights, strict=False)
    # `boot_native` would try the tokenizer on the text "a", which may be no symbol, to find out
    # whether it adds tokens.
    bridge.tokenizer = _tokenizer(tokens)
    has_front = bool(tokens.front)
    bridge.cfg.tokenizer_prepends_bos = bridge.cfg.default_prepend_bos = has_front
    bridge.cfg.tokenizer_appends_eos = bool(tokens.back)
    return bridge.eval()


def _head_size(plain: PlainModel) -> int:
    """The least power of 4 that holds every query and value, so that its root is exact."""
    sizes = [
        size
        for layer in plain.layers
        for head in layer.heads
        for size in (len(head.b_Q), len(head.b_V))
    ]
    return int(4 ** math.ceil(math.log(max(1, *sizes, 1), 4)))


def _weights(plain: PlainModel, tokens: Vocabulary, size: int) -> dict[str, Matrix]:
    """The arrays of the native class by their names in a bridge."""
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


def _require_names(bridge: TransformerBridge, weights: Mapping[str, Any]) -> None:
    """Require the names and shapes of the weights in a bridge.

    Raises:
        InvalidValue: for a version of TransformerLens with others.

    """
    own = {name: tuple(each.shape) for name, each in bridge.state_dict().items()}
    given = {name: tuple(each.shape) for name, each in weights.items()}
    # An unembedding gets a bias of zeros in a bridge.
    if {name: own[name] for name in own if name != "unembed.bias"} != given:
        raise InvalidValue(
            "TransformerLens must have the weights of its version 4.3",
            received=f"{[*(own.items() ^ given.items())]}"[:200],
            where=WHERE,
            remedy="run: pip install 'transformist[transformer-lens]', for a tested version",
        )


def _tokenizer(tokens: Vocabulary) -> Any:
    """The tokenizer of a checkpoint, which pads on the right and cuts no text."""
    tokenizers = optional("tokenizers", EXTRA, WHERE)
    return optional("transformist.hosts.whole_texts", EXTRA, WHERE).WholeTexts(
        tokenizer_object=tokenizers.Tokenizer.from_str(tokens.tokenizer().decode()),
        bos_token=tokens.texts[tokens.bos],
        eos_token=tokens.texts[tokens.eos],
        pad_token=tokens.texts[tokens.pad],
        padding_side="right",
    )


def _logits(
    bridge: TransformerBridge, model: Transformer, tokens: Vocabulary
) -> Callable[[Any, Any], NDArray[Any]]:
    """A function from tokens of the model and lengths to logits, by the bridge.

    Raises:
        InvalidValue: for a text that the tokenizer splits into other tokens.

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
        # A batch has padding as long as the table of positions has rows.
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
    """A refusal of what `export` does as well, as one of this function."""
    invariant, received, remedy = refusal.invariant, refusal.received, refusal.remedy
    kind: type[TransformistError] = type(refusal)
    if isinstance(refusal, Unhostable):
        given = ", ".join(f"{name}={value!r}" for name, value in refusal.options.items())
        anew = f"compile the program anew with {given}; or " if given else ""
        kind, remedy = InvalidValue, f"{anew}call tf.to_torch(model), which holds every model"
    elif isinstance(refusal, Differs):
        invariant = invariant.replace("exported model", "bridge")
        remedy = "build the model for shorter inputs, with a smaller max_length"
    return kind(invariant, received=received, where=WHERE, remedy=remedy)
