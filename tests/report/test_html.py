"""The HTML report is safe, complete and self-contained. The same folder gives the same page."""

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plots.drawing import STRANGE
from sequela import Dataset, InputError, Model, example_theta, simulate
from sequela.plots import style
from sequela.questions import Verdict, cohort_orders, goodness_of_fit, order_matrix
from sequela.report import (
    FitRunOptions,
    OutputOptions,
    Verdicts,
    make_report,
    run_fit,
    write_report,
)
from sequela.report.html import render_page
from sequela.report.html_folder import read_run_data
from sequela.report.html_verdicts import find_verdicts
from sequela.report.run import Run

ASSETS = Path(style.__file__).parents[1] / "report" / "page"
SOURCES = Path(__file__).parents[2] / "page"
HOSTILE = [
    "<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "<!--", "x" * 5000,
    "&lt;evil&gt;", "שלום عالم", '"&\'', "]]>", "=1+1",
]  # fmt: skip


def payload_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))


@pytest.fixture(scope="module")
def hostile_report():
    theta = np.diag(np.full(len(HOSTILE), -0.5))
    theta[0, 1] = 2.0
    model = Model(theta, HOSTILE)
    data = simulate(model, 60, random_state=1).to_dataset()
    named = Dataset(data.values, items=data.items, samples=[f"<s>{k}" for k in range(60)])
    return make_report(model, named, title=HOSTILE[1])


def test_labels_cannot_leave_the_data(hostile_report):
    page = hostile_report.to_html()
    outside = re.sub(r'id="data">.*?</script>', "", page, flags=re.DOTALL)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "onerror" not in outside
    inside = re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert inside.isascii()
    assert not set("<>&") & set(inside)
    assert payload_of(page)["items"]["labels"] == HOSTILE
    # no label has become a tag: the frame itself has two tags
    assert hostile_report._repr_html_().count("<") == 2


def test_the_policy_allows_the_script_and_the_style_and_nothing_else(hostile_report):
    page = hostile_report.to_html()
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page).group(1)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for name, tag in (("script-src", "<script>"), ("style-src", "<style>")):
        text = page.split(tag)[1].split(tag.replace("<", "</"))[0]
        checksum = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{checksum}'"
    assert not re.search(r"https?://(?!www\.w3\.org/)", page.split('id="data"')[0])


def test_the_page_is_small_without_its_data():
    assert len(render_page({"format": "sequela report"}).encode()) < 2_000_000


def test_the_bundle_is_up_to_date():
    """The committed bundle was built from the current sources. If not, run `make page`."""
    if not SOURCES.exists():
        pytest.skip("the folder with the source of the page does not exist")
    files = [
        *(p for p in (SOURCES / "src").rglob("*") if p.is_file()),
        SOURCES / "package-lock.json",
    ]
    named = sorted((str(p.relative_to(SOURCES)).replace("\\", "/"), p) for p in files)
    found = hashlib.sha256()
    for name, path in named:
        found.update(name.encode())
        found.update(path.read_text("utf-8").replace("\r\n", "\n").encode())
    about = json.loads((ASSETS / "page.json").read_text())
    assert about["sources"] == found.hexdigest()
    licences = (ASSETS / "LICENSES.txt").read_text()
    for package, version in about["packages"].items():
        assert f"{package} {version} (" in licences


def test_the_page_has_the_colours_of_the_figures():
    if not SOURCES.exists():
        pytest.skip("the folder with the source of the page does not exist")
    text = (SOURCES / "src" / "core" / "colours.js").read_text()
    light = text.split("PALETTE = {")[1].split("};")[0]
    colours = re.findall(r"#[0-9a-f]{6}", light)
    expected = [
        style.LINE, style.PROMOTES, style.INHIBITS, *style._BLUES, *style._ORANGES, "#f7f7f7",
        *style._COLOURS,
    ]  # fmt: skip
    assert colours == expected


def test_the_payload_says_what_python_says():
    theta = example_theta()
    data = simulate(theta, 200, random_state=2).to_dataset().without_times()
    payload = make_report(theta, data, title="An example").payload
    items = payload["items"]["labels"]
    model = payload["model"]
    again = np.diag(model["base"])
    again[model["from"], model["to"]] = model["effect"]
    np.testing.assert_array_equal(again, theta.to_numpy())
    orders = order_matrix(theta, method="exact").probability.to_numpy()[np.triu_indices(10, 1)]
    np.testing.assert_allclose(np.array(payload["orders"]["probability"]) / 1000, orders, atol=6e-4)
    samples = payload["samples"]
    assert [{items[j] for j in row} for row in samples["sets"]] == [set(s) for s in data.sets()]
    for chosen, order in zip(samples["sets"], samples["orders"], strict=True):
        assert sorted(order) == chosen
    first = items.index("step 1"), items.index("step 2")
    both = [o for o in samples["orders"] if set(first) <= set(o)]
    assert both
    assert all(o.index(first[0]) < o.index(first[1]) for o in both)
    assert payload["goodness"]["items"]["observed"] == data.values.sum(axis=0).tolist()
    assert payload["verdicts"]["kind"] == "none"
    assert "sequela rivals" in payload["verdicts"]["command"]


def test_orders_that_are_known_exactly_are_not_simulated_again():
    n = 14  # with 14 items, the order matrix of the page is simulated
    theta = np.diag(np.full(n, -1.0))
    theta[0, 1] = 3.0
    model = Model(theta, [f"item {k}" for k in range(n)])
    payload = make_report(model).payload
    expected = order_matrix(model, ["item 0", "item 1"], method="exact").probability.iloc[0, 1]
    assert payload["orders"]["probability"][0] == round(1000 * expected)
    assert payload["orders"]["draws"] > 0


def test_a_model_alone_has_a_report():
    payload = make_report(example_theta()).payload
    assert payload["samples"] is None
    assert payload["goodness"] is None
    assert make_report([[0.5]]).payload["orders"] is None


def test_samples_with_missing_cells_are_compared_with_the_model():
    theta = example_theta()
    data = simulate(theta, 60, random_state=2).to_dataset().without_times()
    missing = np.zeros(data.values.shape, dtype=bool)
    missing[:, 0] = True  # no sample is complete
    missing[:30, 1] = True
    data = data.with_missing(missing)
    goodness = make_report(theta, data).payload["goodness"]
    assert sum(goodness["sizes"]["observed"]) == 60
    assert goodness["items"]["observed"] == data.values.sum(axis=0).tolist()
    assert (goodness["items"]["expected"][0], goodness["items"]["z"][0]) == (0.0, 0.0)
    expected = goodness_of_fit(theta, data, draws=40_000, random_state=0).items["expected"]
    np.testing.assert_allclose(goodness["items"]["expected"], expected, atol=1e-3)


def test_samples_with_missing_cells_have_the_order_of_their_known_items():
    theta = example_theta()
    data = simulate(theta, 40, random_state=2).to_dataset().without_times()
    missing = np.zeros(data.values.shape, dtype=bool)
    missing[:15, :2] = True
    data = data.with_missing(missing)
    payload = make_report(theta, data).payload
    samples, items = payload["samples"], payload["items"]["labels"]
    assert samples["incomplete"] == 15
    cohort = cohort_orders(theta, data)
    for row, order in enumerate(samples["orders"]):
        assert sorted(order) == samples["sets"][row]
        assert tuple(items[j] for j in order) == cohort.orders[row]
        assert len(samples["arrivals"][row]) == len(order)
    assert (
        make_report(theta, data.select_samples(range(15, 40))).payload["samples"]["incomplete"] == 0
    )


def test_items_may_stand_in_another_order_in_the_data():
    theta = example_theta()
    data = simulate(theta, 50, random_state=2).to_dataset().without_times()
    turned = data.select_items(list(data.items)[::-1])
    one, other = (make_report(theta, x).payload for x in (data, turned))
    assert one["samples"]["sets"] == other["samples"]["sets"]
    assert one["samples"]["arrivals"] == other["samples"]["arrivals"]
    assert one["items"] == other["items"]


# --- Verdicts -------------------------------------------------------------------------------------

PAIRS = pd.DataFrame(
    {"first": ["a", "a", "b"], "second": ["b", "c", "c"], "probability": [0.6, 0.9, 0.8]}
)


def test_without_a_check_nothing_is_decided_and_the_command_is_named():
    found = find_verdicts(PAIRS, None, "my fit", "samples.csv")
    assert found.kind == "none"
    assert found.command.startswith("sequela rivals 'my fit' samples.csv -o 'my fit/rivals.csv'")
    assert found.filled()["verdict"].tolist() == ["unchecked"] * 3
    assert found.filled()["probability"].tolist() == [0.9, 0.8, 0.6]


def test_a_range_that_includes_one_half_cannot_tell():
    table = PAIRS.assign(low=[0.4, 0.7, np.nan], high=[0.7, 0.95, np.nan])
    found = find_verdicts(table, None, "fit", "data")
    assert found.kind == "range"
    verdicts = found.filled().set_index(["first", "second"])["verdict"]
    assert verdicts.to_dict() == {("a", "c"): "yes", ("a", "b"): "no", ("b", "c"): "unchecked"}


def test_every_pair_that_a_fit_checked_is_listed_first():
    table = PAIRS.assign(low=[0.4, np.nan, np.nan], high=[0.7, np.nan, np.nan], observed=0.2)
    ranges = pd.DataFrame(
        {"first": ["b", "d"], "second": ["a", "a"], "probability": [0.4, 0.8],
         "low": [0.3, 0.6], "high": [0.6, 0.9], "evidence": [0.1, 3.0],
         "verdict": ["the data cannot tell", "the data can tell"]}
    )  # fmt: skip
    found = find_verdicts(table, None, "fit", "data", ranges)
    assert found.kind == "range"
    rows = found.filled()
    assert list(zip(rows["first"], rows["second"], rows["verdict"], strict=True)) == [
        ("d", "a", "yes"), ("b", "a", "no"), ("a", "c", "unchecked"), ("b", "c", "unchecked"),
    ]  # fmt: skip
    assert rows["observed"].tolist()[1] == 0.2
    # Pairs that only `sequela rivals` checked are also listed, and a note says so.
    rivals = pd.DataFrame({"first": ["b"], "second": ["c"], "probability": [0.8], "evidence": [5]})
    both = find_verdicts(table, rivals, "fit", "data", ranges)
    assert both.kind == "range"
    assert "sequela rivals" in both.notes[0]
    assert both.filled().set_index(["first", "second"])["verdict"]["b", "c"] == "yes"


def test_rivals_give_evidence_and_replace_the_pair_whatever_its_direction():
    rivals = pd.DataFrame(
        {"first": ["c", "a"], "second": ["a", "b"], "probability": [0.7, 0.65],
         "rival_probability": [0.2, 0.4], "evidence": [3.5, 0.4]}
    )  # fmt: skip
    found = find_verdicts(PAIRS, rivals, "fit", "data")
    assert found.kind == "evidence"
    table = found.filled()
    assert len(table) == 3
    verdicts = table.set_index(["first", "second"])["verdict"].to_dict()
    assert verdicts == {("c", "a"): "yes", ("a", "b"): "no", ("b", "c"): "unchecked"}


def test_a_given_verdict_is_kept_and_bad_tables_are_refused():
    assert Verdicts(PAIRS.assign(verdict="yes"), "posterior").filled()["verdict"].eq("yes").all()
    doubted = Verdicts(PAIRS.assign(verdict="yes"), "range", fits=False).filled()
    assert doubted["verdict"].eq("untrusted").all()
    # A model that does not fit changes only orders that the data could otherwise tell.
    for given in ("depends", Verdict.DEPENDS.value):
        unsure = Verdicts(PAIRS.assign(verdict=given, low=0.9, high=0.99), "range", fits=False)
        assert unsure.filled()["verdict"].eq("depends").all()
    with pytest.raises(InputError, match="no column 'second'"):
        Verdicts(PAIRS[["first"]])
    with pytest.raises(InputError, match="kind is 'maybe'"):
        Verdicts(PAIRS, "maybe")


# --- Folders --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    place = tmp_path_factory.mktemp("fits")
    theta = np.diag(np.full(4, -0.3))
    theta[0, 1] = 3.0
    data = simulate(Model(theta, STRANGE[:4]), 120, random_state=1).to_dataset()
    table = place / "samples.csv"
    data.without_times().to_frame().astype(int).to_csv(table, index_label="sample")
    plain = OutputOptions(figures=())
    run_fit(table, place / "fit", FitRunOptions(penalty=0.02, seed=3, check=False), output=plain)
    return place / "fit"


def test_a_fit_leaves_its_report(fit):
    payload = payload_of((fit / "report.html").read_text())
    assert payload["title"] == "fit"
    assert payload["items"]["labels"] == STRANGE[:4]
    assert payload["made"]["options"]["seed"] == 3
    assert payload["import"]["samples_kept"] == 120
    assert len(payload["samples"]["time"]["mean"]) == 120
    assert str(fit.parent) not in (fit / "report.html").read_text()


def test_the_report_of_a_folder_is_the_one_that_the_fit_left(fit):
    before = (fit / "report.html").read_bytes()
    assert write_report(fit) == fit / "report.html"
    assert (fit / "report.html").read_bytes() == before


def test_rivals_in_the_folder_are_shown(fit, tmp_path):
    rows = pd.DataFrame(
        {"first": [STRANGE[0]], "second": [STRANGE[1]], "probability": [0.9], "evidence": [0.3]}
    )
    rows.to_csv(fit / "rivals.csv", index=False)
    try:
        payload = payload_of(write_report(fit).read_text())
    finally:
        (fit / "rivals.csv").unlink()
    assert payload["verdicts"]["kind"] == "evidence"
    assert payload["verdicts"]["rows"]["verdict"][0] == "no"


def test_ranges_that_a_fit_checked_are_shown(fit, tmp_path):
    checked = FitRunOptions(penalty=0.02, seed=3, starts=1)
    plain = OutputOptions(figures=())
    found = run_fit(fit.parent / "samples.csv", tmp_path / "fit", checked, output=plain)
    verdicts = payload_of((tmp_path / "fit" / "report.html").read_text())["verdicts"]
    assert verdicts["kind"] == "range"
    known = found.order_ranges.table.dropna(subset=["low", "high"])
    assert sum(low is not None for low in verdicts["rows"]["low"]) == len(known) > 0
    assert set(verdicts["rows"]["baseline"]) - {None}


def test_samples_that_are_gone_are_left_out_with_a_warning(fit, caplog):
    source = fit.parent / "samples.csv"
    hidden = source.rename(source.with_suffix(".away"))
    try:
        payload = payload_of(write_report(fit).read_text())
    finally:
        hidden.rename(source)
    assert payload["samples"] is None
    assert "the samples of the run are not used" in caplog.text
    write_report(fit)


@pytest.fixture
def recorded_fit(tmp_path, monkeypatch):
    """Run a fit with relative paths, and with options that change how the table is read."""
    monkeypatch.chdir(tmp_path)
    rows = [f"s{k},{'1,1,0' if k % 3 else ',0,1'}" for k in range(30)]
    Path("samples.csv").write_text("\n".join(["sample,a,b,c", *rows]) + "\n")
    Path("orders.csv").write_text("sample,before,after\ns1,a,b\ns2,b,a\n")
    weights = [f"s{k},{1 + k % 2}" for k in range(30)]
    Path("weights.csv").write_text("\n".join(["sample,weight", *weights]) + "\n")
    options = FitRunOptions(
        penalty=0.05, seed=1, starts=1, check=False, missing="absent", orders="orders.csv",
        weights="weights.csv",
    )  # fmt: skip
    run_fit("samples.csv", "fit", options, output=OutputOptions(figures=()))
    return tmp_path / "fit"


def test_a_report_reads_the_table_as_the_fit_did(recorded_fit, tmp_path, monkeypatch):
    """The report uses the missing cells, known orders and weights of the fit.

    It finds the files from any working directory.
    """
    data = read_run_data(Run.read(recorded_fit), recorded_fit)
    assert data.n_missing == 0
    assert data.orders[1] == (("a", "b", 1.0),)
    np.testing.assert_array_equal(data.weights, 1 + np.arange(30) % 2)
    before = (recorded_fit / "report.html").read_bytes()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert write_report(recorded_fit).read_bytes() == before
    assert str(tmp_path) not in before.decode()


@pytest.mark.parametrize("name", ["orders.csv", "weights.csv"])
def test_a_file_that_was_moved_or_changed_is_noticed(recorded_fit, name, caplog):
    path = recorded_fit.parent / name
    text = path.read_text()
    path.unlink()
    assert payload_of(write_report(recorded_fit).read_text())["samples"] is None
    assert f"{name}'; the samples of the run are not used" in caplog.text
    path.write_text(text.replace("s1", "s4"))
    with pytest.raises(InputError, match=f"{name}' is not the file that the run was made from"):
        write_report(recorded_fit)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"contains neither model\.npz nor posterior\.npz"):
        write_report(tmp_path)


def test_certainty_of_interactions_is_passed_on(fit):
    table = pd.read_csv(fit / "interactions.csv")
    kept = (fit / "interactions.csv").read_bytes()
    table.assign(sign_probability=0.8, low=0.1, high=2.0).to_csv(
        fit / "interactions.csv", index=False
    )
    try:
        payload = payload_of(write_report(fit).read_text())
    finally:
        (fit / "interactions.csv").write_bytes(kept)
        write_report(fit)
    assert payload["model"]["certainty"]["sign_probability"] == [0.8] * len(table)
