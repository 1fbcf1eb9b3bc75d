"""Measurements of the structured engine on long inputs, beside dense evaluations."""

from transformist.bench.processes import machine, measurements
from transformist.bench.recorded import RECORDED
from transformist.bench.workloads import CASES

__all__ = ["CASES", "RECORDED", "machine", "measurements"]
