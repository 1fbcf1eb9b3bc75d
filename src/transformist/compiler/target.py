"""Targets: kinds of host, by the masks of their heads and the position functions they can have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import InvalidValue
from transformist.model import Mask


@dataclass(frozen=True)
class Target:
    """A kind of host that a program is compiled for.

    Attributes:
        noun: the kind of host.
        masks: the masks that its heads may have.
        knows_length: true if position functions may depend on n.
        remedies: for each other mask, how to change a program so that it does not need the mask.
        tag_remedy: the same for a mask that looks ahead in a program with tags.

    """

    noun: str
    masks: tuple[Mask, ...]
    knows_length: bool = True
    remedies: Mapping[Mask, str] = field(default_factory=dict)
    tag_remedy: str = ""

    def admits(self, mask: str) -> bool:
        """True if a head may have this mask."""
        return mask in self.masks

    def remedy(self, mask: str, *, is_tagged: bool) -> str:
        """How to change a program that needs a mask which the target does not have.

        Args:
            mask: the mask.
            is_tagged: true if the answer has a value for every position.

        """
        if is_tagged and Mask(mask).looks_ahead and self.tag_remedy:
            return self.tag_remedy
        return self.remedies[Mask(mask)]


OR_ANY_MASKS = ", or compile it with masks=any"
"""Last alternative in the remedies of targets with one mask."""

_LOOKS_AHEAD = (
    "in a decoder only accept() can read the whole input, at the last position; take the positions "
    f"so far (mask future){OR_ANY_MASKS}"
)

_NOT_CUT_OFF = (
    "in an encoder a mean, a count or the last match is over all positions; take it so (mask "
    f"none), ask for the first match (leftmost) or for any{OR_ANY_MASKS}"
)

TARGETS: Mapping[str, Target] = {
    "any": Target("a host of all masks", tuple(Mask)),
    "future": Target(
        "a causal decoder",
        (Mask.FUTURE,),
        knows_length=False,
        remedies={
            **dict.fromkeys((Mask.NONE, Mask.PAST, Mask.STRICT_PAST), _LOOKS_AHEAD),
            Mask.STRICT_FUTURE: "select the last match (rightmost), use keys and queries of listed "
            f"values, take the mask future{OR_ANY_MASKS}",
        },
        tag_remedy="a decoder gives each tag before it reads the rest of the input; "
        "compile tf.answered_after(program) (its tags come after the input), use only positions "
        f"so far (mask future), return accept(){OR_ANY_MASKS}",
    ),
    "none": Target(
        "an encoder",
        (Mask.NONE,),
        remedies={mask: _NOT_CUT_OFF for mask in Mask if mask != Mask.NONE},
    ),
}
"""The targets, by the option `masks`."""


def host_refusal(host: str, refusal: Uncompilable, alternative: str) -> InvalidValue:
    """Return the compiler's refusal as one for a host, without the advice to choose other masks.

    Args:
        host: the name of the host.
        refusal: of the program, compiled with the masks of the host.
        alternative: what can be done without this host.

    """
    return InvalidValue(
        f"for {host}, {refusal.invariant}",
        received=refusal.received,
        where=refusal.where,
        remedy=f"{refusal.remedy.removesuffix(OR_ANY_MASKS)}; {alternative}",
    )
