"""The questions of a reviewer, after NIST SP 800-226, each with sfumato's answer and the tests that check it.

The questions follow the themes of "Guidelines for Evaluating Differential Privacy Guarantees" (NIST, March 2025), from
ε at the top of its pyramid to data collection at the bottom. They are in our words and based on public summaries, so a
reviewer should compare them with the publication itself. A theme that is not covered says so.
"""

from dataclasses import dataclass

CHECKED, PARTLY, STATED, ABSENT = "checked", "partly", "stated", "not offered"


@dataclass(frozen=True)
class NistQuestion:
    """One question: the answer, whether a machine checks it, and the tests (`file::test`) or pages that do."""

    number: int
    theme: str
    question: str
    answer: str
    status: str
    evidence: tuple[str, ...]


ROWS = (
    NistQuestion(1, "ε and other parameters", "Are ε and δ stated, for each release and in total?",
        "Every preview and answer states its ε and δ; the ledger states what is promised, spent and left. δ is not "
        "compared with the number of people, which is private: choose it well below one over that number.", CHECKED,
        ("tests/cli/test_ask.py::test_a_question_is_previewed_asked_and_accounted",
         "tests/cli/test_ledger.py::test_a_ledger_is_made_charged_verified_and_reported")),
    NistQuestion(2, "unit of privacy", "Event or user? Of which table?",
        "A unit is declared for every private table. The groups and rows that one unit contributes are bounded before "
        "anything is aggregated.", CHECKED,
        ("tests/sql/emit/test_bounding.py::test_a_person_moves_few_groups_and_each_a_little",
         "tests/sql/parse/test_joins.py::test_a_person_moves_few_groups_and_each_a_little")),
    NistQuestion(3, "neighbouring data sets", "Which relation, and does the sensitivity match it?",
        "Every loss carries its neighbour relation as a type, and losses of different relations cannot be added. A "
        "curator's relation is add/remove of all rows of one unit.", CHECKED,
        ("tests/loss/test_bad_input.py::test_relations_are_never_mixed",
         "tests/loss/kinds/test_group.py::test_replacing_is_removing_and_adding_in_the_worse_order",
         "tests/mutants/test_mutants.py::test_a_planted_bug_is_found_and_nothing_without_it")),
    NistQuestion(4, "variants of the definition",
        "Are pure, approximate, zCDP, Rényi and f-DP converted, not compared raw?",
        "Everything is priced by the privacy loss, and all of these are views of it, certified from both sides.",
        CHECKED,
        ("tests/checks/test_laws.py::test_trade_off_and_profile_are_conjugate",
         "tests/checks/test_laws.py::test_rho_covers_the_renyi_curve",
         "tests/checks/test_laws.py::test_mu_covers_the_profile",
         "tests/checks/test_laws.py::test_epsilon_inverts_delta")),
    NistQuestion(5, "composition and budget",
        "Is everything counted: adaptive questions, all analysts, over time, renewals?",
        "There is one budget for each data set, which adaptive analysts cannot exceed; shares of analysts divide it; a "
        "renewal is an entry of the owner in the ledger, and is added to the total.", CHECKED,
        ("tests/audit/test_conversation.py::test_what_an_analyst_sees_until_the_end_is_within_the_budget",
         "tests/ledger/test_ledger.py::test_nothing_is_charged_beyond_the_budget",
         "tests/ledger/test_faults.py::test_eight_processes_race_for_one_budget",
         "tests/ledger/test_ledger.py::test_caps_and_plans_are_parts_of_the_whole",
         "tests/ledger/test_ledger.py::test_renewal_is_written_down_and_adds_up")),
    NistQuestion(6, "mixing with exact releases", "Are there invariants, exact row counts, metadata from data?",
        "No exact number is released. The schema and all keys and bounds come from the owner's policy; previews and "
        "refusals read no data.", CHECKED,
        ("tests/curator/test_curator.py::test_a_preview_needs_no_data",
         "tests/sql/parse/test_select.py::test_what_is_not_understood_in_full_is_refused",
         "tests/curator/test_neighbours.py::test_what_an_analyst_sees_beside_values_is_the_same")),
    NistQuestion(7, "basic mechanisms", "Is there a proof, and does the implementation match it?",
        "Every mechanism cites or proves its theorem, draws its noise exactly, and is audited.", CHECKED,
        ("tests/checks/test_mechanisms.py::test_no_audit_refutes_the_loss",
         "tests/checks/test_mechanisms.py::test_the_docstring_cites_a_theorem_and_a_year",
         "tests/mechanisms/attacks/test_refinement.py::test_many_whole_numbers_fit_their_law",
         "tests/mutants/test_mutants.py::test_a_planted_bug_is_found_and_nothing_without_it")),
    NistQuestion(8, "clipping bounds", "Are bounds never taken from data for free?",
        "Bounds are stated in the policy; bounds that are suggested from data are charged to the budget. NaN does not "
        "survive clipping.", CHECKED,
        ("tests/curator/test_suggest_bounds.py::test_they_cost_what_was_said_once",
         "tests/curator/test_suggest_bounds.py::test_one_person_is_in_one_bin",
         "tests/mechanisms/attacks/test_odd_numbers.py::test_what_is_no_number_is_not_seen",
         "tests/mutants/test_mutants.py::test_a_planted_bug_is_found_and_nothing_without_it")),
    NistQuestion(9, "utility", "Are there error bars, and do they leak nothing?",
        "Every number has an interval, computed from public parameters and released values; its coverage is at least "
        "what it states.", CHECKED,
        ("tests/aggregates/test_intervals.py::test_intervals_hold_the_truth_as_often_as_they_say",
         "tests/checks/test_mechanisms.py::test_errors_are_missed_no_more_often_than_said")),
    NistQuestion(10, "bias", "Are small groups, clamped values and negative counts accounted for?",
        "Counts may be negative: nothing is rounded away, so sums stay unbiased. A sketch, charged to the budget, says "
        "what the bounds leave out. Relative errors by group size are shown as intervals, not judged.", PARTLY,
        ("tests/curator/test_contribution_sketch.py::test_previews_say_what_is_left_out",
         "tests/curator/test_curator.py::test_an_answer_is_near_the_truth_and_says_how_near")),
    NistQuestion(11, "classes of queries", "Is the algorithm right for counts, sums, means, extremes, quantiles?",
        "Sums are sums of integers on public lattices; means have Fieller intervals; quantiles, minima and maxima are "
        "chosen by rank and need no bounds on the values.", CHECKED,
        ("tests/aggregates/test_edge_values.py::test_sums_of_edge_values_are_right",
         "tests/aggregates/test_quantile.py::test_a_person_changes_few_groups_and_in_each_few_values",
         "tests/aggregates/test_intervals.py::test_a_ratio_holds_every_number_that_fits")),
    NistQuestion(12, "machine learning",
        "Is the sampling what the accountant assumes; is the search for parameters paid?",
        "No learners are shipped yet. A sampling scheme computes its own amplification and refuses losses of another "
        "relation; training of any kind can be audited by canaries and by membership inference.", PARTLY,
        ("tests/audit/test_canaries.py::test_a_right_training_is_not_accused_and_a_wrong_one_is",
         "tests/checks/test_laws.py::test_sampling_never_costs_more_and_more_sampling_costs_more")),
    NistQuestion(13, "synthetic data", "Is the guarantee that of the mechanism, and not of the word synthetic?",
        "No synthetic data are made.", ABSENT, ()),
    NistQuestion(14, "unstructured data", "Is there a unit at all?",
        "Only tables are supported. A table is public or has a unit: a policy that does not say whose data these are "
        "is refused.", CHECKED, ("tests/sql/test_policy_draft.py::test_a_draft_is_toml_that_waits_for_its_owner",)),
    NistQuestion(15, "query model", "Interactive, with hostile analysts, or one release?",
        "Interactive; analysts may be hostile, collude, and write any text.", CHECKED,
        ("tests/sql/parse/test_text.py::test_no_text_takes_long_or_fails_in_another_way",
         "tests/teach/attacks/test_demonstrations.py::test_what_claims_nothing_falls_and_a_curator_is_not_refuted",
         "tests/teach/attacks/test_demonstrations.py::test_an_exact_interface_gives_away_everything_and_the_curator_nothing")),
    NistQuestion(16, "trust model", "Who is trusted?",
        "The operator, the host and the storage; no analyst. The page of promises states each promise and against whom "
        "it holds, with its test.", CHECKED,
        ("tests/test_promise.py::test_every_line_of_a_table_names_a_test", "docs/promise.md")),
    NistQuestion(17, "floating point", "Is noise exact, are sums exact?",
        "Noise is drawn on integers, answers lie on public lattices, and sums are sums of integers.", CHECKED,
        ("tests/mechanisms/attacks/test_bits.py::test_precision_tells_nothing",
         "tests/mechanisms/attacks/test_bits.py::test_every_answer_can_be_reached_from_every_value",
         "tests/mechanisms/attacks/test_sums.py::test_the_order_of_rows_does_not_matter",
         "tests/mechanisms/attacks/test_sums.py::test_no_sum_wraps")),
    NistQuestion(18, "randomness", "A cryptographic generator, safe across forks, without seeds of users?",
        "AES-256 in counter mode, keyed by the operating system; no bit is used twice, also across forks, threads and "
        "copies.", CHECKED,
        ("tests/noise/test_entropy.py::test_forked_children_have_bits_of_their_own",
         "tests/mechanisms/attacks/test_reuse.py::test_forked_children_do_not_repeat_noise",
         "tests/noise/test_entropy.py::test_the_stream_of_the_system_is_the_default")),
    NistQuestion(19, "side channels", "Time, errors, plans, order of rows?",
        "Nothing that an analyst can write raises in the engine; if the engine fails all the same, the error is one "
        "fixed sentence; response times can be padded to a public quantum. Caches and other processes on the machine "
        "are out of scope.",
        CHECKED,
        ("tests/sql/functions/test_totality.py::test_all_that_is_allowed_is_total",
         "tests/curator/test_neighbours.py::test_what_an_analyst_sees_beside_values_is_the_same",
         "tests/curator/test_response_padding.py::test_an_answer_and_a_failure_take_a_public_time")),
    NistQuestion(20, "security of data", "Is there no way to the data beside the curator?",
        "Engines are opened read-only, errors contain no values, and a service asks for tokens over TLS; protecting "
        "the database from others is the operator's task.", PARTLY,
        ("tests/engines/test_postgres.py::test_nothing_can_be_written",
         "tests/curator/test_curator.py::test_one_error_after_the_charge_whatever_went_wrong")),
    NistQuestion(21, "data collection", "Is what is collected little, encrypted, deleted in time?",
        "Outside the scope of a curator: the owner's task.", STATED, ("docs/promise.md",)),
    NistQuestion(22, "evaluation", "Is there evidence that others can repeat?",
        "This report, made by one command; the same audits find thirty bugs planted in our code, each with a proof.",
        CHECKED,
        ("tests/mutants/test_mutants.py::test_a_planted_bug_is_found_and_nothing_without_it",
         "tests/checks/test_mechanisms.py::test_audits_of_this_size_refute_too_little_noise_and_broken_bits",
         "tests/audit/test_report.py::test_a_wrong_mechanism_is_refuted_in_the_report")),
)  # fmt: skip
