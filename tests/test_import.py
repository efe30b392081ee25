"""What importing costs, what is public, and how much memory ordinary answers take: each in a fresh process."""

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


def test_import_loads_neither_scipy_nor_matplotlib_nor_numpy():
    heavy = "{'scipy', 'matplotlib', 'numpy', 'mpmath', 'hypothesis'}"
    assert answer_of(f"import sys, sfumato; print(*({heavy} & set(sys.modules)))") == ""


def test_pricing_a_loss_needs_no_plotting():
    program = "import sys, sfumato as sf; sf.loss.GaussianLoss(1.0).epsilon(1e-6); print('matplotlib' in sys.modules)"
    assert answer_of(program) == "False"


def test_all_public_names_resolve_and_are_listed():
    program = """
import sfumato as sf
for name in sf.__all__:
    assert getattr(sf, name) is not None, name
    assert name in dir(sf), name
assert sf.__all__ == sorted(sf.__all__), 'sorted'
assert '__version__' in dir(sf)
for module in (sf.loss, sf.sampling):
    for name in module.__all__:
        assert getattr(module, name) is not None, name
print('all there')
"""
    assert answer_of(program) == "all there"


def test_every_public_name_can_be_the_first_one_used():
    names = answer_of("import sfumato as sf; print(*sf.__all__)").split()
    program = "import sfumato as sf; print(*[n for n in {names!r} if getattr(sf, n) is None])"
    for name in names:  # each in a process of its own: no name may rely on another having been imported before
        assert answer_of(program.format(names=[name])) == ""


def test_a_name_that_does_not_exist_says_which_do():
    program = """
import sfumato
try:
    sfumato.Gausian
except AttributeError as error:
    print('GaussianLoss' in str(error) or 'loss' in str(error))
"""
    assert answer_of(program) == "True"


MEMORY = """
import resource
import numpy as np
import sfumato as sf

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB; Linux counts in kB

(3 * sf.loss.LaplaceLoss(0.1) + sf.loss.GaussianLoss(0.1)).epsilon(1e-3)  # everything is imported and warm
before = peak()
steps = 10_000 * sf.Poisson(0.01).amplify(sf.loss.GaussianLoss(1 / 0.8))
{answer}
print(peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
@pytest.mark.parametrize(
    "answer",
    [
        "steps.epsilon(1e-6)",
        "steps.delta(np.linspace(0.0, 20.0, 1000))",
        "sum(sf.loss.ApproxLoss(e, d) for e, d in zip(np.linspace(.01, .2, 100), np.geomspace(1e-12, 1e-9, 100)))"
        ".epsilon(1e-6)",
    ],
    ids=["10,000 steps", "a profile of 1,000 points", "100 different pairs"],
)
def test_ordinary_answers_take_less_than_fifty_megabytes(answer):
    assert float(answer_of(MEMORY.format(answer=answer))) < 50
