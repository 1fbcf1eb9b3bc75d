"""Models by their weights that are not 0, rounded to a format, once for each model."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from transformist.arithmetic import Floating
from transformist.engines.structured.heads import HeadMaps
from transformist.engines.structured.labels import Labels
from transformist.engines.structured.network import Network
from transformist.engines.structured.sparse import SparseMap
from transformist.model import FeedForward, MultiClass, Sublayer, Transformer


@dataclass(frozen=True, eq=False)
class SparseSublayer:
    """A sublayer by the weights that are not 0.

    Attributes:
        layer: its number, from 0.
        definition: the sublayer itself, with its norms.
        function: its network, or the maps of its heads.
        written: the coordinates that it writes.

    """

    layer: int
    definition: Sublayer
    function: Network | tuple[HeadMaps, ...]
    written: tuple[int, ...]

    @classmethod
    def of(cls, layer: int, sublayer: Sublayer, a: Floating) -> SparseSublayer:
        """A sublayer, its weights rounded to the format."""
        function = sublayer.function
        own: Network | tuple[HeadMaps, ...]
        if isinstance(function, FeedForward):
            own = Network.of(function, sublayer.pre_norm, a)
        else:
            own = tuple(HeadMaps.of(head, a) for head in function.heads)
        return cls(layer, sublayer, own, tuple(int(each) for each in function.written))


@dataclass(frozen=True, eq=False)
class SparseModel:
    """A model by the weights that are not 0.

    Attributes:
        sublayers: in order.
        read_out: the affine map of its read-out.
        labels: the search for the largest of its labels, where it has labels.

    """

    sublayers: tuple[SparseSublayer, ...]
    read_out: SparseMap
    labels: Labels | None


# A model does not change, so its maps serve all inputs; an entry ends with its model.
_MODELS: WeakKeyDictionary[Transformer, dict[str, SparseModel]] = WeakKeyDictionary()


def sparse_model(model: Transformer, a: Floating) -> SparseModel:
    """A model in a format, kept as long as the model is.

    Example:
        >>> import transformist as tf
        >>> from transformist.arithmetic import FLOAT64
        >>> model = tf.recipe("dyck-1").build()
        >>> sparse_model(model, FLOAT64) is sparse_model(model, FLOAT64)
        True

    """
    formats = _MODELS.setdefault(model, {})
    if a.name not in formats:
        sublayers = tuple(
            SparseSublayer.of(number, sublayer, a)
            for number, layer in enumerate(model.layers)
            for _, sublayer in layer.sublayers()
        )
        w = model.read_out.rounded(a)
        out = SparseMap.of(w.W_out, w.b_out)
        labels = Labels(out, a) if isinstance(model.read_out, MultiClass) else None
        formats[a.name] = SparseModel(sublayers, out, labels)
    return formats[a.name]
