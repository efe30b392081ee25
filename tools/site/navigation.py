"""Which pages the site has, by reader. A page of docs/ that is nowhere in here is an error."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from tools.site.markdown import title_of

Entry: TypeAlias = "str | dict[str, str] | dict[str, list[Entry]]"

# A page, a heading with pages, or a pattern of pages in alphabetical order.
PATHS: dict[str, Sequence[str]] = {
    "Start": ["index.md", "start.md", "numbers.md"],
    "Analyst": [
        "for/analyst.md", "how-to/chart-from-psql.md", "how-to/read-an-answer.md", "how-to/spend-well.md",
        "curator.md", "ask-from-your-tool.md", "sql.md", "quantiles.md", "why.md",
    ],
    "Data owner": [
        "for/owner.md", "how-to/publish-a-policy.md", "choosing.md", "how-to/renew-a-budget.md",
        "how-to/incidents.md", "bounds.md",
    ],
    "Operator": [
        "for/operator.md", "how-to/start-a-service.md", "how-to/restart-after-a-crash.md", "how-to/back-up-a-ledger.md",
        "how-to/anchors.md", "how-to/upgrade.md", "how-to/capacity.md", "service.md", "ledger.md", "engines.md",
    ],
    "Modeller": ["for/modeller.md", "how-to/train-a-model.md", "learning.md", "selection.md", "sgd.md"],
    "Surveyor": ["for/surveyor.md", "how-to/run-a-survey.md", "local.md"],
    "Researcher": [
        "for/researcher.md", "how-to/draw-a-figure.md", "tutorial.md", "mechanisms.md", "choices.md", "dependent.md",
        "larger-groups.md", "theorems.md", "theorems/*.md",
    ],
    "Lectures": ["lectures/*.md"],
    "Examples": ["examples/*.md"],
    "Reviewer": ["for/reviewer.md", "promise.md", "audit.md", "nist-800-226.md", "limits.md", "attacks.md"],
    "Compare": ["compare.md", "peers.md"],
    "Contributor": [
        "for/contributor.md", "how-to/add-an-aggregate.md", "architecture.md", "project/contributing.md",
        "decisions/*.md",
    ],
    "Reference": ["reference/*.md", "reference/api/*.md"],
    "Project": ["project/*.md"],
}  # fmt: skip


class Unlisted(Exception):
    """Pages that no reader finds, or entries without a page."""


def navigation(pages: Path) -> list[Entry]:
    """The navigation over a folder of pages; a heading whose pages are not written yet is left out."""
    listed: set[str] = set()
    found: list[Entry] = []
    for heading, entries in PATHS.items():
        names = [name for entry in entries for name in expanded(pages, entry) if name not in listed]
        listed.update(names)
        if names:
            found.append({heading: [{title_of(without_header((pages / n).read_text("utf-8"))): n} for n in names]})
    unlisted = {p.relative_to(pages).as_posix() for p in pages.rglob("*.md")} - listed
    if unlisted := {name for name in unlisted if not name.startswith("source/")}:
        raise Unlisted(f"no path of tools/site/navigation.py leads to {', '.join(sorted(unlisted))}")
    return found


def expanded(pages: Path, entry: str) -> Iterator[str]:
    if "*" not in entry:
        if not (pages / entry).exists():
            raise Unlisted(f"tools/site/navigation.py lists {entry}, which is not there")
        yield entry
        return
    places = sorted(pages.glob(entry), key=lambda place: (place.name != "index.md", place.name))
    yield from (place.relative_to(pages).as_posix() for place in places)


def without_header(text: str) -> str:
    """A page without its front matter."""
    return text.split("\n---\n", 1)[1] if text.startswith("---\n") else text
