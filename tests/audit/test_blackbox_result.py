"""Results of audits as people read them."""

from fractions import Fraction

import pytest

from sfumato.audit.blackbox_result import format_down


@pytest.mark.parametrize(
    ("value", "shown"),
    [(4.36879, "4.3687"), (0.95, "0.9499"), (12.34567, "12.3456"), (0.0, "0"), (1e-7, "0"), (3.0, "3")],
)
def test_a_certified_lower_bound_is_shown_rounded_down(value, shown):
    """Four significant digits showed 4.3687 as 4.369. 0.95 is stored as a double just below it."""
    assert format_down(value) == shown
    assert Fraction(format_down(value)) <= Fraction(value)
