"""Known-answer tests for inference engines: checkpoints whose greedy tokens are known."""

from transformist.conformance.case import Case
from transformist.conformance.judgement import Judgements
from transformist.conformance.running_suites import run
from transformist.conformance.suite_files import cases, write

__all__ = ["Case", "Judgements", "cases", "run", "write"]
