"""Measurements: long inputs in the structured engine, and checks of every string."""

from transformist.bench.measured_processes import machine, measurements
from transformist.bench.recorded import RECORDED
from transformist.bench.workloads import CASES

__all__ = ["CASES", "RECORDED", "machine", "measurements"]
