"""Policies that state types, units and public keys, and curators with fresh ledgers."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

import sfumato as sf
from sfumato.curator.open import open_ledger
from sfumato.sql.policy import Policy

DELTA = 1e-6
HEAD = f"version = 1\n[budget]\nepsilon = 900\ndelta = 0.05\nquestion_delta = {DELTA}\n"
PURE = 'version = 1\n[budget]\nepsilon = 900\nkind = "pure"\n'
UNITS = {"flights": "tailnum", "insteval": "s", "nafld": "id", "pizza": "id", "baseball": "id", "movielens": "u"}
RANGES = {  # of numbers: what is possible
    "flights": {"distance": (0, 5000), "dep_delay": (-60, 600), "arr_delay": (-120, 600), "air_time": (0, 720)},
    "insteval": {"y": (1, 5)},
}


@dataclass(frozen=True)
class Stated:
    """What a policy says about how much people have; nothing, unless an owner does."""

    bounds: str = ""  # lines of the policy, such as rows = 1
    private: tuple[str, ...] = ()  # columns whose keys are private
    unbounded: bool = False  # numbers have no ranges
    pure: bool = False  # the budget is of pure ε


@dataclass(frozen=True)
class Curators:
    """Curators of one database."""

    file: Path
    opened: dict[int, sf.Curator] = field(default_factory=dict, repr=False)  # by policy

    def policy(self, table: str, stated: Stated) -> Policy:
        unit = UNITS.get(table, "u")
        with duckdb.connect(str(self.file), read_only=True) as connection:
            columns = connection.execute(f"DESCRIBE {table}").fetchall()
            lines = [self.column(connection, table, name, kind, stated) for name, kind, *_ in columns if name != unit]
        head = PURE if stated.pure else HEAD
        head += f'[tables.{table}]\nunit = "{unit}"\n{stated.bounds}\n[tables.{table}.columns]\n'
        return Policy.read(head + "\n".join(lines) + "\n")

    def column(self, connection: duckdb.DuckDBPyConnection, table: str, name: str, kind: str, stated: Stated) -> str:
        """Public keys are those that there are, which is kind to nobody in particular: all methods have them."""
        low, high = RANGES.get(table, {}).get(name, (None, None))
        if kind == "BOOLEAN":
            return f'{name} = {{type = "boolean"}}'
        if low is not None and kind != "DOUBLE" and high - low < 100:
            return f'{name} = {{type = "integer", low = {low}, high = {high}}}'  # may be a key, too
        if low is not None:
            return (
                f'{name} = {{type = "number"{"" if stated.unbounded else f", low = {low}, high = {high}, step = 1"}}}'
            )
        if kind == "DOUBLE":
            return f'{name} = {{type = "number", low = 0, high = 1000}}'
        text = "text" if kind == "VARCHAR" else "integer"
        if name in stated.private:
            return f'{name} = {{type = "{text}"}}'
        found = connection.execute(
            f"SELECT DISTINCT {name} FROM {table} WHERE {name} IS NOT NULL ORDER BY 1"
        ).fetchall()
        return f'{name} = {{type = "{text}", keys = {json.dumps([key for (key,) in found])}}}'

    @contextmanager
    def fresh(self, policy: Policy) -> Iterator[sf.Curator]:
        """A curator with nothing spent and nothing stored. The engine with its kept tables and the plans are those of
        the first one under this policy: exact numbers are the same for all, and what is released is in the ledger."""
        folder = Path(tempfile.mkdtemp(prefix="sfumato-truth-"))
        try:
            if id(policy) not in self.opened:
                self.opened[id(policy)] = sf.Curator.open(self.file, policy=policy, ledger=folder / "first")
            first = self.opened[id(policy)]
            curator = replace(first, ledger=open_ledger(folder / "ledger", first.engine, policy, None))
            vars(curator)["planner"] = first.planner
            yield curator
        finally:
            shutil.rmtree(folder)
