"""A server of the completions API of OpenAI as an engine."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from transformist.conformance.case import Case
from transformist.conformance.families import FAMILIES
from transformist.conformance.segmentation import segmented
from transformist.conformance.suite_files import cases, read_manifest
from transformist.errors import InvalidValue

SECONDS = 120
"""Time limit of each step of a request, since a server may load its checkpoint at the first one."""

MOST_BYTES = 2**24
"""Largest answer in bytes; a larger one counts as no answer."""

REFUSED = (400, 422, 500)
"""Statuses with which servers refuse a prompt of token ids; llama-cpp-python's answers with 500."""


class ServerError(Exception):
    """Raised if a server gives no answer that can be compared; the message says why."""


@dataclass(frozen=True)
class Server:
    """A server, by its URL. No other host is contacted: redirections and proxies are not followed.

    Attributes:
        url: the parts of the URL before `/completions`.

    """

    url: SplitResult

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of an answer; `IdsRefused` for a status of `REFUSED`."""
        kind = (
            http.client.HTTPSConnection
            if self.url.scheme == "https"
            else http.client.HTTPConnection
        )
        connection = kind(self.url.hostname or "127.0.0.1", self.url.port, timeout=SECONDS)
        place = f"{method} {self.url.path.rstrip('/')}{path}"
        data = None if body is None else json.dumps(body)
        try:
            connection.request(
                method,
                self.url.path.rstrip("/") + path,
                data,
                {"Content-Type": "application/json", "Accept": "application/json"},
            )
            found = connection.getresponse()
            text = found.read(MOST_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ServerError(f"{self.url.netloc}: no answer to {place} ({words})") from None
        finally:
            connection.close()
        if len(text) > MOST_BYTES:
            raise ServerError(f"{place}: an answer of more than {MOST_BYTES:,} bytes")
        # `length` is the number of bytes that the header promises and that did not arrive.
        if found.length:
            raise ServerError(f"{place}: the answer breaks off after {len(text):,} bytes")
        if found.getheader("Content-Type", "").startswith("text/event-stream"):
            raise ServerError(f"{place}: the server streams, though `stream` is false")
        return self._judged(found.status, text, place)

    def _judged(self, status: int, text: bytes, place: str) -> Any:
        try:
            made = json.loads(text)
        except ValueError:
            made = None
        said = made.get("error") if isinstance(made, dict) else None
        if isinstance(said, dict):
            said = said.get("message")
        if said is None and status != http.client.OK:
            said = text.decode("utf-8", "replace")
        said = None if said is None else " ".join(str(said).split())
        if status in REFUSED:
            raise IdsRefused(f"{place}: status {status}: {said:.200}")
        if status != http.client.OK or said is not None:
            raise ServerError(f"{place}: status {status}: {said:.200}")
        if not isinstance(made, dict):
            raise ServerError(f"{place}: the answer is no JSON object: {text[:60]!r}")
        return made


class IdsRefused(ServerError):
    """Raised if a server answers with a status of `REFUSED`, as for token ids."""


@dataclass
class _Served:
    """One checkpoint on a server.

    Attributes:
        server: the server.
        model: the name of the checkpoint there.
        texts: the text of each prompt, by its ids.
        vocabulary: the text of each token.
        counted: each note on the number of tokens of a prompt, with its first example.
        refusal: the words with which ids are refused; empty if they are taken.
        takes_ids: true if a prompt was answered that was given as ids.

    """

    server: Server
    model: str
    texts: Mapping[tuple[int, ...], str]
    vocabulary: Sequence[str]
    counted: dict[str, str] = field(default_factory=dict)
    refusal: str = ""
    takes_ids: bool = False

    @property
    def notes(self) -> list[str]:
        """Notes for the report, beside the tokens."""
        as_text = f"prompts are given as text, since ids are refused: {self.refusal}"
        return [
            *([as_text] if self.refusal else []),
            *(f"{words} ({example})" for words, example in self.counted.items()),
        ]

    def run(self, ids: Sequence[int], max_new_tokens: int) -> list[int]:
        """Return the tokens after a prompt, given as its ids, or as its text if ids are refused."""
        text = self.texts[tuple(ids)]
        if self.refusal:
            return self._completed(text, ids, max_new_tokens)
        try:
            found = self._completed(list(ids), ids, max_new_tokens)
        except IdsRefused as refusal:
            if self.takes_ids:
                raise
            found = self._completed(text, ids, max_new_tokens)
            self.refusal = str(refusal)
        else:
            self.takes_ids = True
        return found

    def _completed(self, prompt: Any, ids: Sequence[int], count: int) -> list[int]:
        made = self.server.ask(
            "POST",
            "/completions",
            {
                "model": self.model,
                "prompt": prompt,
                "max_tokens": count,
                "temperature": 0,
                "stream": False,
            },
        )
        try:
            choice = made["choices"][0]
            text = choice["text"]
        except (KeyError, IndexError, TypeError):
            raise ServerError(f"the answer has no choices[0].text: {made!r:.120}") from None
        self._count(made.get("usage"), len(ids))
        found = choice.get("token_ids")
        if isinstance(found, list) and all(type(each) is int for each in found):
            return found
        if not isinstance(text, str):
            raise ServerError(f"choices[0].text is no text: {text!r:.60}")
        return segmented(text, self.vocabulary, count)

    def _count(self, usage: Any, tokens: int) -> None:
        """Keep a note if the server counts more or fewer tokens in the prompt than there are."""
        counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        if not isinstance(counted, int) or counted == tokens:
            return
        words = {
            1: "the server adds a token to every prompt: BOS stands twice",
            -1: "the server takes a token from every prompt: BOS is missing",
        }.get(counted - tokens, "the server splits the prompt into other tokens")
        self.counted.setdefault(words, f"it counts {counted} tokens of a prompt of {tokens}")


def server(url: str) -> Server:
    """Read the URL of a server; a port alone, or a URL without a host, means this machine.

    Raises:
        InvalidValue: for a URL that cannot be that of a server.

    """
    given = f"http://127.0.0.1:{url}/v1" if url.isdecimal() else url
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    is_server = parts.scheme in ("http", "https") and (parts.hostname or port)
    if not is_server or parts.query or parts.fragment or parts.username or not given.isprintable():
        raise InvalidValue(
            "--openai must be the URL of a server, with the path before /completions",
            received=f"{url!r:.80}",
            where="conformance",
            remedy="give --openai http://127.0.0.1:8000/v1, with the port of the server",
        )
    return Server(parts)


def openai_engine(
    place: Server, directory: Path, model: str | None
) -> tuple[Callable[[Path], Any], str | None]:
    """Return the function that opens a checkpoint on a server, and the instrument of a model.

    Args:
        place: the server.
        directory: the suite.
        model: the name of one checkpoint on the server, whose last part is that of an instrument;
            when left out, the server has all, by the names of the instruments.

    Raises:
        InvalidValue: for a suite of encoders, or a model whose name is not that of an instrument.

    """
    family = FAMILIES[read_manifest(directory)["family"]]
    if not family.generates:
        raise InvalidValue(
            "--openai must come with a suite of decoders: a completions server continues a prompt "
            f"from left to right, and {family.title} gives a label to each token of a whole text",
            received=f"{directory}, a suite of {family.name}",
            where="conformance",
            remedy=f"run the suite of {family.name} with --engine, or another suite with --openai",
        )
    by_instrument: dict[str, list[Case]] = {}
    for case in cases(directory):
        by_instrument.setdefault(case.instrument, []).append(case)
    instrument = None if model is None else model.rstrip("/").rpartition("/")[2]
    if instrument is not None and instrument not in by_instrument:
        raise InvalidValue(
            "the last part of --model must be the name of an instrument of the suite",
            received=f"{model!r:.80}",
            where="conformance",
            remedy=f"serve the checkpoint {directory}/INSTRUMENT by the name INSTRUMENT, one of "
            f"{', '.join(by_instrument)}",
        )

    def opened(checkpoint: Path) -> _Served:
        own = by_instrument[checkpoint.name]
        listed = place.ask("GET", "/models").get("data")
        names = [each.get("id") for each in listed or () if isinstance(each, dict)]
        name = model or next(
            (each for each in names if str(each).rpartition("/")[2] == checkpoint.name), None
        )
        if name is None or (names and name not in names):
            raise ServerError(
                f"the server has no model {model or checkpoint.name!r}; it has "
                f"{', '.join(map(str, names[:12])) or 'none'}"
            )
        vocabulary = json.loads((checkpoint / "tokenizer.json").read_text("utf-8"))["model"][
            "vocab"
        ]
        return _Served(
            server=place,
            model=name,
            texts={case.prompt: case.text for case in own},
            vocabulary=sorted(vocabulary, key=vocabulary.__getitem__),
        )

    return opened, instrument
