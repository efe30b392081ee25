"""The `%%sfumato` magic of Jupyter and IPython, with completion of tables, columns and options.

    %load_ext sfumato.notebook

    %%sfumato clinic --epsilon 0.1
    SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward

`clinic` is a variable with a curator, or with a service (`sf.connect`); it may be left out if there is one only.
`--preview` shows the price, and `--to name` keeps the answer in a variable. As a line, `%sfumato clinic` shows the
budget.
"""

import argparse
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from sfumato.client import Remote
from sfumato.curator import Curator
from sfumato.errors import SfumatoError

MAGIC = "%%sfumato"
WORDS = ("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "COUNT(*)", "COUNT(DISTINCT ", "SUM(", "AVG(", "BETWEEN")
OPTIONS = ("--epsilon", "--error", "--relative-error", "--preview", "--to", "--key")
Asker = Curator | Remote


class Options(argparse.ArgumentParser):
    """The first line of a cell; what is wrong with it is said, and ends nothing."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{MAGIC}: {message}")


def options() -> Options:
    found = Options(prog=MAGIC, add_help=False)
    found.add_argument("curator", nargs="?")
    for name in ("--epsilon", "--error", "--relative-error"):
        found.add_argument(name, type=float)
    found.add_argument("--preview", action="store_true")
    found.add_argument("--to")
    found.add_argument("--key")
    return found


@magics_class
class SfumatoMagics(Magics):
    """`%sfumato` and `%%sfumato`."""

    @line_cell_magic
    def sfumato(self, line: str, cell: str | None = None) -> object:
        """Ask the SQL of a cell; as a line, show the budget."""
        assert self.shell is not None
        names = self.shell.user_ns
        try:
            wanted = options().parse_args(shlex.split(line))
            asker = find_asker(names, wanted.curator)
            if cell is None:
                return asker.budget
            price = {"epsilon": wanted.epsilon, "error": wanted.error, "relative_error": wanted.relative_error}
            if wanted.preview:
                return asker.preview(cell, **price)
            answer = asker.ask(cell, **price, key=wanted.key)
        except (SfumatoError, ValueError) as problem:
            raise UsageError(str(problem)) from None
        if wanted.to:
            names[wanted.to] = answer
        return answer


def askers(names: Mapping[str, object]) -> dict[str, Asker]:
    """Variables with a curator or a service."""
    return {name: one for name, one in names.items() if isinstance(one, Curator | Remote) and not name.startswith("_")}


def find_asker(names: Mapping[str, object], name: str | None) -> Asker:
    """The one of this name; without a name the only one."""
    found = askers(names)
    if name is None and len(set(map(id, found.values()))) == 1:
        return next(iter(found.values()))
    if name not in found:
        listed = ", ".join(found) or "none: clinic = sf.Curator.open(…), or sf.connect(…)"
        raise UsageError(f"{MAGIC}: name the variable with a curator or a service. There is {listed}")
    return found[name]


def schema_names(asker: Asker) -> Iterator[str]:
    """Tables and columns that may be asked about: public."""
    if isinstance(asker, Curator):
        for name, table in asker.policy.tables.items():
            yield from (name, *table.columns)
        return
    tables: Any = asker.catalogue["tables"]
    for table in tables:
        yield from (str(table["name"]), *(str(column["name"]) for column in table["columns"]))


def completions(text: str, cursor: int, names: Mapping[str, object]) -> list[str]:
    """Completions at this place of a cell."""
    before = text[:cursor]
    if not before.startswith(MAGIC):
        return []
    begun = re.search(r"[\w-]*$", before)
    start = begun.group() if begun else ""
    first, *rest = before.split("\n")
    if not rest:
        offered: list[str] = [*askers(names), *OPTIONS]
    else:
        named = next((word for word in first.split()[1:] if word in askers(names)), None)
        try:
            offered = [*schema_names(find_asker(names, named)), *WORDS]
        except (UsageError, SfumatoError):
            offered = [*WORDS]
    return [one for one in dict.fromkeys(offered) if start and one.lower().startswith(start.lower()) and one != start]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext sfumato.notebook`."""
    shell.register_magics(SfumatoMagics)

    @context_matcher()  # type: ignore[untyped-decorator]
    def sfumato_matcher(context: Any) -> dict[str, object]:
        before = context.full_text.split("\n")[: context.cursor_line]
        cursor = sum(len(line) + 1 for line in before) + context.cursor_position
        found = completions(context.full_text, cursor, shell.user_ns)
        return {"completions": [SimpleCompletion(text=one, type="sql") for one in found], "suppress": bool(found)}

    shell.Completer.custom_matchers.append(sfumato_matcher)
