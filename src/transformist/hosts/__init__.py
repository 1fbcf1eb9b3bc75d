"""Models in files and in other software; the other software is imported when it is used."""

from transformist.hosts.certifying import certify, check_certificate
from transformist.hosts.exporting import export
from transformist.hosts.host_searches import search_host
from transformist.hosts.model_certificates import unproved
from transformist.hosts.saved_model import load, load_certificates, save
from transformist.hosts.torch_conversion import from_torch, to_torch
from transformist.hosts.torch_encoder import read_encoder
from transformist.hosts.transformer_lens_bridge import to_transformer_lens

__all__ = [
    "certify",
    "check_certificate",
    "export",
    "from_torch",
    "load",
    "load_certificates",
    "read_encoder",
    "save",
    "search_host",
    "to_torch",
    "to_transformer_lens",
    "unproved",
]
