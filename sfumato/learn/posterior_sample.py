"""Linear regression by one sample from a posterior whose width and ridge adapt to the data."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from scipy.special import ndtri

from sfumato.errors import InvalidParameter
from sfumato.learn.base import Table
from sfumato.learn.bounded_rows import BITS, COARSE, UNIT, BoundedRows, add_up
from sfumato.learn.linear_regression import usual_norm
from sfumato.learn.objective_perturbation import FINE, add_noise
from sfumato.learn.row_wise import row_lengths, row_products
from sfumato.learn.spending import Spending, gaussian, most_mu
from sfumato.learn.supervised import Regressor
from sfumato.learn.tables import Bounds, Data, Vector
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.kinds.coins import ApproxLoss
from sfumato.noise.balls import ball, precision
from sfumato.noise.draw_table import Integers
from sfumato.sensitivity import Relation

MOMENTS, EIGENVALUE, OUTPUT = 0.2, 0.15, 0.02  # shares of ε; the sample has the rest
PART = 0.1  # share of δ for each of five: three normal noises, and two bounds that may fail; the sample has the rest
EXACT = 1.01  # of the sensitivity of an eigenvalue: float64 errs by less than 0.005 for up to 10¹⁰ rows
LEAST_STEPS = 100  # of the lattice of noise in what a row may move a value
DRAW_BITS = 24  # of the lattice on which standard normal numbers are drawn
PRECISION = 400  # bits
CAREFUL = 8.0  # noise of predictions above an eighth of the target's variance: the mean is predicted
USUAL = 0.05  # variance of a column, and of a target, in [−1, 1]
LEAST = 2.0**-10  # of the ridge


@dataclass(frozen=True)
class Prices:
    """How (ε, δ) is divided. All of it is public."""

    epsilon: float
    delta: float

    def mu(self, share: float) -> float:
        return most_mu(share * self.epsilon, PART * self.delta)

    @property
    def tail(self) -> float:
        """So many deviations are exceeded, one way, with a share of δ at most."""
        return float(-ndtri(PART * self.delta * (1 - 1e-9)))

    @property
    def sample_epsilon(self) -> float:
        return (1 - MOMENTS - EIGENVALUE - OUTPUT) * self.epsilon * (1 - 1e-9)

    @property
    def mean_mu(self) -> float:
        """What the eigenvalue, the sample and its noise would have cost, for one noisy sum."""
        return most_mu((1 - MOMENTS) * self.epsilon * (1 - 1e-9), 3 * PART * self.delta)

    @property
    def both_tails(self) -> float:
        """So many deviations are exceeded, both ways, with what the sample has of δ at most."""
        return float(-ndtri((1 - 5 * PART) * self.delta / 2 * (1 - 1e-9)))

    def least_ridge(self, least: float) -> float:
        """What a least eigenvalue lacks to make half of the sample's ε suffice for how a row changes the width of the
        posterior; a multiple of 2⁻¹⁰."""
        goal = self.both_tails**2 / self.sample_epsilon
        return max(LEAST, math.ceil((goal - least) / LEAST) * LEAST)

    def ridge(self, least: float, usual: float, n: float, coordinates: int, most: float, variance: float) -> float:
        """That, doubled as often as lessens what is expected of noise and bias together: from released numbers only.
        `usual` is a usual eigenvalue for so many rows, `most` a bound of Σy²."""

        def error(ridge: float) -> float:
            noise = coordinates / self.root_sharpness(least + ridge, most) ** 2 / n
            return noise + variance * (ridge / (max(usual, least) + ridge)) ** 2

        found = self.least_ridge(least)
        while found < n and error(2 * found) < error(found):
            found *= 2
        return found

    def root_sharpness(self, eigenvalue: float, most: float) -> float:
        """√γ, the largest with γR²h/2 + √(γh)·R·z + h·z²/2 ≤ ε for z deviations, rounded down; h is the leverage of a
        row at most, R = 1 + √(most/eigenvalue) its residual."""
        z, h, residual = max(self.both_tails, 1.0), 1 / eigenvalue, 1 + math.sqrt(most / eigenvalue)
        left = self.sample_epsilon - h * z * z / 2
        return (math.sqrt(z * z + 2 * left) - z) / (residual * math.sqrt(h)) * (1 - 1e-9)


@dataclass(eq=False, kw_only=True, repr=False)
class PosteriorSample(Regressor):
    """Least squares by one draw from N(θ̂, (γA)⁻¹), A = ZᵀZ + λ, θ̂ = A⁻¹Zᵀy, for rows |z| ≤ 1 and targets |y| ≤ 1.

    z is (x, 1), columns scaled to [−1, 1] and clipped. A noisy lower bound ℓ of the least eigenvalue of ZᵀZ decides the
    ridge λ, and with a noisy upper bound S of Σy² the sharpness γ: the more the data support coefficients, the less
    noise these have. A draw is shrunk towards a noisy mean as its width, d/(γn) in predictions, nears an eighth of the
    target's noisy variance. It needs ten times as many rows as noisy statistics (`LinearRegression`).

    Proof. (a) The least eigenvalue moves by at most 1 with a row, so ℓ = noisy − tail − 1 is at most that of both
    neighbours, unless a tail of a share of δ happens; let h = 1/(ℓ + λ). (b) |θ̂|²(ℓ + λ) ≤ θ̂ᵀAθ̂ = yᵀZA⁻¹Zᵀy ≤ Σy² ≤
    S for both, S = noisy + tail + 1, unless a tail happens; so residuals are at most R = 1 + √(Sh). (c) Let P be the
    posterior without the row, q its leverage zᵀA⁻¹z ≤ h, r its residual, u = y − z·θ. The posterior with it is Q ∝
    P·e^{−γu²/2}, so the log ratio of P to Q is γu²/2 − ½log(1 + q) − γr²/(2(1 + q)). Under P, u = r + √(q/γ)Z, which
    gives γr²q/(2 + 2q) + r√(γq)Z + qZ²/2 − ½log(1 + q). Under Q, u = r/(1 + q) + √(q/(γ + γq))Z, and the log ratio of
    Q to P is at most γr²q/2 + |r|√(γq)|Z| + q/2. Both are at most γR²h/2 + R√(γh)|Z| + h·max(Z², 1)/2, which is ε for
    |Z| = z; so both are (ε, P(|Z| > z))-close. (d) What is drawn on a lattice is at most t = √d·2⁻²⁵/√(γλ) from a draw
    of real numbers, by ball arithmetic; noise of a Gaussian mechanism of sensitivity 3t covers that. All compose. If
    released moments say that nothing of a sample would be kept, a noisy sum takes the place of (a), (c) and (d). ∎

    Theorem: one posterior sample with an adaptive ridge is (ε, δ)-DP [the proof above; Wang 2018, Alg. 1 (AdaOPS);
        Dimitrakakis, Nelson, Mitrokotsa & Rubinstein 2014]
    """

    def check_params(self) -> None:
        super().check_params()
        if self.epsilon is None or not self.delta > 0 or self.relation is not Relation.AddRemove:
            raise InvalidParameter(
                "a posterior sample costs (ε, δ), about adding or removing a row.\n"
                "  found:  a loss as budget, no δ, or another relation\n  do:     give epsilon=1.0, delta=1e-6"
            )
        if self.unit is not None or self.rows_per_unit != 1:
            raise unit_refusal()
        if self.prices.mu(OUTPUT) * FINE < LEAST_STEPS:
            raise InvalidParameter(
                f"epsilon is too small for a posterior sample.\n  found:  {self.epsilon}\n  do:     give more"
            )

    @property
    def loss(self) -> PrivacyLoss:
        self.check_params()
        return ApproxLoss(float(self.epsilon or 0.0), float(self.delta))

    @property
    def prices(self) -> Prices:
        return Prices(float(self.epsilon or 0.0), float(self.delta))

    def read_table(self, X: Data, y: object, units: object) -> Table:
        if units is not None:
            raise unit_refusal()
        return super().read_table(X, y, units)

    def learn(self, table: Table, spending: Spending) -> None:
        prices, d = self.prices, table.columns + 1
        rows = self.rows(table)
        y = rows.integers[:, -1]
        parts = np.column_stack([np.full(len(y), UNIT), y, -(-(y * y) >> BITS)])
        sums = add_up(parts) / UNIT
        noise = deviation_for(math.sqrt(3), prices.mu(MOMENTS))
        count, total, squares = add_noise(sums, noise)
        most = max(float(squares), 0.0) + prices.tail * noise + EXACT
        n = max(float(count), 1.0)
        mean = float(np.clip(total / n, -1, 1))
        mean *= max(0.0, 1 - (noise / n) ** 2 / max(mean**2, 1e-300))  # no farther than it is known
        seen, error = float(np.clip(squares / n, 0, 1)) - mean**2, noise / n * math.sqrt(1 + 4 * mean**2)
        variance = max(seen - 2 * error, 1e-4)  # no more than is certain
        if self.is_hopeless(n, table.columns, most, variance):
            self.set_coefficients(self.mean_alone(y, mean, n, table.columns), table)
            return
        gram = rows.gram()
        found = float(np.linalg.eigvalsh(gram[:d, :d] / COARSE**2)[0])
        noise = deviation_for(EXACT, prices.mu(EIGENVALUE))
        least = max(0.0, float(add_noise(np.array([found]), noise)[0]) - prices.tail * noise - EXACT)
        ridge = prices.ridge(least, self.usual_eigenvalue(n, table.columns), n, d, most, variance)
        root = prices.root_sharpness(least + ridge, most)
        with precision(PRECISION):
            drawn = Posterior.of(gram, ridge).draw(root)
        distance = math.sqrt(d / ridge) / root * 2.0 ** -(DRAW_BITS + 1)
        theta = add_noise(drawn, deviation_for(3 * distance, prices.mu(OUTPUT)))
        keep = kept(d, root, n, variance)
        theta = theta * keep
        theta[-1] += (1 - keep) * mean * self.length(table.columns)
        self.set_coefficients(theta, table)

    def is_hopeless(self, n: float, columns: int, most: float, variance: float) -> bool:
        """Would nothing of a sample be kept, if columns have a usual spread? From released numbers."""
        prices, usual, d = self.prices, self.usual_eigenvalue(n, columns), columns + 1
        least = max(0.0, usual - 2 * prices.tail / prices.mu(EIGENVALUE))
        root = prices.root_sharpness(least + prices.ridge(least, usual, n, d, most, variance), most)
        return kept(d, root, n, variance) <= 0

    def mean_alone(self, y: Integers, centre: float, n: float, columns: int) -> Vector:
        """The trivial predictor, for what a sample would have cost: a row is at most 1 + |centre| from the centre."""
        width = 1 + abs(centre)
        noise = deviation_for(width, self.prices.mean_mu)
        away = float(add_noise(np.array([float(add_up(y[:, None])[0]) / UNIT - len(y) * centre]), noise)[0])
        theta = np.zeros(columns + 1)
        mean = float(np.clip(centre + away / n, -1, 1))
        mean *= max(0.0, 1 - (noise / n) ** 2 / max(mean**2, 1e-300))
        theta[-1] = mean * self.length(columns)
        return theta

    def rows(self, table: Table) -> BoundedRows:
        """(z, y) as whole numbers: z clipped to the norm 1, y to ±1."""
        X = Bounds.of(self.bounds, table.columns, table.names, "bounds").scale(table.X)
        short = X * np.minimum(1.0, usual_norm(table.columns) / np.maximum(row_lengths(X), 1e-300))[:, None]
        z = self.bound_rows(np.column_stack([short, np.ones(len(X))]) / self.length(table.columns), table, 1.0)
        y = self.bound_rows(self.scaled_target(table)[:, None], table, 1.0)
        return BoundedRows(np.column_stack([z.integers, y.integers]), math.sqrt(2), 1.0)

    def length(self, columns: int) -> float:
        """Of (x, 1), at most."""
        return math.sqrt(usual_norm(columns) ** 2 + 1)

    def usual_eigenvalue(self, n: float, columns: int) -> float:
        return USUAL * n / self.length(columns) ** 2

    def set_coefficients(self, theta: Vector, table: Table) -> None:
        bounds = Bounds.of(self.bounds, table.columns, table.names, "bounds")
        target = Bounds.of(self.y_bounds, 1, None, "y bounds")
        self.theta_ = theta / self.length(table.columns)  # for (x, 1), scaled
        self.coef_ = self.theta_[:-1] * target.half[0] / bounds.half
        self.intercept_ = float(target.middle[0] + target.half[0] * self.theta_[-1] - self.coef_ @ bounds.middle)

    def predict(self, X: Data) -> Vector:
        rows = self.new_rows(X)
        scaled = Bounds.of(self.bounds, rows.shape[1], self.names_in(), "bounds").scale(rows)
        found = row_products(np.column_stack([scaled, np.ones(len(rows))]), self.theta_[None])[:, 0]
        return self.in_target_units(found)

    def expected_error(self, n: int, d: int) -> tuple[float, str]:
        """For columns of a usual spread, and coefficients of length 1."""
        prices, usual = self.prices, self.usual_eigenvalue(float(n), d)
        least = max(0.0, usual - 2 * prices.tail / prices.mu(EIGENVALUE))
        ridge = prices.ridge(least, usual, float(n), d + 1, USUAL * n, USUAL)
        root = prices.root_sharpness(least + ridge, USUAL * n)
        error = (d + 1) / root**2 / n if kept(d + 1, root, n, USUAL) else USUAL  # that of the mean alone
        return min(1.0, error), "excess squared error, as a part of the target's half range squared"


def deviation_for(sensitivity: float, mu: float) -> float:
    """σ of noise on a lattice of σ/FINE that costs μ: rounding values to it adds up to four steps to a move."""
    return sensitivity / (mu * (1 - 1e-6) - 4 / FINE)


def kept(coordinates: int, root_sharpness: float, n: float, variance: float) -> float:
    """How much of a sample is kept: nothing where its width nears the target's variance."""
    return max(0.0, 1 - CAREFUL * coordinates / root_sharpness**2 / n / variance)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """A = LLᵀ and θ̂ as balls: exact sums, so that nothing is lost by how they are solved. Private."""

    factor: list[list[arb]]
    centre: list[arb]

    @staticmethod
    def of(gram: Integers, ridge: float) -> "Posterior":
        """From Σ(z, y)(z, y)ᵀ in steps of 2⁻³²."""
        d, unit, added = len(gram) - 1, COARSE**2, Fraction(ridge)
        entries = [[Fraction(int(x), unit) for x in row] for row in gram]
        matrix = [[entries[i][j] + (added if i == j else 0) for j in range(d)] for i in range(d)]
        factor: list[list[arb]] = [[ball(0)] * d for _ in range(d)]
        for j in range(d):
            for i in range(j, d):
                left = ball(matrix[i][j])
                for k in range(j):
                    left -= factor[i][k] * factor[j][k]
                factor[i][j] = left.sqrt() if i == j else left / factor[j][j]
        solved = backward(factor, forward(factor, [ball(entries[i][d]) for i in range(d)]))
        return Posterior(factor, solved)

    def draw(self, root_sharpness: float) -> Vector:
        """θ̂ + L⁻ᵀz/√γ, z standard normal on a lattice."""
        d = len(self.centre)
        multiples = gaussian(2.0**DRAW_BITS).answer(np.zeros(d, np.int64)).multiples
        z = [ball(Fraction(int(m), 1 << DRAW_BITS)) for m in multiples]
        spread = backward(self.factor, z)
        scale = ball(Fraction(root_sharpness))
        return np.array([float((c + s / scale).mid()) for c, s in zip(self.centre, spread, strict=True)])


def forward(factor: list[list[arb]], given: list[arb]) -> list[arb]:
    """x with L·x = given."""
    found: list[arb] = []
    for i, value in enumerate(given):
        left = value
        for k in range(i):
            left -= factor[i][k] * found[k]
        found.append(left / factor[i][i])
    return found


def backward(factor: list[list[arb]], given: list[arb]) -> list[arb]:
    """x with Lᵀ·x = given."""
    d = len(given)
    found: list[arb] = [ball(0)] * d
    for i in reversed(range(d)):
        left = given[i]
        for k in range(i + 1, d):
            left -= factor[k][i] * found[k]
        found[i] = left / factor[i][i]
    return found


def unit_refusal() -> InvalidParameter:
    return InvalidParameter(
        "a posterior sample protects rows, not units of several rows.\n  found:  units\n"
        "  do:     give one row of each unit, or use LinearRegression"
    )
