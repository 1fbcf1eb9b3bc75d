"""Proof that a format decides as exact arithmetic does, for every input up to a length."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from transformist.arithmetic import Floating
from transformist.errors import NotFinite
from transformist.host_evaluation import HostEvaluation
from transformist.model import Transformer
from transformist.verify.proof.host_walking import HostWalk
from transformist.verify.proof.slack import Ledger, Margin
from transformist.verify.proof.softmax_orders import EVALUATIONS, SoftmaxOrder, host_orders
from transformist.verify.proof.upwards import Unfollowed
from transformist.verify.proof.walking import Walk


@dataclass(frozen=True)
class Proof:
    """Margins of a model in a format, up to a length.

    Attributes:
        margins: every error bound on which a decision depends, and the error allowed there.
        stopped: the first operation without a bound, or the first margin that is exceeded; empty
            if the proof holds.

    """

    margins: tuple[Margin, ...]
    stopped: str = ""

    @property
    def holds(self) -> bool:
        """True if every error is below its margin: then every answer is the ideal one."""
        return not self.stopped and all(each.slack > 0 for each in self.margins)


def prove(
    model: Transformer, a: Floating, longest: int, order: str, host: HostEvaluation | None = None
) -> Proof:
    """Prove that a format decides as the ideal does, on all inputs of up to `longest` symbols.

    Args:
        model: the model.
        a: the format.
        longest: N.
        order: a key of `EVALUATIONS`.
        host: the evaluation by a stock class of transformers, in every way in which it computes
            attention; `None` for that of the model itself.

    """
    if host is None:
        return _proved(lambda ledger: Walk(model, a, longest, EVALUATIONS[order], ledger).run())
    proofs: list[Proof] = []
    for each in host_orders(host.constants.angle):
        proofs.append(_proved(partial(_walk_in, host, model, a, longest, each)))
        if not proofs[-1].holds:
            break
    return Proof(tuple(_least_margins(proofs)), proofs[-1].stopped)


def _least_margins(proofs: Sequence[Proof]) -> Iterator[Margin]:
    """For each decision, the margin of the order that leaves it the least slack."""
    # Every order notes the decisions in the order of the model. Were margins told apart by their
    # errors, the last place of one, which depends on the processor, would add a margin.
    for each in itertools.zip_longest(*(proof.margins for proof in proofs)):
        kept: dict[tuple[str, str], Margin] = {}
        for margin in filter(None, each):
            decision = margin.where, margin.what
            kept[decision] = min(kept.get(decision, margin), margin, key=lambda own: own.slack)
        yield from kept.values()


def _walk_in(
    host: HostEvaluation,
    model: Transformer,
    a: Floating,
    longest: int,
    order: SoftmaxOrder,
    ledger: Ledger,
) -> None:
    HostWalk(model, a, longest, order, ledger, host).run()


def _proved(walk: Callable[[Ledger], None]) -> Proof:
    """The margins that a walk notes, and where it stopped."""
    ledger, why = Ledger(), ""
    try:
        # Bounds that overflow are infinite or NaN, which no requirement and no margin accepts.
        with np.errstate(all="ignore"):
            walk(ledger)
    except Unfollowed as stop:
        why = str(stop)
    except NotFinite as refusal:
        why = f"{refusal.where or 'weights'}: {refusal.invariant}; received {refusal.received}"
    except OverflowError:
        why = "a product of weights is larger than any float64"
    found = Proof(tuple(ledger.kept), why)
    if found.holds:
        return found
    exceeded = ledger.lost or ([] if why else sorted(ledger.kept, key=lambda each: each.slack))
    return Proof(found.margins, str(exceeded[0]) if exceeded else why)
