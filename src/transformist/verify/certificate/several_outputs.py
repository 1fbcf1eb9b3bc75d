"""Proof for a model with several outputs: the proofs of its parts, joined.

All outputs are read from the same final vectors. A row of W_out z + b_out is a sum over the
coordinates of z and does not depend on other rows, so each output gets the values that it would get
alone. Thus the model decides as in the ideal if every part does. The proofs of the parts have the
same margins up to the final vectors; these are listed once. Margins of a read-out are listed with
the name of the output.
"""

from __future__ import annotations

from transformist.arithmetic import Floating
from transformist.host_evaluation import HostEvaluation
from transformist.model import Outputs, Transformer
from transformist.verify.proof import Proof, prove


def prove_all(
    model: Transformer, a: Floating, longest: int, order: str, host: HostEvaluation | None = None
) -> Proof:
    """Prove that a format decides as the ideal does, for every output.

    Args:
        model: the model.
        a: the format.
        longest: N.
        order: a key of `EVALUATIONS`.
        host: the evaluation by a stock class; `None` for that of the model itself.

    """
    if not isinstance(model.read_out, Outputs):
        return prove(model, a, longest, order, host)
    margins, stopped = [], ""
    for name in model.read_out.names:
        proof = prove(model.part(name), a, longest, order, host)
        margins += [
            each._replace(where=f"{each.where} {name}") if each.where == READ_OUT else each
            for each in proof.margins
        ]
        if proof.stopped and not stopped:
            stopped = f"output {name}: {proof.stopped}"
    return Proof(tuple(dict.fromkeys(margins)), stopped)


READ_OUT = "read-out"
"""The place of margins that belong to the read-out, as `proof` names it."""
