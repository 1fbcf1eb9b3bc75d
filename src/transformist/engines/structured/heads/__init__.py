"""Heads: the maps of each, and the methods that evaluate it."""

from transformist.engines.structured.heads.choosing import choose_method
from transformist.engines.structured.heads.head import HeadInput, HeadMaps
from transformist.engines.structured.heads.method import Method

__all__ = ["HeadInput", "HeadMaps", "Method", "choose_method"]
