"""Checkpoints of transformers: the files of a directory, and what the library computes from them.

The mapping of a class writes a checkpoint from plain arrays, without the library. Auto classes load
it. No code comes with it, and nothing is fetched from a network.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from transformist.errors import InvalidValue
from transformist.host_evaluation import HOST_CLASSES, HostEvaluation
from transformist.hosts.host import HOSTS, Unhostable
from transformist.hosts.host_comparison import HostSearch, NoAnswer
from transformist.hosts.model_card import card, table
from transformist.hosts.named_arrays import NO_FACTS, description
from transformist.hosts.neutral_norms import PINNED
from transformist.hosts.optional_library import optional
from transformist.hosts.plain_model import (
    FORMAT,
    PlainModel,
    as_tensor,
    host_evaluation,
    plain_model,
    rows_of,
)
from transformist.hosts.rewritten import rewritten, with_softmax
from transformist.hosts.stock import Stock
from transformist.hosts.vocabulary import (
    Vocabulary,
    as_json,
    as_utf8,
    label_texts,
    vocabulary_of,
)
from transformist.model import Binary, Transformer
from transformist.verify import grade_of

WRITTEN_IN = (FORMAT, PINNED)
"""The number formats of checkpoints."""

FACTS = "transformist.json"
"""The file with the facts about the model, and the tokens of its symbols and answers."""


def write(
    stock: Stock,
    model: Transformer,
    arithmetic: str,
    max_length: int | None = None,
    facts: Mapping[str, Any] = NO_FACTS,
) -> dict[str, bytes]:
    """Return the files of a checkpoint by their names.

    Args:
        stock: the class.
        model: the transformer.
        arithmetic: `float32`, or `float16`, in which norms are made neutral by pins.
        max_length: the longest input, for a model without N.
        facts: the claim of the model and the inputs of its comparison, for the card.

    Raises:
        Unhostable: for a model or a format that the class does not have.
        InvalidValue: for symbols or labels without texts, or a model of any length without
            `max_length`.
        NotFinite: for a weight that the format does not hold.

    """
    if arithmetic not in WRITTEN_IN:
        raise Unhostable(
            f"a checkpoint must be in {' or '.join(WRITTEN_IN)}",
            received=arithmetic,
            host=stock.host,
            arithmetic=FORMAT,
        )
    fitted = _fitted(stock, model, max_length, arithmetic)
    longest = _longest_of(fitted, model, max_length)
    # One certificate is of transformist's evaluation, the other of that by the class. Both are of
    # the model that the checkpoint holds: a rewriting keeps the exact answers of the model given.
    grade, _ = grade_of(fitted.fitting, arithmetic, longest)
    in_host = 0, f"the evaluation by {stock.name} in {arithmetic} has no error bounds"
    if stock.host in HOST_CLASSES and arithmetic == FORMAT:
        evaluation = host_evaluation(fitted.plain, fitted.fitting, stock.host)
        in_host = grade_of(fitted.fitting, FORMAT, longest, host=evaluation)
    grades = {"grade": grade, "host_grade": in_host[0], "host_stopped": in_host[1]}
    return _files(stock, model, fitted, max_length, {**facts, **grades})


def without_grades(
    stock: Stock, model: Transformer, arithmetic: str, max_length: int | None = None
) -> dict[str, bytes]:
    """Return the files of a checkpoint that is searched, without a proof of its grades.

    Arguments and errors are the same as for `write`.
    """
    grades = {"grade": 0, "host_grade": 0, "host_stopped": "no proof was tried"}
    fitted = _fitted(stock, model, max_length, arithmetic)
    return _files(stock, model, fitted, max_length, grades)


def _longest_of(fitted: _Fitted, model: Transformer, max_length: int | None) -> int:
    """The longest input, without the symbols that the model adds."""
    return rows_of(model, max_length) - len(fitted.tokens.front) - len(fitted.tokens.back)


def _files(
    stock: Stock,
    model: Transformer,
    fitted: _Fitted,
    max_length: int | None,
    facts: Mapping[str, Any],
) -> dict[str, bytes]:
    """The files of a checkpoint by their names."""
    tokens, rows = fitted.tokens, rows_of(model, max_length)
    arithmetic = fitted.plain.arithmetic
    described = description(model, arithmetic, facts, max_length) | {
        "class": stock.name,
        "max_length": _longest_of(fitted, model, max_length),
        "searched": [],
        "answers": list(fitted.answers),
        "symbol_tokens": list(tokens.symbols),
        "answer_tokens": list(tokens.answers),
    }
    ids = {"pad_token_id": tokens.pad, "bos_token_id": tokens.bos, "eos_token_id": tokens.eos}
    common = {"architectures": [stock.name], "dtype": arithmetic, "tie_word_embeddings": False}
    made = {
        "config.json": as_json({**common, **ids, **fitted.config}),
        "model.safetensors": safetensors.numpy.save(fitted.arrays, {"format": "pt"}),
        "tokenizer.json": tokens.tokenizer(),
        "tokenizer_config.json": tokens.settings(rows, stock.padding_side),
        "README.md": as_utf8(card(stock, tokens, described)),
        FACTS: as_json(described),
    }
    if stock.generates:
        # The token after the last row is still an answer; a row more is beyond N.
        until = {"max_length": rows + 1} if tokens.continues else {"max_new_tokens": 1}
        made["generation_config.json"] = as_json({**ids, "do_sample": False, **until})
    return made


def with_searches(
    stock: Stock, made: Mapping[str, bytes], searches: Sequence[HostSearch]
) -> dict[str, bytes]:
    """Return the files of a checkpoint whose facts and card tell the searches in other formats."""
    facts = json.loads(made[FACTS])
    searched = facts | {"searched": [asdict(each) for each in searches]}
    before, after = (as_utf8(table(stock, each)) for each in (facts, searched))
    return {
        **made,
        FACTS: as_json(searched),
        "README.md": made["README.md"].replace(before, after, 1),
    }


class _Fitted(NamedTuple):
    """A model that the class holds, as the class has it."""

    fitting: Transformer
    plain: PlainModel
    tokens: Vocabulary
    answers: tuple[str, ...]
    config: Mapping[str, Any]
    arrays: dict[str, NDArray[Any]]


def _fitted(
    stock: Stock, model: Transformer, max_length: int | None, arithmetic: str = FORMAT
) -> _Fitted:
    """Fit a model to the class; what the class does not hold is refused."""
    # The reference of the comparison is the model as it was given: a rewriting that changed an
    # answer would be found there, as a wrong weight is.
    fitting = rewritten(with_softmax(model, stock.host, max_length), stock.masks)
    plain = plain_model(fitting, stock.host, stock.masks, max_length, HOSTS[stock.host].options)
    plain = replace(plain, arithmetic=arithmetic)
    stock.require(plain, stock.host)
    tokens = vocabulary_of(model, plain.answers if stock.generates else ())
    answers = tokens.answer_texts if stock.generates else label_texts(plain.answers)
    config, tensors = stock.mapping(plain, fitting, tokens)
    arrays = {name: as_tensor(name, weights, arithmetic) for name, weights in tensors.items()}
    return _Fitted(fitting, plain, tokens, tuple(answers), config, arrays)


def evaluation(stock: Stock, model: Transformer, max_length: int | None) -> HostEvaluation:
    """Return the evaluation of a model by a class that can be certified.

    Args:
        stock: the class.
        model: the transformer.
        max_length: the longest input, for a model without N.

    Raises:
        Unhostable: for a part that the class does not have.
        InvalidValue: for symbols or labels without texts, or a model of any length without
            `max_length`.
        NotFinite: for a weight that float32 does not hold.

    """
    # What `write` refuses is refused here as well: a certificate is of a checkpoint that exists.
    plain = _fitted(stock, model, max_length).plain
    return host_evaluation(plain, model, stock.host)


def loaded(directory: Path, auto: str, arithmetic: str = FORMAT) -> tuple[Any, Any]:
    """Load the tokenizer and the model of a checkpoint by Auto classes, offline, in a format.

    Raises:
        InvalidValue: if the class leaves out a weight of the checkpoint, or needs another one.

    """
    transformers = optional("transformers", "huggingface", "export")
    with silent(transformers):
        tokenizer = transformers.AutoTokenizer.from_pretrained(directory, local_files_only=True)
        network, found = getattr(transformers, auto).from_pretrained(
            directory,
            local_files_only=True,
            output_loading_info=True,
            dtype=getattr(optional("torch", "huggingface", "export"), arithmetic),
        )
    wrong = {name: keys for name, keys in found.items() if keys}
    if wrong:
        raise InvalidValue(
            "transformers must load every weight of the checkpoint, and no other",
            received=f"{wrong}"[:200],
            where="export",
            remedy="run: pip install 'transformist[huggingface]', for a version that is tested",
        )
    return tokenizer, network.eval()


@contextlib.contextmanager
def silent(transformers: Any) -> Iterator[None]:
    """Show no bar and no warning of the library while it loads."""
    logging = transformers.utils.logging
    level, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bar:
            logging.enable_progress_bar()


def run(
    stock: Stock, made: Mapping[str, bytes], arithmetic: str | None = None
) -> Callable[[Any, Any], NDArray[Any]]:
    """Return a function from tokens of the model and lengths to logits, by the stock class.

    The input goes through the tokenizer as a text. Logits must be finite. If the class predicts the
    next token, the token with the largest logit must be an answer.

    Args:
        stock: the class.
        made: the files of the checkpoint.
        arithmetic: the format in which the class holds weights and results; that of the checkpoint
            when left out.

    Raises:
        InvalidValue: for a text that the tokenizer splits into other tokens.
        NoAnswer: for a logit that is not finite, or a largest one that belongs to no answer.

    """
    torch = optional("torch", "huggingface", "export")
    facts = json.loads(made[FACTS])
    with TemporaryDirectory() as directory:
        for name, data in made.items():
            (Path(directory) / name).write_bytes(data)
        own = arithmetic or facts["arithmetic"]
        tokenizer, network = loaded(Path(directory), stock.auto, own)
    symbols, answers = np.array(facts["symbol_tokens"]), facts["answer_tokens"]
    front, back = len(facts["front"]), len(facts["back"])
    # The whole way is tried that a user takes: from a text, through the tokenizer, to logits.
    joint = "" if _is_by_character(made) else " "

    def tokenized(ids: Any) -> list[int]:
        wanted: list[int] = symbols[ids].tolist()
        middle = wanted[front : len(wanted) - back]
        text = joint.join(tokenizer.convert_ids_to_tokens(middle))
        found = tokenizer(text)["input_ids"]
        if found != wanted:
            raise _refusal(
                InvalidValue,
                f"the tokens of the text {text!r:.40} must be {wanted}"[:200],
                f"{found}"[:60],
            )
        return wanted

    def logits(ids: Any, lengths: Any) -> NDArray[Any]:
        # A batch has padding as long as the table of positions has rows.
        width = min(len(ids[0]), tokenizer.model_max_length)
        rows = [tokenized(np.array(each[:n], int)) for each, n in zip(ids, lengths, strict=True)]
        given = tokenizer.pad(
            {"input_ids": rows}, padding="max_length", max_length=width, return_tensors="pt"
        )
        mask = given["attention_mask"]
        # Positions count tokens, not padding, so that an input has the same vectors in every batch.
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        with torch.inference_mode():
            values = network(
                input_ids=given["input_ids"], attention_mask=mask, position_ids=places
            ).logits
        numbers = values.double().numpy()
        # Padding may stand on the left: the rows of tokens are brought to the front, where the
        # model has them.
        found = np.zeros((len(rows), len(ids[0]), numbers.shape[-1]))
        for row, (n, is_token) in enumerate(zip(lengths, mask.bool().numpy(), strict=True)):
            found[row, :n] = numbers[row, is_token]
            if not np.isfinite(found[row, :n]).all():
                raise _refusal(NoAnswer, "logits must be finite", "NaN or an infinity")
            if stock.generates and not np.isin(found[row, :n].argmax(-1), answers).all():
                invariant = "the token with the largest logit must be an answer"
                text = joint.join(tokenizer.convert_ids_to_tokens(rows[row]))
                raise _refusal(NoAnswer, invariant, f"another token on {text!r:.60}")
        if stock.generates:
            found = found[..., answers]
        # float64 holds the difference of two numbers of float32 with its sign.
        return found[..., 1:] - found[..., :1] if facts["read_out"] == Binary.__name__ else found

    return logits


def _is_by_character(made: Mapping[str, bytes]) -> bool:
    return json.loads(made["tokenizer.json"])["decoder"] is not None


def _refusal(kind: type[InvalidValue], invariant: str, received: str) -> InvalidValue:
    return kind(
        invariant,
        received=received,
        where="export",
        remedy="nothing was written; export the model with host='onnx'",
    )
