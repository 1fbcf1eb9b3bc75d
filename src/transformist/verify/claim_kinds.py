"""The kinds of claims, each with its check, its attempts and its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from transformist.arithmetic import Arithmetic, number_system
from transformist.claims import (
    FunctionClaim,
    PositionClaim,
    Recipe,
    SequenceClaim,
    Settings,
    StringClaim,
)
from transformist.errors import InvalidValue
from transformist.model import (
    Attention,
    FeedForward,
    FeedForwardStack,
    LayerNorm,
    LayerStack,
    PositionEncoding,
    Sublayer,
    Transformer,
)
from transformist.verify.answer import AnswerInNumbers
from transformist.verify.attempt import Attempts
from transformist.verify.function_claims import answer_on_vector, check_function
from transformist.verify.position_claims import (
    answer_on_positions,
    check_positions,
    position_attempts,
)
from transformist.verify.sequence_claims import answer_on_vectors, check_sequences, list_attempts
from transformist.verify.string_claims import check_strings, string_attempts
from transformist.verify.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class ClaimKind:
    """Operations on recipes with one kind of claim.

    Attributes:
        models: kinds of models that may have the claim.
        check: tests the claim, lists and strings up to the length given.
        attempts: one length tried in the search for the first that fails; `None` where inputs have
            no length.
        answer: the answer on an input in JSON; `None` where inputs are symbols.

    """

    models: tuple[type, ...]
    check: Callable[[Recipe[Any], int | None], Verdict]
    attempts: Callable[[Recipe[Any], Settings, Arithmetic], Attempts] | None = None
    answer: Callable[[Recipe[Any], Settings, str, Arithmetic], AnswerInNumbers] | None = None


CLAIM_KINDS: Mapping[type, ClaimKind] = {
    FunctionClaim: ClaimKind(
        models=(FeedForward, FeedForwardStack, LayerNorm, Sublayer),
        check=check_function,
        answer=answer_on_vector,
    ),
    SequenceClaim: ClaimKind(
        models=(Attention, LayerNorm, LayerStack),
        check=check_sequences,
        attempts=list_attempts,
        answer=answer_on_vectors,
    ),
    PositionClaim: ClaimKind(
        models=(PositionEncoding,),
        check=check_positions,
        attempts=position_attempts,
        answer=answer_on_positions,
    ),
    StringClaim: ClaimKind(models=(Transformer,), check=check_strings, attempts=string_attempts),
}


def check_recipe(recipe: Recipe[Any], max_length: int | None = None) -> Verdict:
    """Test the claim of a recipe: on its whole domain where that is small, else on many cases.

    Args:
        recipe: what to check.
        max_length: for strings, the length up to which every one is tried; for lists of vectors,
            the longest. Chosen by the number of inputs when left out.

    Raises:
        InvalidValue: for a length below 0 or beyond what is feasible, or with a claim on vectors;
            and for a construction that gives no model with such a claim.

    Example:
        >>> import transformist as tf
        >>> check_recipe(tf.recipe("max")).held
        True

    """

    def construct(**settings: Any) -> Any:
        return _require_kind(recipe, recipe.construct(**settings))

    kind = CLAIM_KINDS[type(recipe.claim)]
    return kind.check(recipe.replace(construct=construct), max_length)


def _require_kind(recipe: Recipe[Any], model: Any) -> Any:
    """The model, if it is of a kind that may have the claim.

    Raises:
        InvalidValue: for anything else.

    """
    kinds = CLAIM_KINDS[type(recipe.claim)].models
    if isinstance(model, kinds):
        return model
    raise InvalidValue(
        f"a model with the claim of {recipe.name} must be of the kind "
        f"{' or '.join(kind.__name__ for kind in kinds)}",
        received=type(model).__name__,
        where="check",
        remedy=f"give one such as tf.recipe({recipe.name!r}).build()",
    )


def check_model(model: Any, recipe: Recipe[Any], max_length: int | None = None) -> Verdict:
    """Test a model against the claim of a recipe with its default settings.

    Args:
        model: of the kind that the recipe builds.
        recipe: whose claim is tested.
        max_length: as for `check_recipe`.

    Raises:
        InvalidValue: for a model of another kind, and as `check_recipe`.
        ShapeMismatch: for a model of another width.

    Example:
        >>> import transformist as tf
        >>> check_model(tf.recipe("max").build(), tf.recipe("min")).counterexample is None
        False

    """
    _require_kind(recipe, model)
    # The variants of a claim are other settings, for which this model is not built.
    claim = replace(recipe.claim, variants=())
    return check_recipe(recipe.replace(claim=claim, construct=lambda: model), max_length)


def answer_in_numbers(
    recipe: Recipe[Any], given: Settings, text: str, arithmetic: Arithmetic | str
) -> AnswerInNumbers:
    """Answer of a recipe on a vector, a list of vectors or n positions, for an input in JSON.

    Args:
        recipe: what to run.
        given: its settings; those left out have their defaults.
        text: the vector, the list of vectors, or n.
        arithmetic: the number system.

    Raises:
        InvalidValue: for a recipe on strings.
        TransformistError: for an input that cannot be read, or that the claim does not reach.

    Example:
        >>> import transformist as tf
        >>> answer_in_numbers(tf.recipe("mean"), {"width": 1}, "[[1], [2]]", "float64").shown
        [[1.5], [1.5]]

    """
    answer = CLAIM_KINDS[type(recipe.claim)].answer
    if answer is None:
        raise InvalidValue(
            "the recipe must be one on vectors, lists of vectors or positions",
            received=f"{recipe.name}, whose inputs are symbols",
            where="answer_in_numbers",
            remedy="run its model: tf.run(recipe.build(), symbols)",
        )
    return answer(recipe, recipe.settings(given), text, number_system(arithmetic))
