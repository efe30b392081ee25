"""How the tests run: the same examples every time, no clock, no window."""

import os

from hypothesis import HealthCheck, settings

# Before anyone imports matplotlib: pictures are drawn into memory.
os.environ["MPLBACKEND"] = "Agg"

# The same examples on every machine, so that a red test is a change in the code and not in the dice.
# too_slow and the deadline measure the machine, not the code.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
# Fresh dice and many of them, for a night: pytest -n auto --hypothesis-profile explore
settings.register_profile("explore", settings.get_profile("repeatable"), derandomize=False, max_examples=3000)
settings.load_profile("repeatable")
