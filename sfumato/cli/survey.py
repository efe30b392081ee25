"""`sfumato survey`: design a survey with local privacy, respond to it, shuffle reports, estimate, simulate."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from sfumato.cli.common import FILE, JSON
from sfumato.wording import plural

THERE = click.Path(exists=True, dir_okay=False, path_type=Path)
DESIGN = click.argument("design", type=THERE)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Show an error of the operating system in one line."""
    try:
        yield
    except OSError as problem:
        raise click.ClickException(f"cannot write {place}: {problem.strerror or problem}") from problem


@click.group()
def survey() -> None:
    """Surveys in which each person's answer is randomised before it is sent.

    \b
    sfumato survey design pets.json "Do you have a pet?" -a no -a yes --two-coins
    sfumato survey respond pets.json yes --store my-response.json
    sfumato survey estimate pets.json reports.jsonl
    sfumato survey simulate pets.json --people 1000 --share 0.7 --share 0.3
    """


@survey.command()
@click.argument("design", type=FILE)
@click.argument("question")
@click.option("-a", "--answer", "answers", multiple=True, required=True, help="A possible answer; repeat for each.")
@click.option("--epsilon", type=float, help="ε of one response.")
@click.option("--error", type=float, help="Instead of ε: the standard error that a share may have, with --people.")
@click.option("--people", type=int, help="How many people are expected.")
@click.option("--two-coins", is_flag=True, help="Yes or no by two coins: ε = ln 3.")
@click.option("--bits", type=float, help="The most bits that a report may have.")
def design(
    design: Path, question: str, answers: tuple[str, ...], epsilon: float | None, error: float | None,
    people: int | None, two_coins: bool, bits: float | None,
) -> None:  # fmt: skip
    """Write the DESIGN of a survey: whole numbers that every client can draw with, and a hash that names it."""
    from sfumato.local.survey import design_survey

    if (error is None) != (people is None):
        raise click.UsageError("--error and --people belong together: the error of a share among so many people")
    if (epsilon is not None) + (error is not None) + two_coins != 1:
        raise click.UsageError("give one of --epsilon, --error with --people, and --two-coins")
    accuracy = (error, people) if error is not None and people is not None else None
    made = design_survey(question, answers, epsilon=epsilon, accuracy=accuracy, two_coins=two_coins, bits=bits)
    if design.exists():
        raise click.ClickException(f"{design} is there already; a design is never changed, as its hash names it")
    with writing(design):
        design.write_text(made.text + "\n", encoding="utf-8")
    click.echo(
        f"written: {design}\nhash: {made.hash}\nε = {made.randomizer.epsilon:.6g}, {made.randomizer!r}", err=True
    )


@survey.command()
@DESIGN
@click.argument("answer")
@click.option("--store", type=FILE, required=True, help="Keep the response here, so that a retry sends the same.")
def respond(design: Path, answer: str, store: Path) -> None:
    """Randomise an ANSWER and print the report. A second call prints the stored report again."""
    from sfumato.local.survey import read_design, respond_once

    survey = read_design(design)
    with writing(store):
        line = respond_once(survey, answer, store)
    click.echo(line)


@survey.command()
@DESIGN
@click.argument("reports", type=THERE)
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option("--hostile", type=int, help="Show what so many hostile reports could do [default: 1 %].")
@JSON
def estimate(design: Path, reports: Path, confidence: float, hostile: int | None, as_json: bool) -> None:
    """Estimate the shares of all answers from REPORTS, one JSON object per line."""
    from sfumato.local.survey import estimate_survey, read_design

    with reports.open("rb") as lines:
        found = estimate_survey(read_design(design), lines, confidence=confidence, hostile=hostile)
    click.echo(found.to_json() if as_json else str(found))


@survey.command()
@click.argument("reports", type=THERE)
@click.argument("shuffled", type=FILE)
def shuffle(reports: Path, shuffled: Path) -> None:
    """Write REPORTS without identifiers and in sorted order to SHUFFLED."""
    from sfumato.local.shuffle import shuffle_file

    with writing(shuffled):
        count = shuffle_file(reports, shuffled)
    click.echo(plural(count, "report"), err=True)


@survey.command()
@DESIGN
@click.option("--people", type=int, default=1000, show_default=True)
@click.option("--share", "shares", type=float, multiple=True, help="The true share of each answer, in order.")
@JSON
def simulate(design: Path, people: int, shares: tuple[float, ...], as_json: bool) -> None:
    """Show what so many made-up people would give."""
    from sfumato.local.survey import read_design
    from sfumato.local.survey import simulate as run

    found = run(read_design(design), people, shares or None)
    click.echo(found.to_json() if as_json else str(found))


@survey.command()
@DESIGN
@click.argument("folder", type=FILE)
def page(design: Path, folder: Path) -> None:
    """Write a page for browsers to FOLDER: static files that randomise on the respondent's own machine."""
    from sfumato.local.survey import read_design
    from sfumato.local.survey.design import write_page

    survey = read_design(design)
    with writing(folder):
        places = write_page(survey, folder)
    for place in places:
        click.echo(f"written: {place}", err=True)
