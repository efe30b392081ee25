"""`sfumato audit`: audit every mechanism of the package, and write a report."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.common import FILE, JSON

if TYPE_CHECKING:
    from sfumato.audit.report import Report


@click.command()
@click.option("--only", multiple=True, metavar="WORD", help="Only claims whose name or part contains WORD.")
@click.option("--quick", is_flag=True, help="An eighth of the samples: finds gross errors only.")
@JSON
@click.option("--out", multiple=True, type=FILE, help="Write the report here (.html, .json, .txt); may be repeated.")
def audit(only: tuple[str, ...], quick: bool, as_json: bool, out: tuple[Path, ...]) -> None:
    """Audit every mechanism, and write a report for a reviewer.

    Each claim is tested in up to three tiers. The black box runs a mechanism on two neighbouring data sets and
    certifies an event that distinguishes them. Replay runs it on both with the same outcomes of all noise, and compares
    the inputs of the noise. The white box compares the distribution that is drawn with the profile that is charged.

    The report gives the theorem and the evidence for each claim, and answers the questions of NIST SP 800-226, each
    with the test that shows it. Exit code 1 if a claim is refuted; each piece of evidence is a false alarm with
    probability at most 1e-4.

    \b
    sfumato audit --out report.html --out report.json
    sfumato audit --only Laplace --only Gaussian --quick
    """
    from datetime import UTC, datetime

    import sfumato
    from sfumato.audit.audit_all import CONFIDENCE, QUICK, audit_exhibit, select_exhibits
    from sfumato.audit.report import Report

    require_writable(out)
    exhibits = select_exhibits(only)
    findings = []
    with click.progressbar(exhibits, label="auditing", file=sys.stderr, item_show_func=exhibit_label) as bar:
        for exhibit in bar:
            findings.append(audit_exhibit(exhibit, QUICK if quick else 1))
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    report = Report(sfumato.__version__, when, CONFIDENCE, tuple(findings))
    for place in out:
        place.write_text(render(report, place), encoding="utf-8")
    click.echo(report.to_json() if as_json else str(report))
    sys.exit(1 if report.refuted else 0)


def exhibit_label(exhibit: object) -> str:
    """The name of the exhibit that is being audited."""
    return "" if exhibit is None else getattr(exhibit, "name", "")[:40]


def require_writable(places: tuple[Path, ...]) -> None:
    """Raises at once, not after minutes of work, if a report cannot be written."""
    from sfumato.errors import InvalidParameter

    for place in places:
        if place.suffix not in (".html", ".json", ".txt") or not place.absolute().parent.is_dir():
            raise InvalidParameter(
                f"the report cannot be written there.\n  found:  {place}\n"
                "  do:     name a file that ends in .html, .json or .txt, in a folder that exists"
            )


def render(report: "Report", place: Path) -> str:
    """The report in the format of the file's suffix."""
    from sfumato.audit.report import page

    return {".html": page(report), ".json": report.to_json(), ".txt": f"{report}\n"}[place.suffix]
