"""The auditor: tries to break a mechanism, and certifies what it finds."""

from sfumato.audit.blackbox import audit
from sfumato.audit.canaries import OneRun, one_run
from sfumato.audit.members import Membership, membership
from sfumato.audit.result import Audit

__all__ = ["Audit", "Membership", "OneRun", "audit", "membership", "one_run"]
