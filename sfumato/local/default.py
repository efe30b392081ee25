"""The frequency oracle to use unless something speaks against it: least total error, then fewest bits."""

from sfumato.local.frequency import FrequencyOracle
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.response import Response
from sfumato.local.subset import MOST_VALUES, SubsetSelection, least_total_variance

NEAR = 1.03  # a total error within this of the least is as good


def frequency_oracle(k: int, eps: float) -> FrequencyOracle:
    """Of randomized response, subset selection and projective geometry response the one with the least total error.

    Those within 3 % of the least count as equal, and of these the one with the shortest report is taken: at k = 1000
    and ε = 1 projective geometry response has 0.3 % more error than subset selection, and 11 bits instead of 837.

    >>> frequency_oracle(2, 1.0), frequency_oracle(1000, 1.0).scheme
    (Response(k=2, odds=Odds(truth=2850325, lie=1048576)), 'pgr')
    """
    found: list[FrequencyOracle] = [Response.of(k, eps)]
    if found[0].odds.truth == found[0].odds.lie:
        return found[0]
    least = least_total_variance(k, eps)
    if k > 2 and found[0].total_variance > NEAR * least:
        found.append(ProjectiveResponse.of(k, eps))
        if k <= MOST_VALUES:
            found.append(SubsetSelection.of(k, eps))
    good = [one for one in found if one.total_variance <= NEAR * least]
    return min(good, key=lambda one: one.bits) if good else min(found, key=lambda one: one.total_variance)
