"""Macros in the owner's DuckDB database that have the name of a function of DuckDB's own.

DuckDB looks a function up among the owner's macros first, `count`, `least` and `+` too. A statement of ours would then
mean what the macro says, and nothing that is promised about it would hold. So such a database is refused, to its owner.
"""

import duckdb

from sfumato.errors import PolicyError

FUNCTIONS = (
    "SELECT function_name, internal FROM system.main.duckdb_functions()"
    " WHERE internal OR (database_name = current_database() AND schema_name = 'main')"
)


def refuse_shadowed_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Raises PolicyError if a macro would be called in place of a function. Only names are read."""
    listed = {True: set[str](), False: set[str]()}
    for name, internal in connection.execute(FUNCTIONS).fetchall():
        listed[internal].add(str(name).lower())
    if both := sorted(listed[True] & listed[False]):
        connection.close()
        raise PolicyError(
            "the database has macros with names of DuckDB's own functions, which statements would call instead.\n"
            f"  found:  {', '.join(both[:5])}\n"
            f"  do:     DROP MACRO {both[0]}, or give it another name"
        )
