"""Linkage: join an "anonymised" table with a public register. Sweeney 2002; Narayanan & Shmatikov 2008."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import QueryRefused
from sfumato.ledger import Budget
from sfumato.teach.attacks.fixture import DELTA, House, coins, house, noisy, promised, share
from sfumato.teach.attacks.outcome import Chart, Demonstration, Line, Reached, best_guess

TOWN, PATIENTS, POSTCODES, DAYS = 20_000, 2_000, 40, 80 * 365
BORN = np.datetime64("1940-01-01")
BIRTHDAYS = f"* REPLACE (DATE '{BORN}' + CAST(born AS INTEGER) AS born)"
PATIENT = """
[tables.patients]
unit = "id"
[tables.patients.columns]
id = {low = 0, high = 100000, step = 1}
born = {type = "date"}
postcode = {low = 0, high = 99, step = 1}
sex = {type = "text", keys = ["f", "m"]}
ill = {type = "boolean"}
"""
STORY = f"""
A hospital publishes a table of {PATIENTS:,} patients without names or numbers: date of birth, postcode, sex, and
whether they have a certain illness. A register of all {TOWN:,} people in town has names with the same three facts.
Whoever is alone with them has a name in both tables. A second version of the table has only the year of birth and the
district (ten postcodes): the attacker then goes by the majority of those who fit.
"""
LESSON = """
What identifies a person is not the name, but everything that somebody else may know; coarser facts only make the
attacker's guess a little worse, and another table makes it better again. A curator shows no rows at all ({refusal}),
and the counts that an attacker asks instead are within the bound, whatever other tables he has.
"""


@dataclass(frozen=True)
class Town:
    """Everybody's facts, who is a patient, and who of these is ill."""

    born: NDArray[np.int64]  # days
    postcode: NDArray[np.int64]
    woman: NDArray[np.bool_]
    ill: NDArray[np.bool_]  # of the first PATIENTS people

    @staticmethod
    def made(seed: int) -> "Town":
        rng = np.random.default_rng(seed)
        facts = rng.integers(0, DAYS, TOWN), rng.integers(0, POSTCODES, TOWN), rng.random(TOWN) < 0.5
        return Town(*facts, coins(PATIENTS, rng))

    def facts(self, coarse: bool) -> NDArray[np.int64]:
        """What the register and the table both tell, as one number for each person."""
        born, place = (self.born // 365, self.postcode // 10) if coarse else (self.born, self.postcode)
        return (born * POSTCODES + place) * 2 + self.woman


def linked(town: Town, coarse: bool, targets: int) -> float:
    """The share of targets whose illness the table gives away: by the majority of rows that fit, or a coin."""
    facts = town.facts(coarse)
    rows = facts[:PATIENTS]
    right = 0.0
    for i in range(targets):
        fitting = town.ill[rows == facts[i]].mean()
        right += 0.5 if fitting == 0.5 else float((fitting > 0.5) == town.ill[i])
    return right / targets


def counted(home: House, town: Town, victim: int, epsilon: float) -> float:
    """How many ill patients have the victim's three facts, asked of a curator for its whole budget."""
    curator = home.curator(epsilon)
    sql = (
        f"SELECT COUNT(*) AS n FROM patients WHERE ill AND born = DATE '{BORN + town.born[victim]}' AND"
        f" postcode = {town.postcode[victim]} AND sex = '{'f' if town.woman[victim] else 'm'}'"
    )
    return noisy(curator, sql, share(curator, 1))


def demonstrate(epsilon: float = 1.0, seed: int = 0, targets: int = 80) -> Demonstration:
    """The join, on two versions of the table; and counts through a curator."""
    town = Town.made(seed)
    columns = {
        "id": np.arange(PATIENTS), "born": town.born[:PATIENTS], "postcode": town.postcode[:PATIENTS],
        "sex": np.where(town.woman[:PATIENTS], "f", "m").astype(object), "ill": town.ill,
    }  # fmt: skip
    with house("patients", columns, PATIENT, BIRTHDAYS) as home:
        guesses = [counted(home, town, i, epsilon) > 0.5 for i in range(targets)]
        refusal = refused(home, epsilon)
    rows = (
        Reached("table without names", linked(town, False, targets), targets),
        Reached("year and district", linked(town, True, targets), targets),
        Reached("a curator", float(np.mean(guesses == town.ill[:targets])), targets, promised(epsilon),
                best_guess(Budget(epsilon, DELTA).loss())),
    )  # fmt: skip
    return Demonstration(
        "linkage", "Linkage: names come back from a public register", STORY, "illness right", 0.5, rows,
        LESSON.format(refusal=refusal),
    )  # fmt: skip


def refused(home: House, epsilon: float) -> str:
    """What a curator says to who wants to see rows."""
    try:
        home.curator(epsilon).ask("SELECT * FROM patients", epsilon=epsilon / 2)
    except QueryRefused as problem:
        return f"“{str(problem).splitlines()[0]}”"
    raise AssertionError("a curator has shown rows")


def chart(epsilon: float = 1.0, seed: int = 0) -> Chart:
    """How many people of the town are alone with what is known of them; that has nothing to do with ε."""
    town = Town.made(seed)
    facts = (town.woman.astype(np.int64), town.born // 365, town.postcode // 10, town.postcode, town.born)
    known, alone = np.zeros(TOWN, np.int64), []
    for fact in facts:
        known = np.unique(known, return_inverse=True)[1] * (fact.max() + 1) + fact
        _, where, counts = np.unique(known, return_inverse=True, return_counts=True)
        alone.append(float((counts[where] == 1).mean()))
    return Chart(
        f"A town of {TOWN:,}", "what is known", "people who are alone with it",
        (Line("singled out", tuple(map(float, range(len(facts)))), tuple(alone), "open"),),
        ("linear", "linear"), 0.0, ("sex", "+ year of birth", "+ district", "+ postcode", "+ day of birth"),
    )  # fmt: skip
