"""What importing costs, what is public, and how much memory ordinary answers take: each in a fresh process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def answer_of(program: str) -> str:
    """What a program prints that runs alone."""
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


# ---- what is loaded -------------------------------------------------------------------------------------------------


def test_import_loads_neither_scipy_nor_matplotlib_nor_numpy():
    heavy = "{'scipy', 'matplotlib', 'numpy', 'mpmath', 'hypothesis', 'flint', 'cryptography'}"
    assert answer_of(f"import sys, sfumato; print(*({heavy} & set(sys.modules)))") == ""


def test_pricing_a_sum_needs_no_plotting_and_little_of_scipy():
    program = """
import sys
import scipy.special  # loads scipy.sparse in scipy 1.14
theirs = set(sys.modules)
import sfumato as sf
(3 * sf.Poisson(0.1).amplify(sf.loss.GaussianLoss(1.0)) + sf.loss.LaplaceLoss(0.1)).epsilon(1e-6)
large = {f'scipy.{part}' for part in ('stats', 'optimize', 'signal', 'interpolate', 'integrate', 'sparse')}
print(*sorted((large | {'matplotlib', 'pandas', 'mpmath'}) & (set(sys.modules) - theirs)))
"""
    assert answer_of(program) == ""


# ---- what is public -------------------------------------------------------------------------------------------------


def test_all_public_names_resolve_and_are_listed():
    program = """
import sfumato as sf
for module in (sf, sf.loss, sf.noise, sf.sampling, sf.audit):
    assert len(module.__all__) == len(set(module.__all__)), f'a name is there twice in {module}'
    for name in module.__all__:
        assert getattr(module, name) is not None, name
        assert name in dir(module), name
print('all there')
"""
    assert answer_of(program) == "all there"


def test_the_version_is_listed_and_the_names_are_in_order():
    program = "import sfumato as sf; print('__version__' in dir(sf), sf.__all__ == sorted(sf.__all__))"
    assert answer_of(program) == "True True"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_every_public_name_can_be_the_first_one_used():
    """Each in a process of its own, as no name may rely on another having been imported before; of the names of one
    module one, as they import the same, and one of all mechanisms that are imported together. The libraries of others
    are imported before the forks: they take nearly all of the time, and rely on nothing of ours."""
    names = answer_of("""
import sys
import sfumato.mechanisms
together = {name for name in sys.modules if name.startswith("sfumato.mechanisms.")}
names = {sfumato.PLACES.get(name, name): name for name in sorted({*sfumato.__all__, *sfumato.PLACES})}
print(*{"together" if place in together else place: name for place, name in names.items()}.values())
""").split()
    program = f"""
import os, sys
import click, duckdb, flint, numpy, scipy.fft, scipy.optimize, scipy.special, sqlglot
for name in {names}:
    if not (child := os.fork()):
        try:
            import sfumato as sf
            os._exit(getattr(sf, name) is None)
        except BaseException:
            os._exit(2)
    if os.waitpid(child, 0)[1]:
        print(name)
print(any(name.startswith("sfumato") for name in sys.modules))
"""
    assert answer_of(program) == "False"


def test_a_name_that_does_not_exist_says_which_do():
    program = """
import sfumato
try:
    sfumato.Gausian
except AttributeError as error:
    assert "'Gausian'" in str(error), error
    print(*[name for name in sfumato.__all__ if name not in str(error).split('it has')[1]])
else:
    print('no error')
"""
    assert answer_of(program) == ""


# ---- memory ---------------------------------------------------------------------------------------------------------

# The peak of this program alone. resource's ru_maxrss is no use here: a process inherits it from the one that started
# it, so that under a large test runner nothing ever seems to grow.
MEMORY = """
import numpy as np
import scipy.fft, scipy.special
import sfumato as sf
import sfumato.loss.compose.choose_engine, sfumato.loss.views.profile, sfumato.sampling

def peak():
    status = dict(line.split(':') for line in open('/proc/self/status'))
    return int(status['VmHWM'].split()[0]) / 1024  # MB

before = peak()
steps = 10_000 * sf.Poisson(0.01).amplify(sf.loss.GaussianLoss(1 / 0.8))
{answer}
print(peak() - before)
"""


def growth(answer: str) -> float:
    """Megabytes that an answer takes beyond what is imported."""
    return float(answer_of(MEMORY.format(answer=answer)))


on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")


@on_linux
@pytest.mark.parametrize(
    "answer",
    [
        "steps.epsilon(1e-6)",
        "steps.delta(np.linspace(0.0, 20.0, 1000))",
        "(100 * sf.loss.LaplaceLoss(0.1)).epsilon(1e-6)",
        "sum(map(sf.loss.LaplaceLoss, np.linspace(0.01, 0.2, 100))).epsilon(1e-6)",
        "sum(map(sf.loss.ApproxLoss, np.linspace(0.01, 0.2, 100), np.geomspace(1e-12, 1e-9, 100))).epsilon(1e-6)",
        "sf.Poisson(0.1).amplify(sf.loss.GaussianLoss(1.0)).group(10).epsilon(1e-6)",
    ],
    ids=[
        "10,000 steps",
        "a profile of 1,000 points",
        "100 equal Laplaces",
        "100 different Laplaces",
        "100 different pairs",
        "a group of ten",
    ],
)
def test_ordinary_answers_take_less_than_fifty_megabytes(answer):
    assert growth(answer) < 50


@on_linux
def test_the_measure_sees_what_is_allocated():
    assert growth("np.ones(8_000_000)") > 60
