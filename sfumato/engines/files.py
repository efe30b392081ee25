"""Which files hold which table: one file, a folder with a file or a partitioned folder for each table, or a pattern.

Only names are looked at. A table of several Parquet files is a folder of them, or the pattern that names them:
lake/visits/*.parquet is the table `visits`. Folders such as year=2024 inside are partitions (Hive), and become columns.
"""

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from sfumato.errors import PolicyError

Delimiters = tuple[tuple[str, str], ...]  # table, character

SEPARATORS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
FILES = (".parquet", *SEPARATORS)
OTHERS = (".txt", ".gz", ".zst", ".zip", ".json", ".jsonl", ".ndjson", ".xls", ".xlsx", ".arrow", ".feather")


@dataclass(frozen=True)
class Source:
    """The files of one table."""

    name: str
    files: tuple[Path, ...]
    separator: str = ","  # of a CSV file
    partitioned: bool = False  # its folders are named column=value

    @property
    def is_parquet(self) -> bool:
        return suffix_of(self.files[0]) == ".parquet"


def suffix_of(file: Path) -> str:
    """The ending of a name that says what is in it, in small letters; "" if it says nothing to us."""
    return next((one for one in sorted(FILES, key=len, reverse=True) if file.name.lower().endswith(one)), "")


def is_pattern(path: Path) -> bool:
    """Does this name several files, with * ? [ ]? A file that is really called so is one file."""
    return glob.has_magic(str(path)) and not path.exists()


def files(path: Path) -> list[Path]:
    """All files at this place; none if the place is a DuckDB file."""
    return [file for source in sources(path) for file in source.files]


def sources(path: Path, delimiters: Delimiters = ()) -> list[Source]:
    """One for each table, by name; none if the place is a DuckDB file."""
    if is_pattern(path):
        return [of_pattern(path)]
    if not path.exists():
        raise PolicyError(
            f"there is no database.\n  found:  no {path.name}\n  do:     give a DuckDB, Parquet or CSV file"
        )
    places = sorted(one for one in path.iterdir() if not one.name.startswith(".")) if path.is_dir() else [path]
    found = list(each_source(places, dict(delimiters), path.is_dir()))
    if path.is_dir() and not found:
        raise PolicyError(f"this folder holds no data.\n  found:  no {' or '.join(FILES)} file in {path.name}")
    if path.is_file() and not found and path.suffix.lower() in OTHERS:
        raise PolicyError(
            f"this kind of file is not supported.\n  found:  {path.name}\n"
            "  do:     convert it to Parquet, or to CSV in UTF-8 with commas between fields"
        )
    return require_distinct(found)


def each_source(places: list[Path], delimiters: dict[str, str], in_folder: bool) -> Iterator[Source]:
    for place in places:
        ending = suffix_of(place)
        if ending and not place.is_file():
            raise PolicyError(f"a table must be one file.\n  found:  {place.name}, which is a folder or a broken link")
        if ending:
            name = place.name[: -len(ending)].lower()
            yield Source(name, (place,), delimiters.get(name, SEPARATORS.get(ending, ",")))
        elif in_folder and place.is_dir() and (inside := sorted(place.rglob("*.parquet"))):
            yield of_files(place.name.lower(), place, inside)


def of_pattern(path: Path) -> Source:
    """The table of a pattern: called after the last folder before its first wildcard."""
    base = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
    found = sorted(Path(one) for one in glob.glob(str(path), recursive=True))
    if not found or any(suffix_of(one) != ".parquet" or not one.is_file() for one in found):
        raise PolicyError(
            f"a pattern names Parquet files.\n  found:  {'no file' if not found else 'other files'} for {path.name}\n"
            "  do:     give such as lake/visits/*.parquet, or lake/visits/**/*.parquet for partitions"
        )
    return of_files((base.name or "data").lower(), base, found)


def of_files(name: str, base: Path, found: list[Path]) -> Source:
    """Several files of one table. All lie in folders named column=value, of the same columns, or none does."""
    kinds = {tuple(p.partition("=")[0] for p in one.relative_to(base).parts[:-1] if "=" in p) for one in found}
    if len(kinds) > 1:
        raise PolicyError(
            f"the partitions of {name} differ.\n  found:  folders of {' and of '.join(map(str, sorted(kinds)))}\n"
            "  do:     let all files lie in folders of the same columns, such as year=2024"
        )
    return Source(name, tuple(found), partitioned=bool(next(iter(kinds))))


def require_distinct(found: list[Source]) -> list[Source]:
    tables: dict[str, Source] = {}
    for source in found:
        other = tables.setdefault(source.name, source)
        if other is not source:
            raise PolicyError(
                f"two files have the same table name, {source.name}.\n"
                f"  found:  {other.files[0].name} and {source.files[0].name}\n  do:     keep one of them in the folder"
            )
    return found
