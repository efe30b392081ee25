"""The steps of a question about scaled contributions: charged once, split alike again, refused before the first."""

import json
import threading
from dataclasses import dataclass, replace

import pytest

import sfumato as sf
from sfumato.curator.scaling import histogram_edges, scaling_of
from sfumato.curator.steps import Steps
from sfumato.errors import BudgetExceeded, EngineUnavailable, KeyReused, QueryRefused
from sfumato.sql.policy import Policy
from tests.curator.people import DEFAULT, GAUSSIAN, POLICY, PURE, charges, opened, spent
from tests.curator.questions import dialect_in_use
from tests.curator.wrapped import Wrapped

BY_KEY = "SELECT w, COUNT(*) FROM t GROUP BY w"
POINTS = ("data: before", "data: read", "noise: drawn", "answer: due")


class Crash(BaseException):
    """What no handler expects."""


def crashing(curator, point, number):
    """The same curator; it ends when it comes to this point for this time."""
    seen = []

    def probe(now):
        seen.append(now)
        if now == point and seen.count(point) == number:
            raise Crash

    return replace(curator, probe=probe)


def amount(curator, price):
    """What a price costs on the ledger."""
    cost = curator.ledger.prices(price.loss())[-1]
    return cost.gauss, cost.pure


def test_a_question_by_private_keys_has_three_charges_which_cost_what_it_costs(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    whole = curator.offer(BY_KEY, epsilon=1).price
    answer = curator.ask(BY_KEY, epsilon=1)
    kinds = [question.split(" | ")[0] for question in charges(curator)]
    assert kinds == ["keys", "norms", "t"] and answer.charged
    assert amount(curator, whole)[0] * (1 - 1e-9) <= spent(curator)[0] <= amount(curator, whole)[0] + 3
    assert not curator.ask(BY_KEY, epsilon=1).charged and len(charges(curator)) == 3
    curator.ledger.verify()


CRASHES = [(GAUSSIAN, BY_KEY, point, number) for point in POINTS for number in (1, 2, 3)]
CRASHES += [(PURE, "SELECT k, COUNT(*) FROM t GROUP BY k", "noise: drawn", number) for number in (1, 2)]


@pytest.mark.parametrize("budget, question, point, number", CRASHES)
def test_a_retry_with_the_same_key_pays_the_rest_and_nothing_twice(tmp_path, budget, question, point, number):
    curator = opened(tmp_path, *DEFAULT, budget=budget)
    whole = curator.offer(question, epsilon=1).price
    with pytest.raises(Crash):
        crashing(curator, point, number).ask(question, epsilon=1, key="mine")
    before = charges(curator)
    stored = [json.loads(answer) for one in before for _, answer in curator.ledger.answers(one)]
    answer = curator.ask(question, epsilon=1, key="mine")
    assert charges(curator)[: len(before)] == before and len(set(charges(curator))) == len(charges(curator))
    for one, paid in zip(spent(curator), amount(curator, whole), strict=True):
        assert paid * (1 - 1e-9) <= one <= paid + 3
    after = [json.loads(answer) for one in before for _, answer in curator.ledger.answers(one)]
    assert all(one in after for one in stored), "what was stored is used; nothing is drawn again"
    assert curator.ask(question, epsilon=1, key="mine").rows == answer.rows
    curator.ledger.verify()


def test_a_retry_without_a_key_uses_the_stored_steps(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    with pytest.raises(Crash):
        crashing(curator, "noise: drawn", 3).ask(BY_KEY, epsilon=1)
    before = charges(curator)
    curator.ask(BY_KEY, epsilon=1)
    assert charges(curator)[len(before) :] == before[2:], "keys and norms are stored"


def test_a_key_that_was_used_is_refused_before_anything_is_charged(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    curator.ask("SELECT COUNT(*) FROM t", epsilon=1, key="mine")
    before = spent(curator)
    with pytest.raises(KeyReused):
        curator.ask(BY_KEY, epsilon=1, key="mine")
    assert spent(curator) == before


def test_the_longest_idempotency_key_can_be_used(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    assert curator.ask(BY_KEY, epsilon=1, key="k" * 200).charged


def test_a_key_gives_the_same_answer_after_the_data_have_changed(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    answer = curator.ask(BY_KEY, epsilon=1, key="mine")
    curator.ledger.new_version("new rows")
    again = curator.ask(BY_KEY, epsilon=1, key="mine")
    assert again.rows == answer.rows and not again.charged


def test_a_retry_after_the_data_have_changed_draws_its_steps_again(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    with pytest.raises(Crash):
        crashing(curator, "noise: drawn", 2).ask(BY_KEY, epsilon=1, key="mine")
    curator.ledger.new_version("new rows")
    assert curator.ask(BY_KEY, epsilon=1, key="mine").charged
    curator.ledger.verify()


@pytest.mark.parametrize("part", [0.3, 0.52, 0.9])
def test_a_budget_for_the_steps_alone_is_refused_before_the_first_charge(tmp_path, part):
    curator = opened(tmp_path, *DEFAULT)
    whole = curator.offer(BY_KEY, epsilon=curator.policy.epsilon / 2).price
    limit = curator.ledger.account(curator.who)[1]
    while True:  # spend until a part of one question is left
        left = limit.gauss - spent(curator)[0]
        if left < amount(curator, whole.part(part))[0]:
            break
        step = whole.part(min(1.0, max(0.0, left / amount(curator, whole)[0] - part) + 1e-6))
        curator.ledger.charge(step.loss(), question="something else")
    before = spent(curator)
    with pytest.raises(BudgetExceeded):
        curator.ask(BY_KEY, epsilon=curator.policy.epsilon / 2)
    assert spent(curator) == before


@pytest.mark.parametrize(
    ("sql", "error"), [("SELECT AVG(y) FROM t", 1.0), ("SELECT MEDIAN(y) FROM t", 1.0), ("SELECT SUM(x) FROM t", 1e-3),
                       ("SELECT w, COUNT(*) FROM t GROUP BY w", 1e-3)])  # fmt: skip
def test_an_error_that_no_histogram_makes_possible_is_refused_before_the_first_charge(tmp_path, sql, error):
    curator = opened(tmp_path, *DEFAULT)
    with pytest.raises(QueryRefused, match=r"can be promised|would cost more"):
        curator.ask(sql, error=error)
    assert charges(curator) == []


def test_an_error_that_is_possible_but_not_affordable_is_refused_before_the_first_charge(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    assert curator.ask(BY_KEY, epsilon=20.0).charged
    before = charges(curator)
    with pytest.raises(BudgetExceeded):
        curator.ask("SELECT COUNT(*) FROM t", error=0.8)
    assert charges(curator) == before


@dataclass
class Without(Wrapped):
    """An engine that cannot run what reads this table."""

    table: str = '"s"'

    def check(self, sql):
        if self.table in sql:
            raise RuntimeError
        self.inner.check(sql)


def test_of_several_aggregations_none_is_charged_if_one_cannot_be_run(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    broken = replace(curator, engine=Without(curator.engine))
    with pytest.raises(EngineUnavailable):
        broken.ask("SELECT a.n + b.n FROM (SELECT COUNT(*) AS n FROM t) a, (SELECT COUNT(*) AS n FROM s) b", epsilon=2)
    assert charges(curator) == []


def test_two_analysts_at_once_buy_each_step_once(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    answers, wait = [], threading.Barrier(3)

    def ask(who):
        wait.wait()
        answers.append(replace(curator).ask(BY_KEY, epsilon=1))

    threads = [threading.Thread(target=ask, args=(who,)) for who in "abc"]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(answers) == 3 and len({one.rows for one in answers}) == 1
    assert len(charges(curator)) == 3
    curator.ledger.verify()


def test_what_somebody_else_buys_meanwhile_is_free(tmp_path):
    """The first one finds no keys; before it buys them, another one does. Then its whole price is for the rest."""
    curator = opened(tmp_path, *DEFAULT)
    whole = curator.offer(BY_KEY, epsilon=1).price
    others = []

    def probe(point):
        if point == "ask: priced" and not others:
            others.append(curator.ask(BY_KEY, epsilon=1))

    assert replace(curator, probe=probe).ask(BY_KEY, epsilon=1).rows == others[0].rows
    assert spent(curator)[0] <= amount(curator, whole)[0] + 3


def test_a_stored_answer_serves_only_who_asked_for_no_more(tmp_path):
    """An answer for ε = 0.95 is no answer for ε = 1, also where a new histogram leaves less than 0.95 for the rest."""
    curator = opened(tmp_path, *DEFAULT)
    question = "SELECT k, COUNT(*) FROM t GROUP BY k"
    first = curator.ask(question, epsilon=0.97)
    offer = curator.offer(question, epsilon=1)
    rest = Steps.of(offer, curator.ledger, lambda step: True).complete_offer()
    assert rest.price.amount < curator.offer(question, epsilon=0.97).price.amount
    assert curator.buyer.find(rest) is None
    second = curator.ask(question, epsilon=1)
    assert second.charged and second.rows != first.rows
    assert not curator.ask(question, epsilon=0.5).charged
    assert not curator.ask(question, epsilon=1).charged


def test_an_answer_that_was_paid_for_with_less_never_serves_as_one_for_more(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    question = "SELECT k, COUNT(*) FROM t GROUP BY k"
    curator.ask(question, epsilon=0.5)
    paid = curator.offer(question, epsilon=0.5).price.amount
    ((_, stored),) = curator.ledger.answers(curator.offer(question, epsilon=0.5).canonical)
    assert json.loads(stored)["paid"] == paid
    assert curator.ask(question, epsilon=0.51).charged


def test_prices_of_all_steps_and_the_rest_sum_to_the_price(tmp_path):
    """Exactly: μ² (or ε) of what is charged is at most that of the question, and hardly less."""
    questions = [BY_KEY, "SELECT k, COUNT(*), COUNT(DISTINCT u) FROM t GROUP BY k", "SELECT COUNT(*) FROM t",
                 "SELECT w, AVG(y), COUNT(DISTINCT u), MODE(k) FROM t GROUP BY w"]  # fmt: skip
    curator = opened(tmp_path, *DEFAULT)
    for question in questions:
        offer = curator.offer(question, epsilon=1)
        steps = Steps.of(offer, curator.ledger)
        last = steps.complete_offer()
        total = sum(step.price.amount**2 for step in steps.missing) + last.price.amount**2
        assert offer.price.amount**2 * (1 - 1e-9) <= total <= offer.price.amount**2
        blocks = len(last.choices) + last.joint.distinct + len(last.plan.standalone)
        assert blocks * last.block_share <= 1 + 1e-12


def test_an_answer_is_read_with_the_bounds_that_it_was_made_with(tmp_path):
    """A better histogram, bought later, must not change how a stored answer is read."""
    curator = opened(tmp_path, *DEFAULT)
    question = "SELECT k, COUNT(*) FROM t GROUP BY k"
    first = curator.ask(question, epsilon=0.2, key="mine")
    curator.ask(question, epsilon=8)
    assert curator.show(curator.buyer.find(curator.offer(question, epsilon=0.2))).rows != first.rows, (
        "the better one serves"
    )
    steps = Steps.of(curator.offer(question, epsilon=0.2), curator.ledger, lambda step: True)
    found = curator.buyer.find(steps.complete_offer(), "mine")
    assert curator.planner.answer(found.offer, found.noisy).rows == first.rows


@pytest.mark.parametrize("budget", [GAUSSIAN, PURE])
def test_measures_that_nobody_can_move_are_answered(tmp_path, budget):
    curator = opened(tmp_path, *DEFAULT, budget=budget)
    answer = curator.ask("SELECT COUNT(CLAMP(y, 5, 5)) AS c, SUM(CLAMP(y, 5, 5)) AS s FROM t", epsilon=1)
    assert answer.rows[0][3] == 5 * answer.rows[0][0] or abs(answer.rows[0][3] / 5 - answer.rows[0][0]) <= 1
    low, high = answer.rows[0][4], answer.rows[0][5]
    assert low / 5 == pytest.approx(answer.rows[0][1], abs=1) and high / 5 == pytest.approx(answer.rows[0][2], abs=1)
    assert curator.ask("SELECT AVG(CLAMP(y, 5, 5)) FROM t", epsilon=1).rows[0][0] == 5


def reopened(curator, of, old, new):
    """The same data and ledger under a policy in which one text is another one."""
    described = stated_text(of).replace(old, new)
    assert described != stated_text(of)
    return sf.Curator.open(curator.engine, Policy.read(described), ledger=curator.ledger)


def stated_text(budget):
    return POLICY.format(budget=budget, more="")


QUESTIONS = (BY_KEY, "SELECT k, SUM(y) FROM t WHERE x > 0 GROUP BY k", "SELECT COUNT(*) FROM t")


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_steps_bought_stays_in_use_when_another_column_is_described_otherwise(tmp_path, question):
    curator = opened(tmp_path, *DEFAULT)
    curator.ask(question, epsilon=2)
    first = len(charges(curator))
    later = reopened(curator, GAUSSIAN, 'd = {type = "date"}', 'd = {type = "text"}')
    later.ask(question, epsilon=2)
    assert len(charges(later)) == first + 1, "the answer itself is about the policy as it is; its steps are not"
    curator.ledger.verify()


def test_steps_are_bought_again_when_a_column_that_they_read_is_described_otherwise(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    question = "SELECT k, SUM(y) FROM t GROUP BY k"
    curator.ask(question, epsilon=2)
    assert len(charges(curator)) == 2
    later = reopened(curator, GAUSSIAN, "y = {low = 0, high = 10", "y = {low = 0, high = 20")
    later.ask(question, epsilon=2)
    assert len(charges(later)) == 4
    by_other_keys = reopened(curator, GAUSSIAN, 'keys = ["a", "b", "c"]', 'keys = ["a", "b"]')
    by_other_keys.ask(question, epsilon=2)
    assert len(charges(by_other_keys)) == 6


def test_a_private_join_keeps_its_steps_to_the_policy_as_it_is(tmp_path):
    """Which rows are joined depends on a hash of all columns, so other descriptions may mean other rows."""
    curator = opened(tmp_path, *DEFAULT, "INSERT INTO s SELECT 'u' || (i % 60), i % 4 FROM range(90) r(i)")
    question = "SELECT COUNT(*) FROM t JOIN s ON t.u = s.u"
    curator.ask(question, epsilon=2)
    later = reopened(curator, GAUSSIAN, 'd = {type = "date"}', 'd = {type = "text"}')
    later.ask(question, epsilon=2)
    assert len(charges(later)) == 4


WITHIN = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


def test_a_retry_with_an_error_is_answered_as_it_was_after_a_better_histogram_was_bought(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    first = curator.ask(WITHIN, error=200, key="mine")
    curator.register(epsilon=12)
    before = charges(curator)
    again = curator.ask(WITHIN, error=200, key="mine")
    assert again.rows == first.rows and not again.charged and charges(curator) == before
    with pytest.raises(KeyReused):
        curator.ask(WITHIN, error=190, key="mine")
    with pytest.raises(KeyReused):
        curator.ask("SELECT COUNT(*) FROM t", error=200, key="mine")
    assert charges(curator) == before, "nothing is bought for a request that is refused"


def test_a_retry_with_an_error_after_a_crash_runs_under_the_charge_that_was_made(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    with pytest.raises(Crash):
        crashing(curator, "noise: drawn", 2).ask(WITHIN, error=200, key="mine")
    made, paid = charges(curator), spent(curator)
    assert len(made) == 2
    answer = curator.ask(WITHIN, error=200, key="mine")
    assert charges(curator) == made and spent(curator) == paid
    assert curator.ask(WITHIN, error=200, key="mine").rows == answer.rows
    curator.ledger.verify()


def test_a_retry_with_an_error_after_a_crash_and_a_better_histogram_costs_nothing_more(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    with pytest.raises(Crash):
        crashing(curator, "noise: drawn", 2).ask(WITHIN, error=200, key="mine")
    curator.register(epsilon=12)
    made = charges(curator)
    assert curator.ask(WITHIN, error=200, key="mine").rows
    assert charges(curator) == made
    curator.ledger.verify()


def test_a_retry_with_an_error_pays_for_a_step_once(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    with pytest.raises(Crash):
        crashing(curator, "noise: drawn", 1).ask(WITHIN, error=200, key="mine")
    assert len(charges(curator)) == 1
    curator.ask(WITHIN, error=200, key="mine")
    assert len(charges(curator)) == 2


def test_a_retry_with_an_error_gives_the_same_answer_after_the_data_have_changed(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    first = curator.ask(WITHIN, error=200, key="mine")
    curator.ledger.new_version("new rows")
    before = charges(curator)
    assert curator.ask(WITHIN, error=200, key="mine").rows == first.rows and charges(curator) == before


def test_under_pure_epsilon_one_histogram_of_counts_serves_every_grouping(tmp_path):
    curator = opened(tmp_path, *DEFAULT, budget=PURE)
    by = ("SELECT k, COUNT(*) FROM t GROUP BY k", "SELECT MONTH(d) AS m, COUNT(*) FROM t GROUP BY m")
    for sql in (*by, "SELECT COUNT(*) FROM t"):
        curator.ask(sql, epsilon=2)
    assert [one.split(" | ")[0] for one in charges(curator)] == ["norms", "t", "t", "t"]
    curator.ask("SELECT COUNT(*) FROM t WHERE y > 3", epsilon=2)
    curator.ask("SELECT k, SUM(y) FROM t GROUP BY k", epsilon=2)
    assert [one.split(" | ")[0] for one in charges(curator)][4:] == ["norms", "t", "norms", "t"], (
        "other rows, other sums"
    )
    curator.ledger.verify()


def test_under_gaussian_budgets_each_grouping_has_norms_of_its_own(tmp_path):
    curator = opened(tmp_path, *DEFAULT)
    for sql in ("SELECT k, COUNT(*) FROM t GROUP BY k", "SELECT COUNT(*) FROM t"):
        curator.ask(sql, epsilon=2)
    assert [one.split(" | ")[0] for one in charges(curator)] == ["norms", "t", "norms", "t"]


def test_a_shared_histogram_has_no_shorter_norm_than_a_grouping(tmp_path):
    """Rows with a key that the policy does not list count in no group: their norms are then too long, never short."""
    unlisted = "INSERT INTO t SELECT 'u' || (i % 60), 'z', 1, 1, 'w', 1, NULL FROM range(300) r(i)"
    curator = opened(tmp_path, *DEFAULT, unlisted, budget=PURE)
    offer = curator.offer("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=2)
    (step,) = Steps.of(offer, curator.ledger).norms
    shared = rows_of(curator, step.requests(1, dialect_in_use(curator.engine))[0])
    scaling = scaling_of(offer.plan, False, dialect_in_use(curator.engine))
    own = rows_of(curator, scaling.request(scaling.histogram(0, histogram_edges(step.blocks[0]))))
    assert sum(own.values()) == sum(shared.values()) == 260
    assert all(
        sum(n for b, n in shared.items() if b >= i) >= sum(n for b, n in own.items() if b >= i) for i in range(60)
    )
    assert shared != own


def rows_of(curator, request):
    return {int(place): int(many) for place, many in curator.engine.run(request.direct)}
