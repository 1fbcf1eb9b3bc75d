"""How long the structured engine takes on long inputs, and dense evaluations beside it."""

from transformist.bench.cases import CASES
from transformist.bench.processes import machine, measurements
from transformist.bench.recorded import RECORDED

__all__ = ["CASES", "RECORDED", "machine", "measurements"]
