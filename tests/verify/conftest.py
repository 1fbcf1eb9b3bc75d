"""How far the inputs go on which a certificate sees what it assumes."""

import pytest

from transformist.verify.certificate import observing


@pytest.fixture(params=[100, pytest.param(observing.INPUTS, marks=pytest.mark.slow)])
def seen_up_to(request, monkeypatch):
    """The longest inputs of four symbols of which there are at most so many."""
    monkeypatch.setattr(observing, "INPUTS", request.param)
    return {100: 3, 1500: 5}[request.param]
