"""Which randomizer to use: the default, a table of what each costs and gives, and when other ways are better."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import fill

from sfumato import checks
from sfumato.errors import InvalidParameter, OutOfReach
from sfumato.local.frequency import FrequencyOracle
from sfumato.local.hadamard import MOST_EPS as MOST_HADAMARD
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hashing import MOST_VALUES as MOST_HASHED
from sfumato.local.hashing import LocalHashing
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.response import Response
from sfumato.local.shuffle import Shuffled
from sfumato.local.subset import MOST_VALUES as MOST_SUBSET
from sfumato.local.subset import SubsetSelection
from sfumato.local.unary import MOST_VALUES as MOST_UNARY
from sfumato.local.unary import UnaryEncoding
from sfumato.wording import short_number

DEFAULTS = ("rr", "subset", "pgr")
ROUNDS = 10
MOST_LOCAL = 12.0  # beyond it a report hides nothing that matters
NAMES = {
    "rr": "randomized response",
    "subset": "subset selection",
    "pgr": "projective geometry",
    "unary": "unary encoding",
    "hashing": "local hashing",
    "hadamard": "Hadamard",
}
# Seconds for a million reports and a thousand values, measured once; they scale with the work.
DECODE: dict[str, Callable[[FrequencyOracle, int], float]] = {
    "rr": lambda one, n: 2e-9 * n + 1e-9 * one.k,
    "subset": lambda one, n: 1.5e-10 * n * one.k,
    "pgr": lambda one, n: 2e-9 * n + 2e-8 * one.report_bound * 16,
    "unary": lambda one, n: 1.5e-10 * n * one.k,
    "hashing": lambda one, n: 6e-10 * n * one.k,
    "hadamard": lambda one, n: 2e-9 * n + 1e-8 * one.report_bound,
}


@dataclass(frozen=True)
class Choice:
    """One randomizer with what it gives for n people, as errors of shares."""

    oracle: FrequencyOracle
    people: int
    shuffled_epsilon: float | None

    @property
    def total_error(self) -> float:
        """√Σ_v Var f̂_v, the same for every population."""
        return math.sqrt(self.oracle.total_variance / self.people)

    @property
    def worst_error(self) -> float:
        """The largest standard error of one share."""
        return math.sqrt(self.oracle.worst_variance / self.people)

    @property
    def decode_seconds(self) -> float:
        """About how long the server takes."""
        return DECODE[self.oracle.scheme](self.oracle, self.people)

    @property
    def rounds_epsilon(self) -> float:
        """ε at δ = 1e-6 of ten rounds with fresh noise."""
        return (ROUNDS * self.oracle.loss()).epsilon(1e-6).upper

    def cells(self, hostile: int) -> tuple[str, ...]:
        """The line of a table."""
        one = self.oracle
        moved = hostile / self.people * one.gain
        return (
            NAMES[one.scheme],
            f"{one.epsilon:.3g}",
            short_number(self.total_error),
            short_number(self.worst_error),
            short_number(one.bits),
            f"{self.decode_seconds:.2g} s",
            f"{moved:.2g} × {one.hit:,}",
            f"{self.rounds_epsilon:.3g}",
            "" if self.shuffled_epsilon is None else f"{self.shuffled_epsilon:.3g}",
        )


HEAD = (
    "randomizer",
    "ε",
    "total error",
    "worst item",
    "bits",
    "decode",
    "hostile × items",
    "ε, 10 rounds",
    "shuffled ε",
)


@dataclass(frozen=True)
class Choices:
    """All randomizers that fit, the best first, and what to consider instead of local privacy."""

    rows: tuple[Choice, ...]
    default: FrequencyOracle
    people: int
    delta: float
    hostile: int
    bits: float | None = None

    @property
    def limit(self) -> str:
        """How the size of reports was limited, in words."""
        return "" if self.bits is None else f" within {short_number(self.bits)} bits"

    @property
    def best(self) -> FrequencyOracle:
        """The randomizer to use."""
        return self.default

    @property
    def central_gain(self) -> float:
        """How many times less the error of a central histogram is at the same ε: √(n/2) for yes or no, exactly.

        Discrete Laplace noise on each count, with ε/2 each, as replacing a person changes two of them; for k = 2 one
        count with ε is enough.
        """
        eps, k = self.default.epsilon, self.default.k
        shrink = math.exp(-eps) if k == 2 else math.exp(-eps / 2)
        noise = 2 * shrink / (1 - shrink) ** 2
        central = math.sqrt((2 if k == 2 else k) * noise) / self.people
        return math.sqrt(self.default.total_variance / self.people) / central

    def __str__(self) -> str:
        lines = [HEAD, *(row.cells(self.hostile) for row in self.rows)]
        wide = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
        text = "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, wide, strict=True)).rstrip() for line in lines
        )
        notes = [
            f"best: {NAMES[self.default.scheme]}, {short_number(self.default.bits)} bits: the least total error of "
            "randomized response, subset selection and projective geometry" + self.limit,
            f"errors are of shares among {self.people:,} people",
            f"hostile: what {self.hostile:,} of them could move, for each item × how many items at once",
            f"a trusted curator would have {self.central_gain:,.0f} times less error at the same ε. Where two servers "
            "exist that do not collude, secure aggregation (Prio) gives the same without trust in either of them, and "
            "one hostile person then moves a count by 1 at most.",
        ]
        if self.rows[0].shuffled_epsilon is not None:
            shuffled = Shuffled(self.default, self.people)
            notes.append(f"shuffled ε at δ = {self.delta:g}, if " + "; if ".join(shuffled.preconditions))
        return "\n".join([text, "", *(fill(note, 100, subsequent_indent="  ") for note in notes)])


def choose(
    domain: int,
    people: int,
    epsilon: float | None = None,
    *,
    central: tuple[float, float] | None = None,
    bits: float | None = None,
    shuffled: bool = False,
    hostile: int | None = None,
) -> Choices:
    """Compare all frequency oracles for `domain` values and so many people.

    Give the local `epsilon`, or `central` = (ε, δ) of the shuffled reports: then each randomizer gets the largest local
    ε whose shuffled loss meets it. `bits` limits the report. `hostile` people (1 % unless stated) are shown with what
    they could do. Nothing is simulated.
    """
    k, n = checks.whole("domain", domain, 2, 10**7), checks.whole("people", people, 1, 10**9)
    bad = checks.whole("hostile", max(1, n // 100) if hostile is None else hostile, 0, n)
    if (epsilon is None) == (central is None):
        raise InvalidParameter(
            "give either epsilon or central=(ε, δ).\n  found:  both, or none\n  do:     give one of them"
        )
    makers = candidates(k)
    if central is not None:
        target, delta = checks.positive("ε", central[0]), checks.probability("δ", central[1])
        found = [(make, local_epsilon(make, most, n, target, delta)) for make, most in makers]
        oracles = [make(eps) for make, eps in found if eps]
    else:
        assert epsilon is not None
        delta = 1e-6
        checks.number("epsilon", epsilon, 1e-6, MOST_LOCAL, allowed=f"a number from 1e-6 to {MOST_LOCAL:g}")
        oracles = [make(epsilon) for make, most in makers if epsilon <= most]
    if not oracles:
        raise OutOfReach("no local ε meets the central target.\n  do:     ask more people, or allow a larger ε")
    fitting = within(oracles, bits)
    rows = [
        Choice(one, n, Shuffled(one, n).epsilon(delta).upper if shuffled or central is not None else None)
        for one in fitting
    ]
    rows.sort(key=lambda row: row.oracle.total_variance)
    default = next((row for row in rows if row.oracle.scheme in DEFAULTS), rows[0]).oracle
    return Choices(tuple(rows), default, n, delta, bad, bits)


def frequency_oracle(k: int, eps: float, bits: float | None = None) -> FrequencyOracle:
    """Of randomized response, subset selection and projective geometry response the one with the least total error.

    `bits` limits the size of a report: at k = 1000 and ε = 1 projective geometry response has 0.3 % more error than
    subset selection, and 11 bits instead of 835. Subset selection is for at most 4,096 values.

    >>> frequency_oracle(2, 1.0), frequency_oracle(1000, 1.0).scheme, frequency_oracle(1000, 1.0, bits=64).scheme
    (Response(k=2, odds=Odds(truth=2850325, lie=1048576)), 'subset', 'pgr')
    """
    response = Response.of(k, eps)
    found: list[FrequencyOracle] = [response]
    if k == 2 or response.odds.truth == response.odds.lie:
        return within(found, bits)[0]
    if k <= MOST_SUBSET:
        found.append(SubsetSelection.of(k, eps))
        if found[1].bits == response.bits:  # sets of one value
            return within([response], bits)[0]
    if k > MOST_SUBSET or (bits is not None and found[-1].bits > bits):
        found.append(ProjectiveResponse.of(k, eps))
    return min(within(found, bits), key=lambda one: one.total_variance)


def within(oracles: list[FrequencyOracle], bits: float | None) -> list[FrequencyOracle]:
    """The randomizers whose reports fit into so many bits; refused if none does."""
    found = [one for one in oracles if bits is None or one.bits <= bits]
    if not found:
        least = min(one.bits for one in oracles)
        raise OutOfReach(
            f"no randomizer for {oracles[0].k:,} values has reports of at most {bits:g} bits.\n"
            f"  found:  {least:g} bits at least\n  do:     allow more bits"
        )
    return found


Maker = Callable[[float], FrequencyOracle]


def candidates(k: int) -> list[tuple[Maker, float]]:
    """A function ε ↦ randomizer for every kind that can hold k values, and the largest ε that it takes."""
    found: list[tuple[Maker, float]] = [
        (lambda eps: Response.of(k, eps), MOST_LOCAL),
        (lambda eps: HadamardResponse.of(k, eps), MOST_HADAMARD),
    ]
    if k > 2:
        found.append((lambda eps: ProjectiveResponse.of(k, eps), MOST_LOCAL))
        if k <= MOST_SUBSET:
            found.append((lambda eps: SubsetSelection.of(k, eps), MOST_LOCAL))
        if k <= MOST_UNARY:
            found.append((lambda eps: UnaryEncoding.of(k, eps), MOST_LOCAL))
        if k <= MOST_HASHED:
            found.append((lambda eps: LocalHashing.of(k, eps), MOST_LOCAL))
    return found


def local_epsilon(make: Maker, most: float, people: int, target: float, delta: float) -> float | None:
    """A local ε whose shuffled ε is at most the target and within 1 % of it, or the largest allowed; None if too large.

    The Gaussian limit, corrected by how far it was off, leads there in a few steps.
    """

    def shuffled_epsilon(eps: float) -> float:
        return Shuffled(make(eps), people).epsilon(delta).upper

    factor, found = 1.0, None
    for _ in range(8):
        low, high = 1e-3, most
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if Shuffled(make(middle), people).guess(delta) <= target * factor else (low, middle)
            )
        eps = max(low, min(target, most))  # shuffling never costs
        reached = shuffled_epsilon(eps)
        if reached <= target:
            found = max(eps, found or 0.0)
            if reached >= 0.99 * target or eps >= 0.999 * most:
                break
        factor *= 0.995 * target / reached
    return found
