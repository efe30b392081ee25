"""`sfumato attack`: classical attacks, demonstrated on made-up people."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from sfumato.cli.common import FILE, JSON
from sfumato.progress import show_progress


@click.group()
def attack() -> None:
    """Attack exact answers, and the same answers under privacy.

    Each attack runs on made-up people: against exact or rounded answers, and against sfumato's own curator or
    mechanisms. Its success is shown beside the upper bound for any attacker, which follows from the trade-off function
    of the claimed privacy loss.

    The seed determines people and questions, but not the noise, which nobody can choose: rows that depend on noise
    differ from run to run.

    \b
    sfumato attack differencing
    sfumato attack reconstruction --epsilon 100 --plot found.png
    """


def add_command(name: str, epsilon: float, words: str, plots: bool = True) -> None:
    """Add the command that runs sfumato.teach.attacks.NAME, and draws its chart."""

    def run(epsilon: float, seed: int, as_json: bool, plot: Path | None = None) -> None:
        module = import_module(f"sfumato.teach.attacks.{name}")
        with show_progress("attacking"):
            outcome = module.demonstrate(epsilon, seed)
        click.echo(outcome.to_json() if as_json else str(outcome))
        if plot is not None:
            draw_chart(lambda: module.chart(epsilon, seed), plot)

    command: Callable[..., None] = run
    options = [
        JSON,
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For people and questions."),
        click.option(
            "--epsilon",
            type=click.FloatRange(0.01, 1000),
            default=epsilon,
            show_default=True,
            help="The claimed ε.",
        ),
    ]
    if plots:
        options.insert(0, click.option("--plot", type=FILE, help="Draw a chart into this file (up to two minutes)."))
    for option in options:
        command = option(command)
    attack.command(name, help=words)(command)


def draw_chart(chart: Callable[[], object], place: Path) -> None:
    """Draw the chart of an attack into a PNG file."""
    from sfumato.errors import SfumatoError

    try:
        from sfumato import plots
    except ImportError as problem:
        raise SfumatoError(str(problem)) from problem
    with show_progress("drawing"):
        plots.save_png(plots.attack_chart(chart()), place)  # type: ignore[arg-type]
    click.echo(f"drawn: {place}", err=True)


add_command("differencing", 1.0, """Two large counts that differ by one person.

    The oldest attack on statistical databases: the difference of two harmless answers is one person's secret.
""")  # fmt: skip
add_command("averaging", 0.5, """The same question, until the noise cancels.

    Shows fresh noise for every repeat without a charge, and how a ledger prevents it.
""")  # fmt: skip
add_command("reconstruction", 1.0, """Everybody's secret from random counts, by least squares.

    Dinur & Nissim 2003: too many answers that are too accurate reveal the whole table. This attack is why statistical
    offices turned to differential privacy.
""")  # fmt: skip
add_command("membership", 1.0, """Who was in the study? From published frequencies alone.

    Homer et al. 2008: each of thousands of frequencies is slightly nearer to those who took part.
""")  # fmt: skip
add_command("linkage", 1.0, """Re-identify an anonymised table with a public register.

    Sweeney 2002: date of birth, postcode and sex identify a person as well as a name.
""")  # fmt: skip
add_command("refusals", 1.0, """Refusals that depend on data are answers.

    Kenthapadi, Mishra & Nissim 2005: an interface that refuses dangerous questions reveals secrets by refusing.
""", plots=False)  # fmt: skip
