"""Every loss names the theorem it rests on, and docs/theorems.md lists them all."""

import ast
from pathlib import Path

import pytest

from tools.theorems import INDEX, ROOT, Malformed, cited, index, theorems

GAUSSIAN = '''"""A module."""


class GaussianLoss(PrivacyLoss):
    """L ~ N(mu²/2, mu²).

    Theorem: the exact profile of
        the Gaussian, H(P|Q) [Balle & Wang 2018, Thm 8].
    """

    def merge(self):
        """Theorem: P[L > t] is closed under sums
        [Dong, Roth & Su 2022, Cor 3.3]"""
'''


def losses_without_a_theorem(root: Path) -> list[str]:
    """Public final losses in loss/ and sampling/ that cite nothing, nor does their module."""
    modules = {p: ast.parse(p.read_text(encoding="utf-8")) for p in sorted((root / "sfumato").rglob("*.py"))}
    classes = [(p, n) for p, module in modules.items() for n in ast.walk(module) if isinstance(n, ast.ClassDef)]
    final = final_losses({node.name: base_names(node) for _, node in classes})
    return [
        f"{path.relative_to(root)}:{node.lineno}: {node.name} cites no theorem"
        for path, node in classes
        if path.relative_to(root / "sfumato").parts[0] in ("loss", "sampling")
        if node.name in final and not node.name.startswith("_")
        if not (cites(node) or cites(modules[path]))
    ]


def base_names(node: ast.ClassDef) -> set[str]:
    """Names of the bases without module and type parameters."""
    return {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}


def final_losses(bases: dict[str, set[str]]) -> set[str]:
    """All that descends from PrivacyLoss and has no descendants itself: the rest is abstract and claims nothing."""
    losses, previous = {"PrivacyLoss"}, set()
    while losses != previous:
        previous, losses = losses, losses | {name for name in bases if bases[name] & losses}
    return losses - set().union(*bases.values()) - {"PrivacyLoss"}


def cites(node: ast.Module | ast.ClassDef) -> bool:
    return any(cited(ast.get_docstring(node) or ""))


def made_up(root: Path, text: str) -> Path:
    (root / "sfumato" / "loss").mkdir(parents=True)
    (root / "sfumato" / "loss" / "gaussian.py").write_text(text, encoding="utf-8")
    return root


def test_the_index_is_current():
    assert (ROOT / INDEX).read_text(encoding="utf-8") == index(ROOT), "run `make docs-index`"


def test_every_loss_cites_a_theorem():
    assert not losses_without_a_theorem(ROOT)


def test_a_loss_without_a_theorem_is_reported(tmp_path):
    text = "class _Hidden(PrivacyLoss): ...\nclass Other: ...\nclass Abstract(base.PrivacyLoss): ...\n"
    (found,) = losses_without_a_theorem(made_up(tmp_path, text + "class Bare(Abstract): ...\n"))
    assert "gaussian.py:4: Bare cites no theorem" in found


@pytest.mark.parametrize("text", [GAUSSIAN, '"""Theorem: a [b]"""\nclass Bare(PrivacyLoss[int]): ...\n'])
def test_a_theorem_in_the_class_or_its_module_is_enough(tmp_path, text):
    assert not losses_without_a_theorem(made_up(tmp_path, text))


def test_theorems_are_found_where_they_are_used(tmp_path):
    profile, merge = theorems(made_up(tmp_path, GAUSSIAN))
    assert profile.statement == "the exact profile of the Gaussian, H(P|Q)"
    assert profile.source == "Balle & Wang 2018, Thm 8"
    assert merge.statement == "P[L > t] is closed under sums"
    assert merge.source == "Dong, Roth & Su 2022, Cor 3.3"
    assert merge.where == "sfumato.loss.gaussian.GaussianLoss.merge"


def test_the_index_is_a_table_with_links_and_our_own_proofs(tmp_path):
    page = made_up(tmp_path, GAUSSIAN) / "docs" / "theorems" / "slack.md"
    page.parent.mkdir(parents=True)
    page.write_text("# Domination with slack\n\nProof.\n", encoding="utf-8")
    text = index(tmp_path)
    assert (
        r"| the exact profile of the Gaussian, H(P\|Q) | Balle & Wang 2018, Thm 8 "
        "| [`sfumato.loss.gaussian.GaussianLoss`](../sfumato/loss/gaussian.py) |\n"
    ) in text
    assert text.endswith("- [Domination with slack](theorems/slack.md)\n")


@pytest.mark.parametrize("line", ["Theorem: no source", "Theorem: [only a source]", "Theorem: open [Balle 2018\n\n]"])
def test_a_theorem_that_cannot_be_read_is_refused(tmp_path, line):
    with pytest.raises(Malformed, match=r"gaussian\.py: the docstring of sfumato\.loss\.gaussian has a theorem"):
        theorems(made_up(tmp_path, f'"""A module.\n\n{line}\n"""\n'))
