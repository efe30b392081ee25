"""`sfumato attack`: why bother, shown on made-up people."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from sfumato.cli.common import FILE
from sfumato.progress import patience


@click.group()
def attack() -> None:
    """Try to break interfaces that look harmless, and a curator.

    Each attack is run on made-up people: against exact or rounded answers, and against sfumato's own curator or
    mechanisms. Beside what it reached stands the most that anybody could reach, whatever he knows or computes: the
    trade-off function of the claimed privacy loss says so.

    The seed decides about people and questions. It does not decide about the noise, which nobody can choose: rows that
    tell of it differ from run to run.

    \b
    sfumato attack differencing
    sfumato attack reconstruction --epsilon 100 --plot found.png
    """


def demonstration(name: str, epsilon: float, words: str, plots: bool = True) -> None:
    """One command: runs sfumato.teach.attacks.name, and its chart."""

    def run(epsilon: float, seed: int, as_json: bool, plot: Path | None = None) -> None:
        module = import_module(f"sfumato.teach.attacks.{name}")
        with patience("attacking"):
            shown = module.demonstrate(epsilon, seed)
        click.echo(shown.to_json() if as_json else str(shown))
        if plot is not None:
            drawn(lambda: module.chart(epsilon, seed), plot)

    command: Callable[..., None] = run
    options = [
        click.option("--json", "as_json", is_flag=True, help="As JSON."),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of people and questions."),
        click.option(
            "--epsilon",
            type=click.FloatRange(0.01, 1000),
            default=epsilon,
            show_default=True,
            help="ε that is claimed.",
        ),
    ]
    if plots:
        options.insert(0, click.option("--plot", type=FILE, help="Draw a chart into this file (up to two minutes)."))
    for option in options:
        command = option(command)
    attack.command(name, help=words)(command)


def drawn(chart: Callable[[], object], place: Path) -> None:
    """The chart of an attack as a PNG file."""
    from sfumato.errors import SfumatoError

    try:
        from sfumato import plots
    except ImportError as problem:
        raise SfumatoError(str(problem)) from problem
    with patience("drawing"):
        plots.save_png(plots.attack_chart(chart()), place)  # type: ignore[arg-type]
    click.echo(f"drawn: {place}", err=True)


demonstration("differencing", 1.0, """Two large counts that differ by one person.

    The oldest attack on statistical databases. The difference of two harmless answers is one person's secret.
""")  # fmt: skip
demonstration("averaging", 0.5, """The same question, until the noise cancels.

    What happens if noise is fresh each time, and repeats are not charged; and what a ledger does about it.
""")  # fmt: skip
demonstration("reconstruction", 1.0, """Everybody's secret from random counts, by least squares.

    Dinur & Nissim 2003: too many answers that are too exact give away the whole table. The reason why statistical
    offices turned to differential privacy.
""")  # fmt: skip
demonstration("membership", 1.0, """Who was in the study? From published frequencies alone.

    Homer et al. 2008: each frequency leans a little towards those who took part, and there are thousands of them.
""")  # fmt: skip
demonstration("linkage", 1.0, """Names come back to an anonymised table, from a register.

    Sweeney 2002: date of birth, postcode and sex are as good as a name.
""")  # fmt: skip
demonstration("refusals", 1.0, """Refusals that depend on data are answers.

    Kenthapadi, Mishra & Nissim 2005: an interface that refuses what would tell too much, tells by refusing.
""", plots=False)  # fmt: skip
