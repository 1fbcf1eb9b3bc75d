"""First pass, program to circuit: a rule for each kind of subexpression."""

from transformist.compiler.lower.builder import AS_IT_IS, Scale
from transformist.compiler.lower.fetching import CHANNELS
from transformist.compiler.lower.lowering import RULES, Lowering
from transformist.compiler.lower.positionwise import POINTWISE
from transformist.compiler.lower.whole_functions import WHOLE

__all__ = ["AS_IT_IS", "CHANNELS", "POINTWISE", "RULES", "WHOLE", "Lowering", "Scale"]
