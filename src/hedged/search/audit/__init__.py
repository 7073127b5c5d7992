"""What is wrong with a gallery? Labels, near-duplicates, identities that are two, and enrolments too poor to use.

`findings` says what can be found, `labels` looks at labels, `items` at pairs of items and at single ones; `audit` puts
it together.
"""

from hedged.search.audit.audit import WRONG_SHARE, audit_gallery, audit_of_added, read_audit
from hedged.search.audit.findings import Audit, Divided, Duplicates, Finding, Mislabelled, Poor

__all__ = [
    "WRONG_SHARE",
    "Audit",
    "Divided",
    "Duplicates",
    "Finding",
    "Mislabelled",
    "Poor",
    "audit_gallery",
    "audit_of_added",
    "read_audit",
]
