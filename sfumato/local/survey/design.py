"""The design of a survey: question, answers and a randomizer in whole numbers, as canonical JSON with its hash; and
its page for browsers, static files that anything can serve.
"""

import json
import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.local.choose import frequency_oracle
from sfumato.local.finite_field import field_of
from sfumato.local.frequency import FrequencyOracle
from sfumato.local.odds import MOST, Odds
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.response import Response
from sfumato.local.subset import SubsetSelection
from sfumato.local.unary import UnaryEncoding

VERSION = 1
MOST_ANSWERS = 4096
KEYS = {"sfumato_survey", "question", "answers", "randomizer"}
NUMBERS = {
    "rr": {"k", "truth", "lie"},
    "unary": {"k", "truth", "lie"},
    "subset": {"k", "truth", "lie", "size"},
    "pgr": {"k", "truth", "lie", "prime", "degree", "modulus", "length"},
}


@dataclass(frozen=True)
class Design:
    """The public design that all clients and the server of one survey share. Any change changes the hash.

    >>> print(Design("Do you have a pet?", ("no", "yes"), Response.two_coins()).hash[:16])
    bdffbd6dce9b4f59
    """

    question: str
    answers: tuple[str, ...]
    randomizer: FrequencyOracle

    def __post_init__(self) -> None:
        object.__setattr__(self, "question", checks.text("question", self.question, 1000))
        answers = tuple(checks.text("an answer", answer) for answer in self.answers)
        if not 2 <= len(answers) <= MOST_ANSWERS or len(set(answers)) != len(answers):
            raise InvalidParameter(
                f"a survey needs 2 to {MOST_ANSWERS:,} different answers.\n  found:  {len(answers)}, "
                f"{len(set(answers))} of them different\n  do:     list every possible answer once, “other” included"
            )
        if self.randomizer.k != len(answers) or self.randomizer.scheme not in NUMBERS:
            raise InvalidParameter(
                "the randomizer must be one that all clients know, for as many values as there are answers.\n"
                f"  found:  {self.randomizer!r}, {len(answers)} answers\n  do:     use design_survey(…)"
            )
        object.__setattr__(self, "answers", answers)

    @property
    def plain(self) -> dict[str, object]:
        """The design as JSON holds it."""
        return {
            "sfumato_survey": VERSION,
            "question": self.question,
            "answers": list(self.answers),
            "randomizer": self.randomizer.description,
        }

    @cached_property
    def text(self) -> str:
        """Canonical JSON: sorted keys, no spaces, ASCII."""
        return json.dumps(self.plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical text, in hexadecimal digits."""
        return sha256(self.text.encode()).hexdigest()

    def index(self, answer: str) -> int:
        """The number of an answer."""
        if answer not in self.answers:
            raise InvalidParameter(
                "this is none of the survey's answers.\n  found:  another text\n"
                f"  do:     one of: {', '.join(self.answers[:20])}"
            )
        return self.answers.index(answer)


def design_survey(
    question: str,
    answers: tuple[str, ...] | list[str],
    *,
    epsilon: float | None = None,
    accuracy: tuple[float, int] | None = None,
    two_coins: bool = False,
    bits: float | None = None,
) -> Design:
    """A design with at most this ε; or the least ε that gives `accuracy` = (standard error of a share, people).

    `two_coins`: the classical yes or no with ε = ln 3. Exactly one of the three is given. `bits` limits a report.
    """
    if (epsilon is not None) + (accuracy is not None) + bool(two_coins) != 1:
        raise InvalidParameter(
            "give exactly one of epsilon, accuracy and two_coins.\n  do:     e.g. epsilon=1.0, or accuracy=(0.02, 5000)"
        )
    k = len(answers)
    if two_coins:
        if k != 2:
            raise InvalidParameter(
                f"two coins answer yes or no.\n  found:  {k} answers\n  do:     give epsilon instead"
            )
        return Design(question, tuple(answers), Response.two_coins())
    eps = least_epsilon(k, *accuracy, bits) if accuracy is not None else epsilon
    assert eps is not None
    checks.number("epsilon", eps, 1e-3, 20.0, allowed="a number from 0.001 to 20")
    checks.whole("the number of answers", k, 2, MOST_ANSWERS)
    return Design(question, tuple(answers), frequency_oracle(k, eps, bits))


def least_epsilon(k: int, error: float, people: int, bits: float | None = None) -> float:
    """The least ε, to three digits, at which no share has a larger standard error."""
    wanted = checks.number("the standard error", error, 1e-6, 1.0, allowed="a number from 1e-6 to 1")
    n = checks.whole("people", people, 1)
    low, high = 1e-3, 20.0
    if math.sqrt(frequency_oracle(k, high, bits).worst_variance / n) > wanted:
        raise InvalidParameter(
            f"so few people cannot give this accuracy, with any ε.\n  found:  {n:,} people\n  do:     ask more people"
        )
    while high - low > 1e-3 * high:
        middle = math.sqrt(low * high)
        enough = math.sqrt(frequency_oracle(k, middle, bits).worst_variance / n) <= wanted
        low, high = (low, middle) if enough else (middle, high)
    return high


def read_design(source: str | Path) -> Design:
    """The design in a file or text; refused unless it is complete and exactly as we write it."""
    try:
        text = source.read_text(encoding="utf-8-sig") if isinstance(source, Path) else source
        found = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise not_a_design(f"no JSON ({type(problem).__name__})") from problem
    if not isinstance(found, dict) or set(found) != KEYS or found["sfumato_survey"] != VERSION:
        raise not_a_design(f"other keys than {', '.join(sorted(KEYS))}")
    answers = found["answers"]
    if not isinstance(answers, list) or not isinstance(found["randomizer"], dict):
        raise not_a_design("no list of answers, or no randomizer")
    return Design(found["question"], tuple(answers), read_randomizer(found["randomizer"]))


def read_randomizer(data: dict[str, object]) -> FrequencyOracle:
    """The randomizer that a design describes."""
    scheme = data.get("scheme")
    if not isinstance(scheme, str) or scheme not in NUMBERS or set(data) != NUMBERS[scheme] | {"scheme"}:
        raise not_a_design("an unknown randomizer")
    numbers = {name: value for name, value in data.items() if name not in ("scheme", "modulus")}
    if not all(type(value) is int and 0 <= value <= MOST for value in numbers.values()):
        raise not_a_design("weights that are no whole numbers")
    whole = {name: value for name, value in numbers.items() if isinstance(value, int)}
    k, odds = whole["k"], Odds(whole["truth"], whole["lie"])
    if scheme == "rr":
        return Response(k, odds)
    if scheme == "unary":
        return UnaryEncoding(k, odds)
    if scheme == "subset":
        return SubsetSelection(k, odds, whole["size"])
    if whole["degree"] > 8 or whole["prime"] ** whole["degree"] > 256:
        raise not_a_design("a field that is too large")
    found = ProjectiveResponse(k, odds, whole["prime"] ** whole["degree"], whole["length"])
    if data["modulus"] != list(field_of(found.order).modulus):
        raise not_a_design("another polynomial for the same field")
    return found


def not_a_design(found: str) -> InvalidParameter:
    """The refusal of a text that is no design."""
    return InvalidParameter(
        f"this is not the design of a survey.\n  found:  {found}\n"
        "  do:     use the file that `sfumato survey design` wrote"
    )


# ---- the page for browsers ------------------------------------------------------------------------------------------


CLIENT = files("sfumato.local.survey") / "client"
SHIPPED = ("survey.js", "page.js", "style.css")


def client_file(name: str) -> str:
    """The text of a file of the browser client."""
    return (CLIENT / name).read_text(encoding="utf-8")


def write_page(design: Design, folder: Path) -> list[Path]:
    """Write the page of a survey to a folder, which must be new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidParameter(
            "the page needs a folder of its own.\n  found:  a file, or a folder with files in it\n"
            "  do:     name a new folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"index.html": client_file("survey.html"), **{name: client_file(name) for name in SHIPPED}}
    text = json.dumps(design.text).replace("</", "<\\/")  # harmless even if somebody puts it into a page
    texts["design.js"] = f'"use strict";\nconst DESIGN = {text};\nconst HASH = "{design.hash}";\n'
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]
