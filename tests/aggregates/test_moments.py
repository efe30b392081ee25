"""SKEWNESS and KURTOSIS: exact sums against the moments that plain SQL computes."""

import pytest

from sfumato.aggregates.price import Mu
from sfumato.aggregates.registry import parse_question
from sfumato.curator.offer import offer_for_epsilon
from sfumato.curator.release import statements
from tests.aggregates.test_covariance import LOOSE, clinic
from tests.curator.questions import by_group, exactly

PLAIN = """
    WITH about AS (SELECT AVG(cost) AS m, STDDEV_POP(cost) AS s FROM visits)
    SELECT AVG(((cost - m) / s) ** 3), AVG(((cost - m) / s) ** 4) - 3 FROM visits, about
"""


def test_exact_sums_give_the_moments_of_all_values():
    """To the resolution of the lattice; without the corrections for small samples that DuckDB's functions have."""
    connection = clinic()
    question = parse_question("SELECT SKEWNESS(cost), KURTOSIS(cost) FROM visits", LOOSE)
    offer = offer_for_epsilon(question, 1.0, 1e-9, Mu)
    tables = [connection.execute(text).fetchall() for text in statements(offer, 7, "duckdb")]
    (row,) = by_group(question.plan, tables).values()
    assert exactly(question, row) == pytest.approx(connection.execute(PLAIN).fetchone(), abs=1e-3)
