"""`sfumato audit`: try to break everything that sfumato ships, and write down what was found."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.common import FILE

if TYPE_CHECKING:
    from sfumato.audit.report import Report


@click.command()
@click.option("--only", multiple=True, metavar="WORD", help="Only what has this in its name, or is part of it.")
@click.option("--quick", is_flag=True, help="An eighth of the runs: finds gross mistakes only.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--out", multiple=True, type=FILE, help="Write the report here: .html, .json or .txt; may be repeated.")
def audit(only: tuple[str, ...], quick: bool, as_json: bool, out: tuple[Path, ...]) -> None:
    """Audit every mechanism, and report for a reviewer.

    Each claim is attacked by up to three tiers. The black box runs a mechanism on two neighbouring data sets and
    certifies an event that tells them apart. Replay runs it on both with the same outcomes of all noise, and compares
    what went into it. The white box compares the law that is drawn with the profile that is charged.

    The report names for each claim its theorem and the evidence, and answers the questions of NIST SP 800-226, each
    with the test that shows it. Exit code 1 if a claim is refuted: with probability at most 1e-4 for each piece of
    evidence that is a false alarm.

    \b
    sfumato audit --out report.html --out report.json
    sfumato audit --only Laplace --only Gaussian --quick
    """
    from datetime import UTC, datetime

    import sfumato
    from sfumato.audit.audit_all import CONFIDENCE, QUICK, audit_exhibit, select_exhibits
    from sfumato.audit.report import Report

    writable(out)
    exhibits = select_exhibits(only)
    findings = []
    with click.progressbar(exhibits, label="auditing", file=sys.stderr, item_show_func=shown) as bar:
        for exhibit in bar:
            findings.append(audit_exhibit(exhibit, QUICK if quick else 1))
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    report = Report(sfumato.__version__, when, CONFIDENCE, tuple(findings))
    for place in out:
        place.write_text(written(report, place), encoding="utf-8")
    click.echo(report.to_json() if as_json else str(report))
    sys.exit(1 if report.refuted else 0)


def shown(exhibit: object) -> str:
    """What is being audited just now."""
    return "" if exhibit is None else getattr(exhibit, "name", "")[:40]


def writable(places: tuple[Path, ...]) -> None:
    """Say at once, and not after minutes, what cannot be written."""
    from sfumato.errors import InvalidParameter

    for place in places:
        if place.suffix not in (".html", ".json", ".txt") or not place.absolute().parent.is_dir():
            raise InvalidParameter(
                f"the report cannot be written there.\n  found:  {place}\n"
                "  do:     name a file that ends in .html, .json or .txt, in a folder that exists"
            )


def written(report: "Report", place: Path) -> str:
    """The report in the form that the name asks for."""
    from sfumato.audit.html_report import page

    return {".html": page(report), ".json": report.to_json(), ".txt": f"{report}\n"}[place.suffix]
