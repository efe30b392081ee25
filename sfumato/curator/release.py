"""Exact tables in, noisy ones out: the only lines where data and noise meet."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sfumato.aggregates.price import IndependentNoise
from sfumato.aggregates.standalone import StandaloneRelease
from sfumato.curator.offer import Offer
from sfumato.curator.scaling import scaling_of
from sfumato.loss.base import PrivacyLoss
from sfumato.mechanisms.additive.joint_laplace import OneOf
from sfumato.mechanisms.private_inputs import read_numbers
from sfumato.sql.dialects.base import Dialect
from sfumato.sql.domains import Kind
from sfumato.sql.emit.bounding import key_names, regroup, statement
from sfumato.sql.emit.norm import LARGEST
from sfumato.sql.emit.request import Row, TableRequest
from sfumato.sql.emit.values import distinct_counts
from sfumato.sql.plan import Measure, Plan, What
from sfumato.sql.postprocess import sort_key as by_value
from sfumato.sql.reserved_names import KEPT


@dataclass(frozen=True)
class AnswerRelease:
    """The release that an offer pays for: its key and loss, the tables that it needs, and noisy values from them."""

    canonical: str
    asked: str  # the text that was asked
    loss: PrivacyLoss
    requests: Callable[[int, Dialect], list[TableRequest]]
    release: Callable[[Sequence[Sequence[Row]]], bytes]

    @staticmethod
    def of(offer: Offer) -> "AnswerRelease":
        return AnswerRelease(
            offer.canonical, offer.question.text, offer.loss, partial(table_requests, offer), partial(release, offer)
        )


# ---- the statements for the engine -----------------------------------------------------------------------------------


def statements(offer: Offer, salt: int, dialect: str | Dialect) -> list[str]:
    """All statements for the engine, if no table is cached."""
    return [request.direct for request in table_requests(offer, salt, dialect)]


def table_requests(offer: Offer, salt: int, dialect: str | Dialect) -> list[TableRequest]:
    """The tables that an answer is made of: all sums at once, each distinct count, and each batch of standalone
    aggregates."""
    plan = offer.plan
    requests = scaled_requests(offer, dialect) if offer.scaled else []
    if not offer.scaled and any(m.what is not What.DISTINCT for m in plan.measures):
        requests = [sums_request(plan, salt, dialect)]
    for measure in plan.measures:
        if measure.what is What.DISTINCT and measure.of:
            sql = distinct_counts(plan, measure.of, salt, dialect)
            requests.append(TableRequest(sql, tuple(key_names(plan)), (sql,), lambda places, sql=sql: sql))  # type: ignore[misc]
    if not plan.standalone:
        return requests
    return requests + [type(batch[0]).request(batch, salt, dialect) for batch in batches(offer)]


def scaled_requests(offer: Offer, dialect: str | Dialect) -> list[TableRequest]:
    """All sums of scaled contributions; and how many units count in part, if there was a choice."""
    plan, choices = offer.plan, offer.choices or ()
    if not choices:
        return []
    scaling = scaling_of(plan, offer.price.squares, dialect)
    found = [scaling.request(scaling.sums([choice.bound for choice in choices]))]
    if offer.people_noise is not None:
        place = next(i for i, choice in enumerate(choices) if choice.norms is not None)
        found.append(scaling.request(scaling.scaled_units(place, choices[place].bound, choices[place].far)))
    return found


def batches(offer: Offer) -> list[list[StandaloneRelease]]:
    """The standalone releases, those together that one statement serves."""
    found: dict[object, list[StandaloneRelease]] = {}
    for release in offer.standalone:
        found.setdefault((type(release), release.batch), []).append(release)
    return list(found.values())


def sums_request(plan: Plan, salt: int, dialect: str | Dialect) -> TableRequest:
    """All that is summed. A sum that is cut in proportion with its count is made beside it, and named with it. Grouping
    sets are made of one table of their finest groups, which is kept for all of them."""
    direct = statement(plan, salt, dialect)
    if plan.bounded_by:
        tables = ((KEPT, statement(plan.finest, salt, dialect)),)
        return TableRequest(direct, tuple(key_names(plan)), tables=tables, read=regroup(plan, KEPT, dialect))
    summed = [m for m in plan.measures if m.what is not What.DISTINCT]
    rows = " | ".join([plan.canonical_rows, *plan.canonical_limits, f"salt {salt}"])

    def with_counts(chosen: list[Measure]) -> tuple[Measure, ...]:
        counts = dict.fromkeys(m.counted_by for m in chosen if m.of is not None)
        return (*chosen, *(summed[summed.index(m)] for m in counts if m in summed and m not in chosen))

    def columns_statement(places: Sequence[int]) -> str:
        if len(places) == len(summed):
            return direct
        chosen = with_counts([summed[j] for j in places])
        return statement(replace(plan, measures=chosen, standalone=()), salt, dialect)

    columns = tuple(f"{rows} | {with_counts([m])!r}" for m in summed)
    return TableRequest(direct, tuple(key_names(plan)), columns, columns_statement)


# ---- what is made of exact tables -----------------------------------------------------------------------------------


def release(offer: Offer, exact_tables: Sequence[Sequence[Row]]) -> bytes:
    """The stored answer: keys, noisy parts and released values. Their order and length reveal nothing else."""
    plan, left = offer.plan, list(exact_tables)
    summed = [j for j, m in enumerate(plan.measures) if m.what is not What.DISTINCT]
    exact: dict[Row, list[int]] = {}
    more: dict[str, object] = {}
    if offer.scaled:
        more = {"choices": [one.to_store() for one in offer.choices or ()], "paid": (offer.whole or offer.price).amount}
    if offer.promised is not None:
        more["error"] = offer.promised
    if offer.ranks is not None:
        more["ranks"] = offer.ranks.to_store()
    if offer.people_noise is not None:
        ((near, far),) = left.pop(1)
        counts = [int(many) for many in ((near, far) if offer.counts_near else (far,))]  # type: ignore[call-overload]
        more["people"] = [int(many) for many in np.atleast_1d(offer.people_noise.release(counts))]
    for places in [*([summed] if summed else []), *([j] for j in range(len(plan.measures)) if j not in summed)]:
        for key, row in keys_and_integers(offer, left.pop(0)):
            sums_of_key = exact.setdefault(key, [0] * len(plan.measures))
            for j, value in zip(places, row, strict=True):
                sums_of_key[j] = value
    public = plan.public if offer.shown is None else offer.shown
    assert public is not None or not offer.scaled, "private keys are selected by votes before"
    keys = list(public) if public is not None else list(exact)
    noisy = add_noise(offer, [exact.get(key, [0] * len(plan.measures)) for key in keys]) if keys else []
    if offer.threshold is not None:
        kept = [i for i, row in enumerate(noisy) if row[offer.unit_count_index] >= offer.threshold]
        kept.sort(key=lambda i: tuple(map(by_value, keys[i])))
        keys, noisy = [keys[i] for i in kept], [noisy[i] for i in kept]
    if plan.standalone:
        more = release_standalone(offer, keys, left) | more
    data = {"keys": storable_keys(plan, keys), "noisy": noisy} | more
    return json.dumps(data, ensure_ascii=False).encode()


def release_standalone(offer: Offer, keys: list[Row], tables: Sequence[Sequence[Row]]) -> dict[str, object]:
    """The released values of standalone aggregates for each key that is shown, under the entries that store them."""
    rows_of: dict[int, dict[Row, list[Row]]] = {}
    for batch, rows in zip(batches(offer), tables, strict=True):
        groups: dict[Row, list[Row]] = {}
        for key, rest in split_keys(rows, len(offer.plan.keys)):
            groups.setdefault(key, []).append(rest)
        rows_of |= {id(one): groups for one in batch}
    stored: dict[str, object] = {}
    for name in dict.fromkeys(one.stored_as for one in offer.plan.standalone):
        pairs = zip(offer.plan.standalone, offer.standalone, strict=True)
        mine = [one for aggregate, one in pairs if aggregate.stored_as == name]
        stored[name] = [[one.release(rows_of[id(one)].get(key, [])) for one in mine] for key in keys]
    return stored


def add_noise(offer: Offer, exact: Sequence[list[int]]) -> list[list[int]]:
    """Noise on every part of every group: the only place where it is added."""
    columns = offer.joint.part_columns(exact)
    if offer.relative is not None:
        return [[step] for step in offer.relative.release(columns[0]).tolist()]
    together = {j: noise.joint for j, noise in enumerate(offer.noise) if isinstance(noise, OneOf)}
    for joint in set(together.values()):  # one, or none
        noisy = joint.release(np.stack([read_numbers(columns[j]) for j in together], axis=-1))
        for j, column in zip(together, noisy.T.tolist(), strict=True):
            columns[j] = column
    for j, noise in enumerate(offer.noise):
        if noise is not None and not isinstance(noise, OneOf):  # none only where a part is 0, whatever the data
            columns[j] = release_integers(noise, columns[j])
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in exact]


def release_integers(noise: IndependentNoise, exact: list[int]) -> list[int]:
    """Add noise to integers. Weighted sums may exceed 64 bits: then noise is drawn on zeros, and added in Python."""
    if max(map(abs, exact), default=0) < LARGEST:
        return np.asarray(noise.release(np.array(exact, np.int64))).tolist()  # type: ignore[no-any-return]
    return [x + int(n) for x, n in zip(exact, np.atleast_1d(noise.release([0] * len(exact))), strict=True)]


def keys_and_integers(offer: Offer, rows: Sequence[Row]) -> list[tuple[Row, list[int]]]:
    """The rows of a table as (keys, integers)."""
    return [(key, [int(x or 0) for x in rest]) for key, rest in split_keys(rows, len(offer.plan.keys))]  # type: ignore[call-overload]


def split_keys(rows: Sequence[Row], width: int) -> list[tuple[Row, Row]]:
    """The rows of a table as (keys, other columns)."""
    if not any(isinstance(part, float | int) for row in rows for part in row[:width]):
        return [(row[:width], row[width:]) for row in rows]
    return [(tuple(map(normalize_zero, row[:width])), row[width:]) for row in rows]


def normalize_zero(key: object) -> object:
    """A number as a double, with 0 for −0: both are one group, and which one an engine shows could depend on a row."""
    return key + 0.0 if isinstance(key, float | int) and not isinstance(key, bool) else key


def storable_keys(plan: Plan, keys: Sequence[Row]) -> list[list[object]]:
    """Keys as they are stored; a date without its time at midnight."""
    dates = [j for j, by in enumerate(plan.keys) if by.domain.kind is Kind.DATE]
    found = [list(key) for key in keys]
    for key in found if dates else []:
        for j in dates:
            key[j] = str(key[j]).removesuffix(" 00:00:00") if key[j] is not None else None
    return found
