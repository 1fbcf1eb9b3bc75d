"""Proof for a model with several outputs: one for each output, joined.

Every output is read from the same final vectors, and its rows of W_out z + b_out are computed as
they are where it stands alone: a row is a sum over the coordinates of z, whatever rows stand beside
it. So the model decides as in the ideal if each part does. The proofs have the same margins up to
the final vectors, which are listed once; those of the read-out have the name of the output.
"""

from __future__ import annotations

from transformist.arithmetic import Floating
from transformist.model import Outputs, Transformer
from transformist.verify.proof import Proof, prove


def prove_all(model: Transformer, a: Floating, longest: int, order: str) -> Proof:
    """Prove that a format decides as the ideal does: every output, where there are several.

    Args:
        model: the model.
        a: the format.
        longest: N.
        order: a key of `EVALUATIONS`.

    """
    if not isinstance(model.read_out, Outputs):
        return prove(model, a, longest, order)
    margins, stopped = [], ""
    for name in model.read_out.names:
        proof = prove(model.part(name), a, longest, order)
        margins += [
            each._replace(where=f"{each.where} {name}") if each.where == READ_OUT else each
            for each in proof.margins
        ]
        if proof.stopped and not stopped:
            stopped = f"output {name}: {proof.stopped}"
    return Proof(tuple(dict.fromkeys(margins)), stopped)


READ_OUT = "read-out"
"""The place of the margins of an answer."""
