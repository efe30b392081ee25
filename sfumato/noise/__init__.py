"""Exact noise: integers whose law is proved, from the operating system's entropy.

No float decides an outcome, no support is cut off, and no seed is taken. docs/theorems/noise.md has the proof.
"""

from sfumato.noise.balls import Certified, Exp, Real
from sfumato.noise.bernoulli import Bernoulli, exponential_coin, exponential_coins
from sfumato.noise.categorical import Categorical, choose
from sfumato.noise.density import Density, Floored, Rounded
from sfumato.noise.discrete_gaussian import DiscreteGaussian
from sfumato.noise.discrete_laplace import DiscreteLaplace, TruncatedLaplace
from sfumato.noise.draw_pool import Pool
from sfumato.noise.draw_table import Law
from sfumato.noise.dyadic_lattice import Answer, Lattice, OnLattice, RoundedFirst, Rounding, Unrounded
from sfumato.noise.entropy import Keystream, Source
from sfumato.noise.gaussian import GaussianDensity, rounded_gaussian
from sfumato.noise.geometric import Geometric, geometric
from sfumato.noise.joint_laplace import JointLaplace, Margin
from sfumato.noise.laplace import LaplaceDensity, rounded_laplace
from sfumato.noise.monotone import radius
from sfumato.noise.sampler import Sampler
from sfumato.noise.selection import peel, permute_and_flip, select, select_run
from sfumato.noise.staircase import StaircaseDensity, rounded_staircase
from sfumato.noise.uniform import Uniform

__all__ = [
    "Answer",
    "Bernoulli",
    "Categorical",
    "Certified",
    "Density",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exp",
    "Floored",
    "GaussianDensity",
    "Geometric",
    "JointLaplace",
    "Keystream",
    "LaplaceDensity",
    "Lattice",
    "Law",
    "Margin",
    "OnLattice",
    "Pool",
    "Real",
    "Rounded",
    "RoundedFirst",
    "Rounding",
    "Sampler",
    "Source",
    "StaircaseDensity",
    "TruncatedLaplace",
    "Uniform",
    "Unrounded",
    "choose",
    "exponential_coin",
    "exponential_coins",
    "geometric",
    "peel",
    "permute_and_flip",
    "radius",
    "rounded_gaussian",
    "rounded_laplace",
    "rounded_staircase",
    "select",
    "select_run",
]
