"""The auditor: attacks a mechanism's privacy claim, and certifies what it finds."""

from sfumato.audit.blackbox import audit, audit_until
from sfumato.audit.blackbox_result import Audit
from sfumato.audit.canaries import OneRun, one_run
from sfumato.audit.membership import Membership, membership
from sfumato.audit.outputs import Timed
from sfumato.audit.replay import Replay, replay
from sfumato.audit.trade_off_curve import Curve, trade_off
from sfumato.audit.whitebox import WhiteBox, white_box

__all__ = [
    "Audit",
    "Curve",
    "Membership",
    "OneRun",
    "Replay",
    "Timed",
    "WhiteBox",
    "audit",
    "audit_until",
    "membership",
    "one_run",
    "replay",
    "trade_off",
    "white_box",
]
