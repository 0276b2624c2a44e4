"""The certainty of orders in the report, in a browser: answers, tables, choices and colours."""

import pandas as pd
import pytest

from page.browser import downloaded, opened, show, some_model
from sequela import simulate
from sequela.questions import Verdict
from sequela.report import ReportContent, Verdicts
from sequela.report.html import Report
from sequela.report.html_payload import build_payload
from sequela.report.html_verdicts import find_verdicts


def test_certainty_is_shown_where_it_is_known(browser, tmp_path):
    model = some_model(4, 4)
    table = pd.DataFrame(
        {"first": ["GENE0", "GENE1"], "second": ["GENE1", "GENE2"], "probability": [0.84, 0.97],
         "low": [0.42, 0.91], "high": [0.93, 0.99], "baseline": ["GENE1", "GENE1"]}
    )  # fmt: skip
    certainty = model.interactions()[["from", "to"]].assign(sign_probability=0.6)
    content = ReportContent(model, None, "Ranges", Verdicts(table, "range"), certainty)
    path = tmp_path / "report.html"
    Report(build_payload(content)).save(path)
    with opened(browser, path) as page:
        text = show(page, "verdicts").inner_text()
        assert "0.42 to 0.93" in text
        saved = downloaded(page, page.locator("#verdicts .download"))
        assert "no,0.84,0.42,0.93" in saved.read_text("utf-8-sig")
        page.locator("#ask select").nth(0).select_option(label="GENE1")
        page.locator("#ask select").nth(1).select_option(label="GENE0")
        answer = page.locator("#ask .answer").inner_text()
        assert "GENE0 came first with probability 0.84" in answer
        assert answer.startswith("No, the data cannot tell")
        assert "suggests the opposite order" in answer
        show(page, "network")
        assert "certainty at least" in page.locator("#network").inner_text()
        opacity = page.locator("#network .edge").first.get_attribute("opacity")
        assert float(opacity) == pytest.approx(0.2)


def test_checked_orders_come_first_and_the_others_are_marked(browser, tmp_path):
    model = some_model(4, 4)
    orders = pd.DataFrame(
        {"first": ["GENE0", "GENE1"], "second": ["GENE1", "GENE2"], "probability": [0.99, 0.6]}
    )
    ranges = pd.DataFrame(
        {"first": ["GENE2", "GENE0"], "second": ["GENE1", "GENE3"], "probability": [0.4, 0.7],
         "low": [0.1, 0.6], "high": [0.9, 0.8], "evidence": [0.1, 4.0],
         "verdict": ["the data cannot tell", "the data can tell"]}
    )  # fmt: skip
    verdicts = find_verdicts(orders, None, "fit", "data", ranges)
    path = tmp_path / "report.html"
    Report(build_payload(ReportContent(model, None, "Ranges", verdicts))).save(path)
    with opened(browser, path) as page:
        section = show(page, "verdicts")
        rows = [row.inner_text() for row in section.locator("tbody tr").all()]
        assert [row.split()[:2] for row in rows[:2]] == [["GENE0", "GENE3"], ["GENE2", "GENE1"]]
        assert rows[2].startswith("Not checked: these are guesses of one model")
        assert "not checked" in rows[3]
        assert len(rows) == 4
        assert "Of 2 orders that were checked, the data can tell 1 and cannot tell 1" in (
            section.inner_text()
        )
        assert section.locator(".answer").inner_text().startswith("Yes, the data can tell: GENE0")
        section.get_by_label("show", exact=True).select_option("unchecked")
        assert section.locator("tbody tr").count() == 1
        # For a pair that was not checked, the answer shows a command that checks it.
        section.get_by_label("Which came first,").select_option("GENE1")
        section.get_by_label("or", exact=True).select_option("GENE0")
        said = section.locator(".answer").inner_text()
        assert said.startswith("Not known: whether the data can tell was not checked")
        first, second = rows[3].split()[:2]
        commands = section.locator(".answer code").all_inner_texts()
        assert commands[0].endswith(f'-o fit/rivals.csv --pair "{first},{second}"')
        assert commands[1] == "sequela report fit"


def test_orders_that_depend_on_effects_on_the_observation_have_their_own_verdict(browser, tmp_path):
    model = some_model(3, 3)
    orders = pd.DataFrame(
        {"first": ["GENE0"], "second": ["GENE1"], "probability": [0.9], "verdict": "not checked"}
    )
    ranges = pd.DataFrame(
        {"first": ["GENE0", "GENE2"], "second": ["GENE1", "GENE0"], "probability": [0.9, 0.6],
         "low": [0.8, 0.3], "high": [0.95, 0.8], "evidence": [4.0, 0.1],
         "verdict": [Verdict.DEPENDS.value, Verdict.CANNOT_TELL.value]}
    )  # fmt: skip
    data = simulate(model, 50, random_state=1).to_dataset().without_times()
    verdicts = find_verdicts(orders, None, "fit", "data", ranges)
    path = tmp_path / "report.html"
    Report(build_payload(ReportContent(model, data, "Effects", verdicts))).save(path)
    with opened(browser, path) as page:
        section = show(page, "verdicts")
        marks = section.locator("tbody .verdict")
        assert marks.all_inner_texts() == ["⇄ not sure", "✗ no"]
        colours = [mark.evaluate("e => getComputedStyle(e).color") for mark in marks.all()]
        assert len(set(colours)) == 2
        said = section.inner_text()
        assert "the data can tell 0 and cannot tell 1. The verdict of 1 order is “not sure”" in said
        answer = section.locator(".answer").inner_text()
        assert answer.startswith("Not sure: GENE0 came before GENE1 in this model, but the order")
        assert "According to the model without this influence, GENE0 came first" in answer
        assert "0.80 to 0.95" in answer
        section.get_by_label("show", exact=True).select_option(Verdict.DEPENDS.value)
        assert section.locator("tbody tr").count() == 1
        saved = downloaded(page, section.locator(".download")).read_text("utf-8-sig")
        assert "GENE0,GENE1,not sure,0.9" in saved
        section.locator("tbody .link").first.click()
        assert "before GENE1 with probability 0.90 ⇄ not sure" in " ".join(
            page.locator("dialog").inner_text().split()
        )
        page.keyboard.press("Escape")
        patient = show(page, "patient")
        patient.get_by_label("Remove all items").click()
        for item in ("GENE0", "GENE1"):
            patient.locator(".chip", has_text=item).click()
        patient.locator("[data-table=patient-orders] .verdict.depends").wait_for()
        assert "The verdict of one is “not sure”" in patient.inner_text()
