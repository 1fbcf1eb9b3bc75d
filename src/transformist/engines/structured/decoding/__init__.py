"""Decoders: models that read one token after another."""

from transformist.engines.structured.decoding.decoders import Decoder, decoder

__all__ = ["Decoder", "decoder"]
