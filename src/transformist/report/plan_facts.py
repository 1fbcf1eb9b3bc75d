"""How the structured engine evaluates the heads of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformist.engines.structured import Plan


def plan_facts(name: str, arithmetic: str, found: Plan) -> dict[str, Any]:
    """What `plan` tells of a model."""
    heads = [
        {
            "layer": each.layer,
            "head": each.head,
            "weighting": each.attention.weighting,
            "mask": each.attention.mask,
            "method": each.method,
            "why": each.why,
            "cost": each.cost,
        }
        for each in found.heads
    ]
    return {"model": name, "length": found.length, "arithmetic": arithmetic, "heads": heads}
