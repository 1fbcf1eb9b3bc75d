"""Models in files and of other software; nothing of that software is imported."""

from transformist.hosts.saved_model import load, load_certificates, save
from transformist.hosts.torch_encoder import read_encoder

__all__ = ["load", "load_certificates", "read_encoder", "save"]
