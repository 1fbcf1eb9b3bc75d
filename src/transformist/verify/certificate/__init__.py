"""Certificates: what weights can be trusted to do in a format, composed over all layers."""

from transformist.verify.certificate.certification import certify, check_certificate, grade_of
from transformist.verify.certificate.extraction import extract
from transformist.verify.certificate.refusals import Uncertifiable, Unproved
from transformist.verify.certificate.statement import (
    PARTS,
    TAKEN_FOR_GRANTED,
    VERSION,
    Certificate,
)

__all__ = [
    "PARTS",
    "TAKEN_FOR_GRANTED",
    "VERSION",
    "Certificate",
    "Uncertifiable",
    "Unproved",
    "certify",
    "check_certificate",
    "extract",
    "grade_of",
]
