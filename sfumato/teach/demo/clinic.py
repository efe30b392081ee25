"""A synthetic clinic, made from a seed: 20,000 patients, 100,000 visits, and its owner's policy."""

from pathlib import Path

import duckdb
import numpy as np

SEED, PATIENTS, VISITS = 1503, 20_000, 100_000

WARDS = ("cardiology", "emergency", "maternity", "oncology", "paediatrics", "surgery")
DIAGNOSES = (
    "hypertension", "influenza", "asthma", "fracture", "diabetes", "migraine", "back pain", "pneumonia", "eczema",
    "anaemia", "appendicitis", "depression", "arrhythmia", "gastritis", "hepatitis", "sepsis", "epilepsy", "gout",
    "psoriasis", "sarcoidosis", "lupus", "scurvy", "malaria", "tetanus", "cholera", "leprosy", "rabies", "plague",
)  # fmt: skip

POLICY = """
version = 1

[budget]                      # for all answers together, whoever asks
epsilon = 2.0
delta = 1e-6

[analysts]
journalist = 0.2              # a share of the budget

[tables.visits]
unit = "patient_id"           # a person is a patient, with any number of visits
[tables.visits.columns]
patient_id = {type = "number"}
age = {low = 0, high = 100, step = 1}
ward = {type = "text", keys = ["cardiology", "emergency", "maternity", "oncology", "paediatrics", "surgery"]}
diagnosis = {type = "text"}   # which there are is private
day = {type = "date"}
stay = {low = 0, high = 30, step = 0.25}
cost = {low = 0, high = 20000, step = 1}

[tables.patients]
unit = "patient_id"
rows = 1                      # each patient is listed once
[tables.patients.columns]
patient_id = {type = "number"}
age = {low = 0, high = 100, step = 1}
smoker = {type = "boolean"}
hiv = {type = "boolean"}

[tables.wards]
public = true
[tables.wards.columns]
ward = {type = "text"}
floor = {type = "number", keys = [1, 2, 3]}
"""


def build(place: Path) -> None:
    """Write the clinic to a new DuckDB file."""
    rng = np.random.default_rng(SEED)
    age = np.clip(rng.gamma(4.0, 11.0, PATIENTS), 0, 99).astype(int)
    smoker, hiv = rng.random(PATIENTS) < 0.21, rng.random(PATIENTS) < 0.02
    often = rng.gamma(5.0, 1.0, PATIENTS)
    who = np.concatenate([np.arange(PATIENTS), rng.choice(PATIENTS, VISITS - PATIENTS, p=often / often.sum())])
    weights = 1 / np.arange(1, len(DIAGNOSES) + 1) ** 2.3
    diagnosis = rng.choice(len(DIAGNOSES), VISITS, p=weights / weights.sum())
    favourite = rng.integers(0, len(WARDS), PATIENTS)
    ward = np.where(rng.random(VISITS) < 0.75, favourite[who], rng.integers(0, len(WARDS), VISITS))
    stay = np.round(np.minimum(rng.exponential(1.5 + ward), 30) * 4) / 4
    cost = np.round(np.minimum(300 + 640 * stay + rng.gamma(2.0, 150.0, VISITS), 20_000))
    day = rng.integers(0, 730, VISITS)
    patients = {"patient_id": np.arange(PATIENTS), "age": age, "smoker": smoker, "hiv": hiv}
    visits = {"patient_id": who, "age": age[who], "w": ward, "d": diagnosis, "n": day, "stay": stay, "cost": cost}
    connection = duckdb.connect(str(place))
    connection.register("made_patients", patients)
    connection.register("made_visits", visits)
    connection.execute("CREATE TABLE patients AS SELECT * FROM made_patients")
    connection.execute(
        "CREATE TABLE visits AS SELECT patient_id, age, ($wards)[w + 1] AS ward, ($diagnoses)[d + 1] AS diagnosis,"
        " DATE '2024-01-01' + CAST(n AS INTEGER) AS day, stay, cost FROM made_visits",
        {"wards": list(WARDS), "diagnoses": list(DIAGNOSES)},
    )
    connection.execute("CREATE TABLE wards (ward TEXT, floor INTEGER)")
    connection.executemany("INSERT INTO wards VALUES (?, ?)", [(name, 1 + i % 3) for i, name in enumerate(WARDS)])
    connection.close()
