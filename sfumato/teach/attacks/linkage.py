"""Linkage: join an "anonymised" table with a public register. Sweeney 2002; Narayanan & Shmatikov 2008."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import QueryRefused
from sfumato.ledger import Budget
from sfumato.teach.attacks.fixture import (
    DELTA,
    AttackedDatabase,
    ask_count,
    attacked_database,
    epsilon_each,
    format_claim,
    random_secrets,
)
from sfumato.teach.attacks.outcome import AttackResult, Chart, Demonstration, Line, best_guess

TOWN, PATIENTS, POSTCODES, DAYS = 20_000, 2_000, 40, 80 * 365
BORN = np.datetime64("1940-01-01")
BIRTHDAYS = f"* REPLACE (DATE '{BORN}' + CAST(born AS INTEGER) AS born)"
PATIENT = """
[tables.patients]
unit = "id"
rows = 1
[tables.patients.columns]
id = {low = 0, high = 100000, step = 1}
born = {type = "date"}
postcode = {low = 0, high = 99, step = 1}
sex = {type = "text", keys = ["f", "m"]}
ill = {type = "boolean"}
"""
STORY = f"""
A hospital publishes a table of {PATIENTS:,} patients without names or numbers: date of birth, postcode, sex, and
whether they have a certain illness. A register of all {TOWN:,} people in town has names with the same three attributes.
Patients whose combination is unique get their names back. A second version of the table has only the year of birth and
the district (ten postcodes): the attacker then guesses by the majority of the matching rows.
"""
LESSON = """
A person is identified not only by a name, but by everything that somebody else may know. Coarser attributes make the
attacker's guesses a little worse, and another table makes them better again. A curator shows no rows at all
({refusal}), and its counts stay within the bound, whatever other tables the attacker has.
"""


@dataclass(frozen=True)
class Town:
    """The attributes of all people; the first PATIENTS of them are patients, some of them ill."""

    born: NDArray[np.int64]  # days
    postcode: NDArray[np.int64]
    woman: NDArray[np.bool_]
    ill: NDArray[np.bool_]  # of the first PATIENTS people

    @staticmethod
    def random(seed: int) -> "Town":
        rng = np.random.default_rng(seed)
        facts = rng.integers(0, DAYS, TOWN), rng.integers(0, POSTCODES, TOWN), rng.random(TOWN) < 0.5
        return Town(*facts, random_secrets(PATIENTS, rng))

    def facts(self, coarse: bool) -> NDArray[np.int64]:
        """The attributes that register and table share, as one number for each person."""
        born, place = (self.born // 365, self.postcode // 10) if coarse else (self.born, self.postcode)
        return (born * POSTCODES + place) * 2 + self.woman


def linkage_accuracy(town: Town, coarse: bool, targets: int) -> float:
    """The share of targets guessed right by the majority of the matching rows; a tie counts as one half."""
    facts = town.facts(coarse)
    rows = facts[:PATIENTS]
    right = 0.0
    for i in range(targets):
        share_ill = town.ill[rows == facts[i]].mean()
        right += 0.5 if share_ill == 0.5 else float((share_ill > 0.5) == town.ill[i])
    return right / targets


def count_matching(database: AttackedDatabase, town: Town, victim: int, epsilon: float) -> float:
    """A curator's count of ill patients with the victim's attributes, for its whole budget."""
    curator = database.curator(epsilon)
    sql = (
        f"SELECT COUNT(*) AS n FROM patients WHERE ill AND born = DATE '{BORN + town.born[victim]}' AND"
        f" postcode = {town.postcode[victim]} AND sex = '{'f' if town.woman[victim] else 'm'}'"
    )
    return ask_count(curator, sql, epsilon_each(curator, 1))


def demonstrate(epsilon: float = 1.0, seed: int = 0, targets: int = 80) -> Demonstration:
    """The join with two versions of the table, and counts through a curator."""
    town = Town.random(seed)
    columns = {
        "id": np.arange(PATIENTS), "born": town.born[:PATIENTS], "postcode": town.postcode[:PATIENTS],
        "sex": np.where(town.woman[:PATIENTS], "f", "m").astype(object), "ill": town.ill,
    }  # fmt: skip
    with attacked_database("patients", columns, PATIENT, BIRTHDAYS) as database:
        guesses = [count_matching(database, town, i, epsilon) > 0.5 for i in range(targets)]
        refusal = refusal_of_rows(database, epsilon)
    rows = (
        AttackResult("table without names", linkage_accuracy(town, False, targets), targets),
        AttackResult("year and district", linkage_accuracy(town, True, targets), targets),
        AttackResult("a curator", float(np.mean(guesses == town.ill[:targets])), targets, format_claim(epsilon),
                best_guess(Budget(epsilon, DELTA).loss())),
    )  # fmt: skip
    return Demonstration(
        "linkage", "Linkage: names come back from a public register", STORY, "illness right", 0.5, rows,
        LESSON.format(refusal=refusal),
    )  # fmt: skip


def refusal_of_rows(database: AttackedDatabase, epsilon: float) -> str:
    """The curator's refusal of a question for rows."""
    try:
        database.curator(epsilon).ask("SELECT * FROM patients", epsilon=epsilon / 2)
    except QueryRefused as problem:
        return f"“{str(problem).splitlines()[0]}”"
    raise AssertionError("a curator has shown rows")


def chart(epsilon: float = 1.0, seed: int = 0) -> Chart:
    """The share of people whose known attributes are unique in town; it does not depend on ε."""
    town = Town.random(seed)
    facts = (town.woman.astype(np.int64), town.born // 365, town.postcode // 10, town.postcode, town.born)
    known, unique = np.zeros(TOWN, np.int64), []
    for fact in facts:
        known = np.unique(known, return_inverse=True)[1] * (fact.max() + 1) + fact
        _, where, counts = np.unique(known, return_inverse=True, return_counts=True)
        unique.append(float((counts[where] == 1).mean()))
    return Chart(
        f"A town of {TOWN:,}", "known attributes", "people who are unique",
        (Line("singled out", tuple(map(float, range(len(facts)))), tuple(unique), "open"),),
        ("linear", "linear"), 0.0, ("sex", "+ year of birth", "+ district", "+ postcode", "+ day of birth"),
    )  # fmt: skip
