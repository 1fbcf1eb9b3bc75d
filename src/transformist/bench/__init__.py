"""How long the structured engine takes on long inputs, and dense evaluations beside it."""

from transformist.bench.processes import machine, measurements
from transformist.bench.recorded import RECORDED
from transformist.bench.workloads import CASES

__all__ = ["CASES", "RECORDED", "machine", "measurements"]
