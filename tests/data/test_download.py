"""Test downloads with a local server that imitates the API of cBioPortal."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner

from sequela import InputError, read_cbioportal
from sequela.cli import main
from sequela.data import download
from sequela.data.download import DownloadError, download_study

STUDY = "brain_2026"
SAMPLES = ["S-1", "S-2", "S-3", "S-4"]
MUTATIONS = [
    ("S-1", "EGFR", "Missense_Mutation"),
    ("S-1", "TTN", "Silent"),
    ("S-2", "PTEN", "Nonsense_Mutation"),
    ("S-2", "EGFR", "Missense_Mutation"),
]
COPIES = [("S-1", "EGFR", 2), ("S-3", "CDKN2A", -2)]


class Portal(BaseHTTPRequestHandler):
    """A server that answers the requests of sequela to the API of cBioPortal."""

    def do_GET(self):
        self.answer(None)

    def do_POST(self):
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def answer(self, body):
        server = self.server
        server.asked.append(self.path)
        if server.failures:
            server.failures -= 1
            self.send_error(503)
            return
        if server.nonsense:
            self.reply(b"<html>welcome</html>")
            return
        found = self.look_up(self.path.removeprefix("/api/").partition("?")[0], body)
        if found is None:
            self.send_error(404)
        else:
            self.reply(json.dumps(found).encode())

    def look_up(self, path, body):
        if path == f"studies/{STUDY}":
            return {"studyId": STUDY}
        if path == f"studies/{STUDY}/molecular-profiles":
            return [
                {"molecularProfileId": f"{STUDY}_rna", "molecularAlterationType":
                 "MRNA_EXPRESSION", "datatype": "CONTINUOUS"},
                {"molecularProfileId": f"{STUDY}_log2", "molecularAlterationType":
                 "COPY_NUMBER_ALTERATION", "datatype": "LOG2-VALUE"},
                {"molecularProfileId": f"{STUDY}_gistic", "molecularAlterationType":
                 "COPY_NUMBER_ALTERATION", "datatype": "DISCRETE"},
                {"molecularProfileId": f"{STUDY}_mutations", "molecularAlterationType":
                 "MUTATION_EXTENDED", "datatype": "MAF"},
            ]  # fmt: skip
        if path == f"studies/{STUDY}/sample-lists":
            return [{"sampleListId": f"{STUDY}_{kind}"} for kind in ("all", "sequenced", "cna")]
        if path.startswith("sample-lists/"):
            # Sample S-4 was sequenced, but it has no copy numbers.
            return SAMPLES[:3] if "cna" in path else SAMPLES
        if path == f"molecular-profiles/{STUDY}_mutations/mutations/fetch":
            assert body == {"sampleListId": f"{STUDY}_sequenced"}
            return [
                {"sampleId": s, "gene": {"hugoGeneSymbol": g}, "mutationType": kind}
                for s, g, kind in MUTATIONS
            ]
        if path == f"molecular-profiles/{STUDY}_gistic/discrete-copy-number/fetch":
            assert "HOMDEL_AND_AMP" in self.path
            return [
                {"sampleId": s, "gene": {"hugoGeneSymbol": g}, "alteration": level}
                for s, g, level in COPIES
            ]
        return None

    def reply(self, content):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def portal(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Portal)
    server.asked, server.failures, server.nonsense = [], 0, False
    server.host = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_download_is_read_like_a_study_folder(portal, tmp_path):
    folder = download_study(STUDY, host=portal.host, cache=tmp_path)
    found = read_cbioportal(folder=folder)
    sets = dict(zip(found.data.samples, found.data.sets(), strict=True))
    assert sets == {
        "S-1": {"EGFR", "EGFR(A)"},
        "S-2": {"EGFR", "PTEN"},
        "S-3": {"CDKN2A(D)"},
    }
    assert "S-4" in found.summary.text() or "1 sample" in found.summary.text()


def test_the_cache_spares_the_host(portal, tmp_path):
    first = download_study(STUDY, host=portal.host, cache=tmp_path)
    asked = len(portal.asked)
    assert download_study(STUDY, host=portal.host, cache=tmp_path) == first
    assert len(portal.asked) == asked
    download_study(STUDY, host=portal.host, cache=tmp_path, refresh=True)
    assert len(portal.asked) == 2 * asked
    assert [path.name for path in (tmp_path / "cbioportal").iterdir()] == [STUDY]


def test_a_few_failures_are_borne_and_many_are_not(portal, tmp_path, monkeypatch):
    monkeypatch.setattr("urllib3.util.retry.Retry.sleep", lambda *_: None)
    portal.failures = 2
    download_study(STUDY, host=portal.host, cache=tmp_path)
    portal.failures = 1000
    with pytest.raises(DownloadError, match="failed 4 times"):
        download_study(STUDY, host=portal.host, cache=tmp_path, refresh=True)
    # After the first request, only a limited number of repetitions is tried.
    assert portal.failures == 1000 - (download._RETRIES + 1)
    assert (tmp_path / "cbioportal" / STUDY / "data_mutations.txt").exists()  # the old file is kept


def test_what_is_not_there_is_said(portal, tmp_path):
    with pytest.raises(InputError, match="no study 'nothing_2026'"):
        download_study("nothing_2026", host=portal.host, cache=tmp_path)
    portal.nonsense = True
    with pytest.raises(DownloadError, match="did not answer in JSON"):
        download_study(STUDY, host=portal.host, cache=tmp_path)
    for study in ("../../etc", "a b", "", None):
        with pytest.raises(InputError, match="expected the id of a study"):
            download_study(study, host=portal.host, cache=tmp_path)


def test_offline_is_said_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("urllib3.util.retry.Retry.sleep", lambda *_: None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(DownloadError, match=r"cannot be reached\. Check the internet connection"):
        download_study(STUDY, host="http://127.0.0.1:9", cache=tmp_path)
    assert list(tmp_path.rglob("*.txt")) == []


def test_by_command(portal, tmp_path, monkeypatch):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda _: tmp_path / "cache")
    output = tmp_path / "samples.csv"
    arguments = ["import", "--study", STUDY, "--host", portal.host, "-o", str(output)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert output.read_text().splitlines()[0].startswith("sample,")
    refused = CliRunner().invoke(main, ["import", "--maf", "x", "--refresh", "-o", "y"])
    assert refused.exit_code == 2
    assert "--refresh belongs to --study" in refused.stderr


def test_without_the_extra_it_says_which(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "platformdirs", None)
    with pytest.raises(InputError, match=r"sequela\[download\]"):
        download_study(STUDY, cache=tmp_path)
