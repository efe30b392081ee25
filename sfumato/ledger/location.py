"""Where a ledger and its anchor are kept: from a path or an open store to the two objects."""

import os
from pathlib import Path

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.hash_chain import Anchor, FileAnchor, NoAnchor
from sfumato.ledger.sqlite import MEMORY, SqliteStore
from sfumato.ledger.store import Store

Place = str | os.PathLike[str] | Store
AnchorPlace = str | os.PathLike[str] | Anchor | None


ADDRESS = ("postgresql://", "postgres://")


def resolve(place: Place) -> Path | Store:
    """The store at a place: a store itself, an address such as postgresql://…?schema=clinic, or the path of a file."""
    if isinstance(place, str) and place.startswith(ADDRESS):
        from sfumato.ledger.postgres import PostgresStore  # an extra

        return PostgresStore.at(place)
    return Path(place) if isinstance(place, str | os.PathLike) else place


def store_at(place: Place) -> Store:
    """The store at a place: a store itself, or the path of a SQLite file."""
    place = resolve(place)
    return SqliteStore(Path(place)) if isinstance(place, str | os.PathLike) else place


def anchor_for(place: Place, anchor: AnchorPlace) -> Anchor:
    """The anchor that is given; otherwise a file beside the ledger's file, or none if there is no such file."""
    if anchor is not None:
        return FileAnchor(Path(anchor)) if isinstance(anchor, str | os.PathLike) else anchor
    if isinstance(resolve(place), Path) and place not in (MEMORY, str(MEMORY)):
        return FileAnchor(Path(f"{resolve(place)}.anchor"))
    return NoAnchor()


def require_unused(store: Store, anchor: Anchor) -> None:
    """Raises if a new ledger would replace a file, or share the anchor of another ledger."""
    if isinstance(store, SqliteStore) and store.exists():
        raise LedgerUnavailable(
            f"this file exists already.\n  found:  {store.path.name}\n"
            "  do:     open it with Ledger.open, or choose another name; a ledger is never overwritten"
        )
    if next(anchor.marks(), None):
        raise LedgerUnavailable(
            "the anchor belongs to a ledger already.\n  found:  marks in it\n"
            "  do:     open that ledger, or give the new one an anchor of its own"
        )


def require_file(store: Store) -> None:
    """Raises if the store is a SQLite file that does not exist."""
    if isinstance(store, SqliteStore) and not store.path.exists():
        raise LedgerUnavailable(
            f"there is no ledger.\n  found:  no file {store.path.name}\n  do:     create one with Ledger.create"
        )
