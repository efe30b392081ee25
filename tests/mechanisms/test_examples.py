"""A mechanism is one file: what its class states is what the auditor, the common checks and the documents show."""

import pytest

import sfumato as sf
from sfumato.audit.exhibits import all_exhibits
from sfumato.mechanisms.base import Mechanism, shipped_mechanisms
from sfumato.noise.entropy import SYSTEM
from sfumato.sampling.base import shipped_samplings
from tests.noise.sources import Recorded
from tools.mechanisms import PAGE, page

EXHIBITS = all_exhibits()


def test_the_tables_of_the_documents_are_current():
    assert page() == PAGE.read_text(encoding="utf-8"), "run `make docs-index`"


@pytest.mark.parametrize("kind", [kind for kind in shipped_mechanisms() if kind.examples()])
def test_every_example_is_audited_on_its_first_neighbours(kind):
    assert kind.use, f"say when to choose {kind.__name__}: `use`"
    for example in kind.examples():
        pair = example.neighbours[0]
        claims = [
            one.loss_arguments
            for one in EXHIBITS
            if repr(one.mechanism) == str(example) and repr(one.d0) == repr(pair.first)
        ]
        assert pair.loss_arguments in claims


@pytest.mark.parametrize("kind", shipped_samplings())
def test_every_sampling_scheme_is_audited(kind):
    assert kind.examples()
    audited = {one.mechanism.sampling for one in EXHIBITS if one.part == "sampling"}
    assert {example.sampling for example in kind.examples()} <= audited


@pytest.mark.parametrize("kind", [*shipped_mechanisms(), *shipped_samplings()])
def test_every_class_is_found_by_its_name(kind):
    package = sf.mechanisms if issubclass(kind, Mechanism) else sf.sampling
    assert getattr(package, kind.__name__) is kind


def test_a_class_of_no_list_is_found_from_the_top_and_a_misspelt_one_is_not():
    assert sf.PureQuantile is sf.mechanisms.PureQuantile
    for package in (sf, sf.mechanisms, sf.sampling):
        with pytest.raises(AttributeError, match="Gausian"):
            _ = package.Gausian


def sources(value):
    """All sources of bits in a mechanism."""
    if isinstance(value, Mechanism):
        yield value.source
        for inner in vars(value).values():
            yield from sources(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from sources(inner)


@pytest.mark.parametrize("kind", shipped_mechanisms())
def test_another_source_reaches_all_noise_inside(kind):
    recorded = Recorded("elsewhere")
    for example in kind.examples():
        made = example.make(recorded)
        assert made == example.mechanism and repr(made) == repr(example.mechanism)
        assert {id(source) for source in sources(made)} == {id(recorded)}
        assert {id(source) for source in sources(example.mechanism)} == {id(SYSTEM)}
