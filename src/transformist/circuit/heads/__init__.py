"""The kinds of heads, a file each: scores, law, stray weight, tolerances, error bounds, words."""

from transformist.circuit.heads.lookup_head import At
from transformist.circuit.heads.match_head import Match
from transformist.circuit.heads.scored_head import ScoredHead
from transformist.circuit.heads.uniform_head import Uniform

__all__ = ["At", "Match", "ScoredHead", "Uniform"]
