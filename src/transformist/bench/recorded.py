"""Speeds of other software, recorded elsewhere, on models of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

RECORDED: Sequence[Mapping[str, str]] = (
    {
        "software": "firebrand 0.0.1",
        "attention": "hard, causal",
        "tokens_per_second": "11,000 in Python, 239,000 in C",
    },
    {
        "software": "transformer-vm",
        "attention": "hard, two-dimensional keys; 7 layers, 19 heads",
        "tokens_per_second": "5,000 to 14,000",
    },
    {
        "software": "torchwright 0.2.0",
        "attention": "causal softmax, at most 512 tokens",
        "tokens_per_second": "20",
    },
)
"""Tokens a second, one after another, of the processor or of the clock, on a machine of two
processors; nothing of it is measured here."""
