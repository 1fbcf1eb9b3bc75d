"""The eager engines as `transformist.conformance.run` takes them."""

import numpy as np
from eager_engines import Cache


class Opened:
    """An engine with a checkpoint: `run` and `next_tokens`."""

    def __init__(self, engine):
        self.engine = engine

    def run(self, ids, max_new_tokens):
        self.engine.chunk = None
        with np.errstate(all="ignore"):
            return self.engine.run(ids, max_new_tokens)

    def next_tokens(self, ids, mask, ends):
        # Pieces that end with single tokens are decoding, all others prefill in chunks.
        is_decoding = len(ends) > 1 and ends[-1] - ends[-2] == 1 and ends[1] - ends[0] == 1
        self.engine.chunk = None if is_decoding or len(ends) == 1 else ends[0]
        with np.errstate(all="ignore"):
            if not is_decoding:
                return self.engine.logits(ids, mask).argmax(-1)
            cache = Cache()
            parts = [self.engine.prefill(ids[:, : ends[0]], mask[:, : ends[0]], cache)]
            for at in ends[:-1]:
                step = ids[:, at : at + 1], mask[:, : at + 1]
                parts.append(self.engine.forward(*step, cache))
            return np.concatenate(parts, axis=1).argmax(-1)


def opening(engine):
    """The function that opens a checkpoint with a class of engines."""
    return lambda checkpoint: Opened(engine.read(checkpoint))
