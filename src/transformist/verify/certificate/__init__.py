"""Certificates: what weights can be trusted to do in a format, composed over all layers."""

from transformist.verify.certificate.checking import check_certificate
from transformist.verify.certificate.extraction import extract
from transformist.verify.certificate.finding import certify
from transformist.verify.certificate.refusals import Uncertifiable, Unproved
from transformist.verify.certificate.statement import PARTS, TAKEN_FOR_GRANTED, Certificate

__all__ = [
    "PARTS",
    "TAKEN_FOR_GRANTED",
    "Certificate",
    "Uncertifiable",
    "Unproved",
    "certify",
    "check_certificate",
    "extract",
]
