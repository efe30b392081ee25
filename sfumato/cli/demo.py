"""`sfumato demo`."""

import sys
from pathlib import Path

import click

from sfumato.cli.common import FILE


@click.command()
@click.option("--calculus", is_flag=True, help="The calculus of privacy loss instead of the curator.")
@click.option("--figures", type=FILE, help="With --calculus: write its figures here.")
@click.option("--json", "as_json", is_flag=True, help="Tables as JSON.")
def demo(calculus: bool, figures: Path | None, as_json: bool) -> None:
    """See the curator at work: a made-up clinic, a dozen questions, an attack.

    Builds a clinic of 20,000 patients and 100,000 visits in a temporary folder, asks, and then tries to find out about
    one patient by taking differences. Takes about ten seconds.
    """
    if calculus:
        from sfumato.teach.demo.calculus_tour import main as tour

        words = ["--figures", str(figures)] if figures else ["--no-figures"]
        sys.exit(tour([*words, "--json"] if as_json else words))
    from sfumato.teach.demo.clinic_tour import main as clinic_tour

    sys.exit(clinic_tour(["--json"] if as_json else []))
