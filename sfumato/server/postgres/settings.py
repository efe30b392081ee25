"""The settings of a connection: what clients look at, and the price of questions (sfumato.epsilon, sfumato.error)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.server.postgres import types
from sfumato.server.postgres.results import Result

MOST_SETTINGS = 200
LONGEST_SETTING = 1000
ON, OFF = ("on", "true", "yes", "1"), ("off", "false", "no", "0")
OWN = "sfumato."  # what a question may cost, or how exact it must be
INTERVALS = "sfumato.intervals"  # off: only the columns of the SELECT, for programs that count them
PRICES = ("sfumato.epsilon", "sfumato.error", "sfumato.relative_error")
SETTINGS = {
    "server_version": "16.0", "server_encoding": "UTF8", "client_encoding": "UTF8", "datestyle": "ISO, MDY",
    "timezone": "UTC", "integer_datetimes": "on", "standard_conforming_strings": "on", "transaction_isolation":
    "serializable", "transactionisolationlevel": "serializable", "search_path": '"$user", public',
    "intervalstyle": "postgres", "is_superuser": "off", "default_transaction_read_only": "on",
    "in_hot_standby": "off", "application_name": "", "max_identifier_length": "63", "lc_collate": "C",
}  # fmt: skip
REPORTED = {
    "server_version": "server_version", "server_encoding": "server_encoding", "client_encoding": "client_encoding",
    "DateStyle": "datestyle", "TimeZone": "timezone", "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings", "IntervalStyle": "intervalstyle",
}  # fmt: skip


@dataclass(eq=False)
class Settings:
    """What a connection began with, and what was set since."""

    values: dict[str, str]
    first: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.first = dict(self.values)

    @staticmethod
    def of(asked: Mapping[str, str]) -> "Settings":
        """From the first message of a connection, in which `options` holds settings, too."""
        words = asked.get("options", "").replace("-c ", " ").split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        return Settings({**SETTINGS, **{name.lower(): value for name, value in {**asked, **options}.items()}})

    @property
    def shows_intervals(self) -> bool:
        return self.values.get(INTERVALS, "on").lower() not in OFF

    def set(self, name: str, value: str) -> Result:
        if len(name) + len(value) > LONGEST_SETTING or (name not in self.values and len(self.values) > MOST_SETTINGS):
            raise QueryRefused(f"settings are short, and at most {MOST_SETTINGS}.\n  do:     RESET some")
        if value.lower() == "default":
            return self.reset("SET", name)
        if name.startswith(OWN) and value:
            require_own(name, value)
        self.values[name] = value
        return Result(tag="SET")

    def reset(self, tag: str, name: str) -> Result:
        """One setting, or all of them, as they were when the connection began: a pool gives it to somebody else."""
        if name == "all":
            self.values = dict(self.first)
        elif name in self.first:
            self.values[name] = self.first[name]
        else:
            self.values.pop(name, None)
        return Result(tag="DISCARD ALL" if tag == "DISCARD" else tag)

    def show(self, name: str) -> Result:
        """One setting, or all of them."""
        if name == "all":
            rows = [(one, value, "") for one, value in sorted(self.values.items())]
            return Result([(column, types.TEXT) for column in ("name", "setting", "description")], rows, "SHOW")
        return Result([(name, types.TEXT)], [(self.values.get(name, ""),)], "SHOW")


def require_own(name: str, value: str) -> None:
    """Raises at once, not at the next question, if a setting of ours is none or its value is no price."""
    if name == INTERVALS and value.lower() in (*ON, *OFF):
        return
    if name not in PRICES:
        raise InvalidParameter(
            f"there is no such setting or value: {name}.\n"
            f"  do:     set one of {', '.join(PRICES)}, or {INTERVALS} = off"
        )
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise InvalidParameter(f"{name} must be a positive number.\n  do:     SET {name} = 0.1")
