"""Certificates: what weights can be trusted to do in a format, composed over all layers."""

from transformist.verify.certificate.finding import Certificate, Demand, certify
from transformist.verify.certificate.lifting import Lifted, Unlawful, lift

__all__ = ["Certificate", "Demand", "Lifted", "Unlawful", "certify", "lift"]
