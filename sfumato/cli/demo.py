"""`sfumato demo`: tours of the curator and of the calculus."""

import sys
from pathlib import Path

import click

from sfumato.cli.common import FILE


@click.command()
@click.option("--calculus", is_flag=True, help="Show the calculus of privacy loss instead.")
@click.option("--figures", type=FILE, help="With --calculus: write its figures to this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
def demo(calculus: bool, figures: Path | None, as_json: bool) -> None:
    """A tour: a made-up clinic, a dozen questions, an attack.

    Builds a clinic of 20,000 patients and 100,000 visits in a temporary folder, asks questions, and then tries to learn
    about one patient from differences of answers. Takes about ten seconds.
    """
    if calculus:
        from sfumato.teach.demo.calculus_tour import main as tour

        words = ["--figures", str(figures)] if figures else ["--no-figures"]
        sys.exit(tour([*words, "--json"] if as_json else words))
    from sfumato.teach.demo.clinic_tour import main as clinic_tour

    sys.exit(clinic_tour(["--json"] if as_json else []))
