"""The auditor: tries to break a mechanism, and certifies what it finds."""

from sfumato.audit.blackbox import audit
from sfumato.audit.result import Audit

__all__ = ["Audit", "audit"]
