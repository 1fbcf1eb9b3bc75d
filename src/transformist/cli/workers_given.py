"""The options that say which processes do the work."""

from __future__ import annotations

from typing import Annotated

import typer

from transformist.errors import InvalidValue, UnknownName
from transformist.inputs import read_positive
from transformist.verify import BACKENDS, Workers

Backend = Annotated[
    str | None,
    typer.Option(
        help="Backend of joblib: loky (this machine), dask or ray.",
        metavar="NAME",
        show_default=False,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Address of the scheduler of Dask (required), as tcp://10.0.0.1:8786, or of Ray.",
        show_default=False,
    ),
]


def read_workers(jobs: str | None, backend: str | None, address: str | None) -> Workers:
    """The processes that --jobs, --backend and --address name.

    Raises:
        InvalidValue: for a number of processes below 1, an address without a cluster, or Dask
            without an address.
        UnknownName: for a backend that the command line does not know.

    """
    if backend is not None and backend not in BACKENDS:
        raise UnknownName.among("backend", backend, BACKENDS, "--backend")
    if backend == "dask" and address is None:
        raise InvalidValue(
            "--backend dask must come with the address of a scheduler",
            received="no --address",
            remedy="give --address tcp://HOST:8786, of a scheduler that `dask scheduler` started",
        )
    return Workers(None if jobs is None else read_positive(jobs, "--jobs"), backend, address)
