"""The corpus of neighbouring databases covers every private table of any policy."""

import sfumato as sf
from sfumato.audit.corpus import neighbours
from sfumato.audit.exhibits import POLICY
from sfumato.audit.question_replay import SqlQuestion


def test_a_corpus_is_made_for_any_policy():
    pairs = neighbours(POLICY)
    assert len(pairs) >= 25
    assert len({pair.name for pair in pairs}) == len(pairs)
    for pair in pairs:
        more = {name: len(pair.whole.tables[name]) - len(pair.without.tables[name]) for name in pair.whole.tables}
        assert more["visits"] > 0
        assert more["wards"] == 0
    small = sf.sql.policy.Policy.read(
        """
        version = 1
        [budget]
        epsilon = 1.0
        delta = 1e-6
        [tables.people]
        unit = "row"
        [tables.people.columns]
        age = {low = 0, high = 120}
        [tables.orders]
        unit = "customer"
        rows = 2
        [tables.orders.columns]
        id = {type = "number"}
        [tables.items]
        unit = "orders.customer"
        key = "id"
        rows = 2
        [tables.items.columns]
        price = {low = 0, high = 9}
        """
    )
    found = neighbours(small)
    assert {pair.name.split(":")[0] for pair in found} == {"people", "orders", "items"}
    asked = SqlQuestion("SELECT SUM(price) FROM items", small)
    assert not any(asked.replay(pair).violated for pair in found if pair.name.startswith("items: many"))
