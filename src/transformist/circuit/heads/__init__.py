"""The kinds of heads, a file each: scores, law, stray weight, tolerances, error bounds, words."""

from transformist.circuit.heads.code_head import ALWAYS_THERE, AtCoded
from transformist.circuit.heads.lookup_head import At
from transformist.circuit.heads.match_head import Match
from transformist.circuit.heads.scored_head import ScoredHead
from transformist.circuit.heads.uniform_head import Uniform

__all__ = ["ALWAYS_THERE", "At", "AtCoded", "Match", "ScoredHead", "Uniform"]
