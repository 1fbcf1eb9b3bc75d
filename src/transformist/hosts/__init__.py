"""Models of other software, read as our own; nothing of that software is imported."""

from transformist.hosts.torch_encoder import read_encoder

__all__ = ["read_encoder"]
