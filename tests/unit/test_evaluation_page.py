"""The page of an evaluation: its numbers are the computed ones, nothing in it acts, and everybody can read it."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest

from host.commands.release_report import own_of
from host.evaluation.codes import PROBLEMS, Code
from host.evaluation.counted import PerItem, Rate
from host.evaluation.gate import gate
from host.evaluation.page.cases import LISTED_MAX, SHOWN_MAX
from host.evaluation.page.figures import HELD, MEANT, RATES
from host.evaluation.page.write import write
from host.evaluation.score import scored
from host.workflows.catalogue import CURRENT
from shared_contracts.base import dump, parse
from shared_contracts.evaluation_report import Got
from tests.support.evaluations import cases, conditions, limits, raw, report, struck
from tests.support.html_pages import Page, contrast, read
from tests.support.planted import planted

PICTURES = ("outcome", "ends", "funnel", "calls", "faults", "reasons", "cost", "latency")
OF_SVG = {"svg", "title", "desc", "g", "path", "line", "text"}
HOSTILE = (
    "</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</svg></title><a href='javascript:x'>",
    "&amp;&", "返品の申込み", "𠮷野家🍎", "\u202egpj.exe", "]]><!--", "'\"`",
)  # fmt: skip


def mixed() -> list[dict[str, Any]]:
    """All cases, and one more of everything that can be wrong."""
    made = cases()
    for n, code in enumerate(Code):
        made.append(planted(code) | {"id": f"planted-{n}"})
    for n, one in enumerate(made):
        one["got"]["seconds"] = (n * 37 % 101) / 8
    return made


MIXED = report(mixed())
VIEW = gate(MIXED)
PAGE = read(write(MIXED))


def told(of: Rate | PerItem) -> str:
    return f"{'none' if of.value is None else of.value} ({of.of}/{of.n})"


def words(values: Any) -> list[str]:
    return ["-" if one is None else str(one) for one in values]


def test_the_rates_of_each_category_stand_with_what_they_were_counted_from():
    of = VIEW.measures
    rows = [(one.category.value, one.n, one.rates) for one in of.categories] + [("all", of.n, of.rates)]
    due = [[name, str(n), *(told(getattr(rates, what)) for what in RATES)] for name, n, rates in rows]
    assert PAGE.tables["outcome"][1][1:] == due
    assert len(due) == 10


def test_every_rate_of_the_page_is_said_what_it_is_of():
    assert list(MEANT) == PAGE.tables["outcome"][1][0][2:]


def test_every_case_has_one_outcome_and_those_as_expected_are_the_matched():
    _, *rows = PAGE.tables["outcome"][0]
    for row, rates in zip(rows[:-1], VIEW.measures.categories, strict=True):
        name, n, good, bad, severe = row
        assert (name, n, good) == (rates.category.value, str(rates.n), str(rates.rates.matched.of))
        assert int(good) + int(bad) + int(severe) == int(n)
    assert int(rows[-1][4]) == len({one.id for one in VIEW.severe})


def test_end_states_of_the_categories_add_up_to_those_of_the_funnel():
    head, *rows = PAGE.tables["ends"][0]
    ended = {one.state: one.ended for one in VIEW.measures.funnel}
    for place, state in enumerate(head[2:-1], 2):
        assert int(rows[-1][place]) == ended[state] == sum(int(row[place]) for row in rows[:-1])
    assert sum(map(int, rows[-1][2:])) == int(rows[-1][1]) == VIEW.measures.n


def test_the_funnel_and_the_faults_are_the_measured_ones():
    funnel = [words((s.state, s.reached, s.ended, s.furthest, s.lost)) for s in VIEW.measures.funnel]
    assert PAGE.tables["funnel"][0][1:] == funnel
    faults = [words((one.kind.value, one.n, *(getattr(one, what) for what in HELD))) for one in VIEW.measures.faults]
    assert PAGE.tables["faults"][0][1:] == faults
    drawn = [f"{getattr(one, what)}/{one.n}" for one in VIEW.measures.faults for what in HELD]
    assert [text for text in PAGE.drawn["faults"] if "/" in text] == drawn
    for row, one in zip(PAGE.tables["faults"][1][1:], VIEW.measures.faults, strict=True):
        assert sum(map(int, row[2:])) == int(row[1]) == one.n


def test_reasons_are_ranked_and_drawn_as_they_are():
    ranked = [(one.handover_reason or "none recorded", one.cases) for one in VIEW.measures.handover_reasons]
    n = sum(cases for _, cases in ranked)
    assert PAGE.tables["reasons"][0][1:] == [words((at, why, cases, n)) for at, (why, cases) in enumerate(ranked, 1)]
    assert [text for text in PAGE.drawn["reasons"] if ". " in text] == [
        f"{at}. {why}" for at, (why, _) in enumerate(ranked, 1)
    ]


def test_calls_and_costs_are_the_counted_ones():
    of, cost = VIEW.measures, VIEW.cost
    together, beside, by_number = PAGE.tables["calls"]
    assert together[1] == [str(of.calls), str(of.rates.calls.n), told(of.rates.calls)]
    assert beside[1] == words((of.retries, of.engine_reads, of.undoing_calls, of.refused_proposals))
    assert sum(int(n) for _, n in by_number[1:]) == of.n
    assert sum(int(calls) * int(n) for calls, n in by_number[1:]) == of.calls
    *parts, whole = PAGE.tables["cost"][0][1:]
    assert [(row[0], row[4]) for row in parts] == [(one.name, f"{one.cost:.2f}") for one in cost.parts]
    assert whole[4] == f"{cost.total:.2f}"
    assert f"{cost.per_item:.2f}" in PAGE.texts["cost"]
    assert {f"{one.cost:,.2f}" for one in cost.parts} <= set(PAGE.drawn["cost"])


def test_latency_gives_values_that_were_seen_by_nearest_rank():
    made = [raw(f"n-{n}") for n in range(1, 11)]
    for n, one in enumerate(made, 1):
        one["got"] |= {"seconds": float(n), "active_seconds": n / 10}
    wall, work = read(write(report(made))).tables["latency"]
    assert wall[1:] == [[name, "10", "1.00", "3.00", "5.00", "8.00", "9.00", "10.00"] for name in ("normal", "all")]
    assert work[1] == ["normal", "10", "0.10", "0.30", "0.50", "0.80", "0.90", "1.00"]


def test_each_picture_says_what_it_shows_and_has_its_table_beside_it():
    page = write(MIXED)
    assert PAGE.pictures == list(PICTURES)
    for name in PICTURES:
        assert f'<svg role="img" aria-labelledby="{name}-title {name}-told"' in page
        assert re.search(f'<title id="{name}-title">[^<]+</title><desc id="{name}-told">[^<]+</desc>', page)
        assert PAGE.tables[name]
    assert PAGE.elements_of_pictures == OF_SVG


@pytest.mark.parametrize("code", Code)
def test_what_is_wrong_is_told_in_full_and_what_is_severe_or_breaks_a_condition_leads_there(code: Code):
    name, row = f"planted-{list(Code).index(code)}", PROBLEMS[code]
    assert (3, name) in PAGE.headings
    assert [name, code.value] in [[line[0], line[-1]] for line in PAGE.cells("all")]
    verdict = PAGE.cells("verdict")
    assert ([name, code.value] in [line[:2] for line in verdict]) is row.severe
    broken = {line[0] for line in verdict if line[1:] == [name]}
    assert broken == ({row.breaks.value} if row.breaks is not None else set())
    place = f'id="{PAGE.place_of(name)}">{name}</h3>'
    assert place in PAGE.source
    assert PAGE.links["verdict"].count(f"#{PAGE.place_of(name)}") == row.severe + (row.breaks is not None)


def test_what_was_expected_of_a_wrong_case_stands_beside_what_was_seen():
    one = planted(Code.STATE_DIFFERS)
    made = read(write(report([raw("good"), one])))
    assert made.headings[-4] == (3, "planted")
    assert "not passed" in made.texts["top"]
    problems, beside = made.tables["wrong"]
    assert problems[1][0] == "state_differs"
    rows = {line[0]: line[1:] for line in beside[1:]}
    assert rows["state"] == ["COMPLETED", "REJECTED"]
    assert rows["calls"] == ["at most 6", "4"]
    assert rows["returns"] == ["1", "1"]


def test_a_good_report_says_passed_first_and_what_it_does_not_show_next():
    made = read(write(report()))
    assert made.headings[0] == (1, "Evaluation before production, 2026-08-01 09:00 UTC, build 0.1.0: passed")
    assert [name for _, name in made.headings[1:3]] == ["Verdict", "What this report does not show"]
    assert [row[1] for row in made.tables["verdict"][0][1:]] == ["held"] * 6
    assert "Nothing about any model: conformance asks none" in made.texts["not-shown"]
    assert "rates are settings" in made.texts["not-shown"]
    asked = read(write(report(conditions=conditions(planner="vendor", model="some-model"))))
    assert "Nothing about any model" not in asked.texts["not-shown"]
    assert "some-model" in asked.texts["versions"]


def test_a_run_of_faults_says_at_once_that_it_is_no_whole_one_and_what_its_faults_show():
    made = read(write(report(struck(), scope="faults", build="0" * 64)))
    assert made.headings[0] == (1, "Evaluation of faults alone, 2026-08-01 09:00 UTC, build 000000000000: passed")
    assert "no pre-production evaluation, no release passes by it" in made.texts["top"]
    assert ["recovers", "shown"] in [row[:2] for row in made.cells("verdict")]


def poisoned(text: str) -> Page:
    """Put one text into everything that is free text."""
    fault = planted(Code.FAULT_UNPROVED)
    fault["evidence"]["details"] = [text]
    fault["fault"]["tool"] = fault["got"]["told_ja"] = text
    person = planted(Code.NO_CLASS)
    person["got"] |= {"handover_reason": text, "reason": text, "path": [text], "approver": text}
    lost = planted(Code.NOT_ENDED)
    lost["got"] |= {"state": text, "reached": [text], "wrong_returns": [text], "wrong_notices": [text]}
    made = [one | {"id": f"p-{n}"} for n, one in enumerate((fault, person, lost))]
    told = dict.fromkeys(("order_snapshot", "policy", "authz", "workflow_release", "planner", "model"), text)
    compared = {"compared": 1, "external": 0, "untracked": [text], "missing": [text], "duplicate": [text]}
    changes: dict[str, Any] = {"conditions": conditions(**told, tools={text: text}), "compared": compared}
    tests = [{"tool": text, "version": text, "build": text, "passed": 1, "of": 1}]
    stops = [{"cause": text, "reason": text, "workflow_id": None}]
    return read(write(report(made, **changes, stops=stops, stopped=[text], build=text, contract_tests=tests)))


PLAIN = poisoned("plain")


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_case_adds_no_element_and_no_attribute(text: str):
    made = poisoned(text)
    assert made.elements == PLAIN.elements
    assert {name for name, _ in made.attributes} == {name for name, _ in PLAIN.attributes}
    assert made.elements_of_pictures == PLAIN.elements_of_pictures <= OF_SVG
    assert not any(name.startswith("on") or name == "style" for name, _ in made.attributes)
    seen = "".join(letter if letter.isprintable() else "�" for letter in text)
    assert f"1. {seen}" in made.drawn["reasons"]
    assert {seen} < set(made.drawn["funnel"])
    for part in ("verdict", "wrong", "versions", "sides"):
        assert seen in made.texts[part]
    assert all(letter.isprintable() or letter == "\n" for letter in made.source)


def test_no_text_of_a_cases_request_is_in_its_report_or_on_its_page():
    """Ids, codes and counts: what the customer wrote, whose name stands where and why the case is in the set do not."""
    words = "山田花子 ０９０－１１１１－２２２２ canary-3e7f"
    entries = []
    for case in own_of(CURRENT["returns"]).cases.cases:
        assert "message" in case.request
        said = case.model_copy(update={"why": words, "request": dict.fromkeys(case.request, words)})
        got = parse(Got, raw(case.id, case.category)["got"] | {"state": "NEEDS_REVIEW"})  # wrong, so that much is told
        entries.append(dump(scored(said, got, None, limits())))
    made = report(entries)
    told_of = str(dump(made)) + write(made)
    assert all(entry["problems"] for entry in entries if entry["expected"]["state"] != "NEEDS_REVIEW")
    assert len(told_of) > 100_000
    assert [word for word in words.split() if word in told_of] == []


def test_the_browser_may_take_this_one_style_and_nothing_else():
    page = PAGE.source
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in page
    assert re.search(r"url\(|@import|https?:|xlink", page) is None
    assert not PAGE.elements & {"script", "img", "iframe", "object", "embed", "form", "base", "image", "use"}
    assert "src" not in {name for name, _ in PAGE.attributes}


def test_every_link_leads_to_one_place_of_the_page():
    places = [value for name, value in PAGE.attributes if name == "id"]
    assert len(places) == len(set(places))
    targets = {value for name, value in PAGE.attributes if name == "href"} - {"data:,"}
    assert {f"#{place}" for place in places} >= targets
    named = {one for name, value in PAGE.attributes if name == "aria-labelledby" and value for one in value.split()}
    assert named <= set(places)


def test_headings_stand_in_order_and_the_page_says_its_language():
    levels = [level for level, _ in PAGE.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert ("lang", "en") in PAGE.attributes
    wide = PAGE.source.count('<div class="wide" tabindex="0" role="region" aria-label="')
    assert wide == PAGE.source.count("<table>") > 20


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_words_and_pictures_can_be_told_from_what_they_stand_on(scheme: str):
    colours = PAGE.colours(scheme)
    for word in ("ink", "link", "good", "severe"):
        assert contrast(colours[word], colours["paper"]) >= 4.5, word
    for below in ("good", "bad", "none"):
        assert contrast(colours["on"], colours[below]) >= 4.5, below
    for shape in ("good", "bad", "severe", "blue", "ochre", "violet", "none"):
        assert contrast(colours[shape], colours["paper"]) >= 3, shape
    used = set(re.findall(r"var\(--(\w+)\)", PAGE.source))
    assert used <= set(colours)


def test_a_report_of_nothing_is_a_page_that_says_so():
    made = read(write(report([])))
    assert made.headings[0][1].endswith("not passed")
    assert made.tables["outcome"][1][1:] == [["all", "0", *["none (0/0)"] * len(RATES)]]
    assert "none" in made.texts["cost"]
    assert made.pictures == ["funnel", "faults", "cost"]
    assert "no case" in made.drawn["faults"]


def test_the_same_report_gives_the_same_bytes_and_not_too_many():
    whole = write(report())
    assert whole == write(report())
    assert len(whole.encode()) < 300_000
    wrong = [planted(Code.TOLD_DIFFERS) | {"id": f"wrong-{n}"} for n in range(700)]
    for one in wrong:
        one["got"]["told_ja"] = "失" * 5000
    severe = planted(Code.DUPLICATE_NOTICE) | {"id": "severe-1"}
    made = write(report([*wrong, severe]))
    assert len(made.encode()) < 1_000_000
    page = read(made)
    assert f"701 of 701 cases are not as expected, of which {SHOWN_MAX} are shown" in page.texts["wrong"]
    assert next(name for level, name in page.headings if level == 3) == "severe-1"  # a severe one is never cut off
    assert f"{701 - LISTED_MAX} more cases are not listed here" in page.texts["all"]
    assert "… (4700 letters more)" in page.texts["wrong"]
