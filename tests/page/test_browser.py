"""The report in a real browser: every view works, sends no request, and shows labels as text."""

import csv
import io
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from page.browser import downloaded, opened, show, some_model
from report.made_posterior import made_posterior
from sequela import Dataset, Model, example_theta, simulate
from sequela.model import as_model
from sequela.questions import next_items, order_matrix, pseudo_times, time_posterior
from sequela.report import ComparedCohort, ReportContent, Verdicts, make_report
from sequela.report.html import Report
from sequela.report.html_content import model_content
from sequela.report.html_payload import build_payload
from sequela.report.run import Run

SECTIONS = [
    "verdicts", "network", "matrices", "progression", "patient", "cohort", "fit", "made",
]  # fmt: skip
HOSTILE = [
    "<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "L" * 5000,
    "&#8238;turned", "שלום עולם", "🧬👩‍⚕️ gene", "javascript:alert(3)",
    '" onmouseover="alert(4)', "=1+1",
]  # fmt: skip


def write(folder, model, samples, *, labels=None, pairs=True):
    """Write the report of a model and of samples drawn from it."""
    data = simulate(model, samples, random_state=1).to_dataset().without_times()
    if labels is not None:
        data = Dataset(data.values, items=data.items, samples=labels)
    top = list(data.frequencies.nlargest(8).index)
    verdicts = Verdicts(order_matrix(model, top, random_state=1).pairs()) if pairs else Verdicts()
    small = samples <= 500
    times = pseudo_times(model, data, random_state=1) if small else guessed_times(data)
    content = ReportContent(model, data, "A report", verdicts, pseudo_times=times)
    path = folder / "report.html"
    Report(build_payload(content)).save(path)
    return path, data


def guessed_times(data):
    """Return made-up pseudo-times, because it takes long to compute true times of 8,000 samples."""
    mean = (1.0 + data.set_sizes) / (1.0 + data.set_sizes.mean())
    return pd.DataFrame({"mean": mean, "q05": 0.4 * mean, "q95": 2.0 * mean})


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    model = some_model(20, 40)
    path, data = write(tmp_path_factory.mktemp("usual"), model, 300)
    return path, model, data


@pytest.mark.parametrize(
    ("n", "samples", "width", "theme"),
    [
        (3, 60, 390, "dark"),
        (20, 300, 1440, "light"),
        (100, 400, 390, "light"),
        (410, 8000, 1440, "dark"),
    ],
)
def test_every_view_opens(browser, tmp_path, n, samples, width, theme):
    path, _ = write(tmp_path, some_model(n, 2 * n), samples)
    view = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
    with opened(browser, path, **view) as page:
        for name in SECTIONS:
            section = show(page, name)
            assert len(section.inner_text()) > 40
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.get_attribute("html", "data-theme") == theme
        page.click("nav button")
        assert page.get_attribute("html", "data-theme") != theme


def test_labels_of_strangers_are_text(browser, tmp_path):
    n = len(HOSTILE)
    theta = np.diag(np.full(n, -0.4))
    theta[0, 1] = theta[2, 3] = 2.0
    theta[4, 5] = -1.5
    names = [f"{HOSTILE[k % n][:60]}#{k}" for k in range(80)]
    path, _ = write(tmp_path, Model(theta, HOSTILE), 80, labels=names)
    with opened(browser, path) as page:
        for name in SECTIONS:
            show(page, name)
        page.locator("#verdicts tbody button").first.click()
        assert page.locator("dialog[open]").count() == 1
        page.keyboard.press("Escape")
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2
        assert "<img src=x onerror" in page.locator("#verdicts").inner_text()
        # Labels must be only in texts: no attribute of any element contains a part of a label.
        marks = ["onerror", "alert(", "LLLL", "turned", "שלום", "=1+1"]
        found = page.evaluate(
            """marks => [...document.querySelectorAll('body *')].flatMap(e => [...e.attributes])
                 .filter(a => marks.some(m => a.value.includes(m) || a.name.includes(m)))
                 .map(a => a.name + '=' + a.value.slice(0, 50))""",
            marks,
        )
        assert found == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_table_sorts_searches_and_filters(browser, usual):
    path, _, data = usual
    with opened(browser, path) as page:
        show(page, "verdicts")
        rows = page.locator("#verdicts tbody tr")
        heads = page.locator("#verdicts thead button")

        def column(k):
            return [row.locator("th,td").nth(k).inner_text() for row in rows.all()]

        heads.nth(0).click()
        assert column(0) == sorted(column(0))
        heads.nth(0).click()
        assert column(0) == sorted(column(0), reverse=True)
        assert page.locator("#verdicts th[aria-sort=descending]").count() == 1
        item = data.frequencies.idxmax()
        page.fill("#verdicts input[type=search]", item.lower())
        assert rows.count() > 0
        pairs = zip(column(0), column(1), strict=True)
        assert all(item in a + b for a, b in pairs)
        page.fill("#verdicts input[type=search]", "no such item")
        assert "Nothing found" in rows.first.inner_text()
        page.fill("#verdicts input[type=search]", "")
        page.locator("#verdicts .table select").select_option(label=item)
        assert rows.count() == 7  # of eight items, this one is in seven pairs
        assert "7 of 28 orders" in page.locator("#verdicts .count").inner_text()


def test_the_question_is_answered_and_says_what_was_not_computed(browser, usual):
    path, model, data = usual
    top = list(data.frequencies.nlargest(2).index)
    with opened(browser, path) as page:
        section = show(page, "verdicts")
        assert "Certainty was not computed" in section.inner_text()
        page.locator("#ask select").nth(0).select_option(label=top[0])
        page.locator("#ask select").nth(1).select_option(label=top[1])
        text = page.locator("#ask .answer").inner_text()
        p = float(order_matrix(model, top).probability.iloc[0, 1])
        first, shown = (top[0], p) if p >= 0.5 else (top[1], 1 - p)
        assert f"{first} came first with probability {shown:.2f}" in text
        assert "not checked" in text


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Return a report of a posterior with all optional parts, and the posterior."""
    theta = example_theta()
    data = simulate(theta, 60, random_state=3).to_dataset().without_times()
    posterior = made_posterior(data, draws=8)
    content = model_content(posterior, data, "All models", seed=1, threads=1)
    clinical = pd.DataFrame(
        {"time": np.arange(60) % 17 + 1.0, "event": np.arange(60) % 3 > 0},
        index=list(data.samples),
    )
    clinical.attrs.update(unit="months", endpoint="OS")
    findings = (
        {"severity": "note", "text": "A note.", "advice": ""},
        {"severity": "warning", "text": "<b>Bad</b> fit.", "advice": "Use clocks."},
    )
    other = ComparedCohort(as_model(theta), "the <other> cohort")
    whole = replace(content, clinical=clinical, comparison=other, findings=findings)
    path = tmp_path_factory.mktemp("everything") / "report.html"
    Report(build_payload(whole)).save(path)
    return path, posterior


def test_a_posterior_is_shown_with_its_uncertainty(browser, everything):
    path, posterior = everything
    with opened(browser, path) as page:
        assert "NOT converged" in page.locator("header.top").inner_text()
        section = show(page, "verdicts")
        heads = section.locator("thead").inner_text()
        for name in ("90% interval", "usually first", "evidence (log odds)", "R\u2011hat"):
            assert name in heads
        first = posterior.orders().iloc[0]
        answer = section.locator(".answer").inner_text()
        assert f"{first['first']} came before {first['second']}" in answer
        section = show(page, "network")
        chosen = section.get_by_label("probability at least")
        chosen.fill("0.9")
        table = posterior.interactions()
        assert section.locator(".edge").count() == min(int((table["present"] >= 0.9).sum()), 30)
        opacities = [float(e.get_attribute("opacity")) for e in section.locator(".edge").all()]
        assert min(opacities) >= 0.9
        chosen.fill("0")
        opacities = [float(e.get_attribute("opacity")) for e in section.locator(".edge").all()]
        assert min(opacities) < 0.9
        # The answers for a patient are means of the answers of all draws.
        section = show(page, "patient")
        section.get_by_label("Remove all items").click()
        labels = list(posterior.items[:3])
        for item in labels:
            section.locator("input[type=search]").nth(1).fill(item)
            section.locator(".chip", has_text=re.compile(f"^{re.escape(item)}$")).click()
        section.locator("[data-figure=time-density]").wait_for()
        said = section.locator(".answer").inner_text()
        shown = float(re.search(r"at about ([\d.]+)", said).group(1))
        mean = np.mean([time_posterior(model, labels).mean for model in posterior.models()])
        assert shown == pytest.approx(mean, rel=5e-3)


def test_survival_another_cohort_and_findings_are_shown(browser, everything):
    path, _ = everything
    with opened(browser, path) as page:
        section = show(page, "cohort")
        survival = section.locator("[data-figure=survival]")
        said = survival.locator("svg").text_content()
        for part in ("early (n = 3", "late (n = 2", "log-rank test", "time (months)"):
            assert part in said
        assert "The median survival time of early samples" in section.inner_text()
        assert "the <other> cohort share 10 items" in section.inner_text()
        pairs = section.locator("[data-figure=cohort-comparison]")
        assert pairs.locator(".dot").count() == 45
        marked = pairs.locator(".dot.far").count()
        section.get_by_label("mark differences above").fill("0.9")
        assert pairs.locator(".dot.far").count() < marked
        found = show(page, "fit").locator(".findings .callout")
        assert found.count() == 2
        assert found.first.inner_text().startswith("Warning: <b>Bad</b> fit.")
        assert "Use clocks." in found.first.inner_text()


def test_dropped_items_are_counted_even_if_not_all_are_listed(browser, tmp_path):
    names = [f"rare {k}" for k in range(700)]
    summary = {
        "kind": "a table", "samples_read": 9, "samples_kept": 9, "items_read": 702,
        "items_kept": 2, "median_size": 1, "largest_size": 2, "empty_samples": 0,
        "dropped_samples": [], "dropped_items": [{"reason": "too rare", "names": names}],
    }  # fmt: skip
    data = {"path": "samples.csv", "sha256": "0" * 64, "import_summary": summary}
    content = ReportContent(Model(np.zeros((2, 2))), None, "Dropped")
    path = tmp_path / "report.html"
    Report(build_payload(replace(content, run=Run("fit", {}, data)))).save(path)
    with opened(browser, path) as page:
        section = show(page, "fit")
        listed = section.locator("details", has_text="700 items dropped, too rare")
        assert listed.locator(".names").text_content().endswith("rare 199 and 500 more")


def test_the_network_is_dragged_zoomed_and_filtered(browser, usual):
    path, model, _ = usual
    with opened(browser, path) as page:
        section = show(page, "network")
        node = section.locator(".node").first
        before = node.get_attribute("transform")
        box = node.locator("circle").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + 60, box["y"] + 40, steps=4)
        page.mouse.up()
        assert node.get_attribute("transform") != before
        inner = section.locator("svg.plot > g").first
        zoomed = inner.get_attribute("transform")
        section.get_by_label("Zoom in").click()
        assert inner.get_attribute("transform") != zoomed
        section.locator("select").first.select_option("promotes")
        promoting = int((model.interactions()["effect"] > 0).sum())
        assert section.locator(".edge").count() == min(promoting, 30)
        assert section.locator(".edge.inhibits").count() == 0
        section.locator(".node").nth(1).focus()
        page.keyboard.press("Enter")
        assert "What acts on it" in page.locator("dialog[open]").inner_text()


def test_heat_maps_are_read_with_the_keyboard(browser, usual):
    path, model, data = usual
    first, second = data.frequencies.sort_values(ascending=False, kind="stable").index[:2]
    with opened(browser, path) as page:
        show(page, "matrices")
        page.focus("[data-figure=theta] svg")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        said = page.locator("[data-figure=theta] .readout").inner_text()
        assert said.startswith(f"{first} on the rate of {second}")
        effect = model.to_frame().loc[first, second]
        assert ("no effect" in said) == (effect == 0.0)


def test_a_patient_is_put_together_from_items(browser, usual):
    path, model, data = usual
    chosen = sorted(data.frequencies.nlargest(4).index)
    with opened(browser, path) as page:
        section = show(page, "patient")
        section.get_by_label("Remove all items").click()
        assert "no items" in section.locator(".patient-set").inner_text()
        for item in chosen:
            section.locator("input[type=search]").nth(1).fill(item)
            section.locator(".chip", has_text=re.compile(f"^{re.escape(item)}$")).click()
        said = section.locator(".answer").inner_text()
        posterior = time_posterior(model, chosen)
        shown = float(re.search(r"at about ([\d.]+)", said).group(1))
        assert shown == pytest.approx(posterior.mean, rel=5e-3)
        best = next_items(model, chosen).items["share"]
        figure = section.locator("[data-figure=next-items] svg").text_content()
        assert best.index[0] in figure
        assert f"{100 * best.iloc[0]:.0f}%" in figure or f"{100 * best.iloc[0]:.1f}%" in figure
        # Then choose a sample of the cohort by its name.
        section.locator("input[type=search]").nth(0).fill("17")
        section.locator(".found button").first.click()
        assert section.locator(".patient-set").inner_text().startswith("Sample")


def test_figures_and_tables_are_downloaded(browser, usual):
    path, _, data = usual
    with opened(browser, path, accept_downloads=True) as page:
        show(page, "verdicts")
        text = downloaded(page, page.locator("#verdicts .download")).read_text("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == 28
        assert {"first", "then", "probability"} <= set(rows[0])
        assert 0.0 <= float(rows[0]["probability"]) <= 1.0
        for name in ("network", "progression", "matrices", "cohort", "fit"):
            show(page, name)
        for figure in page.locator("figure.figure").all():
            saved = downloaded(page, figure.get_by_label("Download this figure as SVG"))
            root = ET.fromstring(saved.read_bytes())  # noqa: S314 - our own page
            assert root.tag.endswith("svg")
            assert len(list(root.iter())) > 5
        # Figures are saved in light colours, even if the page is shown in dark colours.
        page.click("nav button")
        saved = downloaded(page, page.locator("[data-figure=theta]").get_by_label("as SVG"))
        assert 'fill="rgb(255, 255, 255)"' in saved.read_text()
        assert page.get_attribute("html", "data-theme") == "dark"
        saved = downloaded(page, page.locator("[data-figure=order-matrix]").get_by_label("as PNG"))
        assert saved.read_bytes().startswith(b"\x89PNG")
        assert data.n_items == 20


def test_every_control_has_a_name(browser, usual):
    path, _, _ = usual
    with opened(browser, path) as page:
        for name in SECTIONS:
            show(page, name)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll('button, select, input')].filter(e =>
                 !e.getAttribute('aria-label') && !e.textContent.trim() &&
                 !(e.labels && e.labels.length))
                 .map(e => e.outerHTML.slice(0, 80))"""
        )
        assert nameless == []
        assert page.locator("h1").count() == 1
        assert page.get_attribute("html", "lang") == "en"


def test_it_prints_with_every_section(browser, usual, tmp_path):
    path, _, _ = usual
    with opened(browser, path, color_scheme="dark") as page:
        page.pdf(path=tmp_path / "report.pdf", format="A4")
        page.wait_for_selector("#made[data-drawn]")
        assert all(page.get_attribute(f"#{name}", "data-drawn") == "yes" for name in SECTIONS)
    assert (tmp_path / "report.pdf").stat().st_size > 50_000


def test_wide_tables_fit_on_paper(browser, everything):
    path, _ = everything
    with opened(browser, path, viewport={"width": 720, "height": 1000}) as page:
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.wait_for_selector("#made[data-drawn]")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_notebook_shows_it_in_a_frame_of_its_own(browser):
    report = make_report(example_theta(), title="In a notebook")
    page = browser.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.set_content(f"<p>a cell</p>{report._repr_html_()}")
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready=yes]").wait_for()
    assert frame.locator("h1").inner_text() == "In a notebook"
    frame.locator("#network").scroll_into_view_if_needed()
    frame.locator("#network .node").first.wait_for()
    page.close()
    assert wrong == []
