"""Download a study from cBioPortal's public REST API to a study folder in the user's cache.

The folder has the same files as a study folder (a MAF, a table of copy numbers, lists of the
samples that were profiled), so that `read_cbioportal` can read it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from sequela.support.errors import InputError, SequelaError
from sequela.support.folders import new_folder
from sequela.support.naming import argument
from sequela.support.progress import WorkProgress

if TYPE_CHECKING:
    import os
    from pathlib import Path

__all__ = ["PUBLIC_HOST", "DownloadError", "download_study"]

PUBLIC_HOST = "https://www.cbioportal.org"
_SECONDS = 60.0
_RETRIES = 3
_MOST_COPIES = 2  # the largest absolute value of a discrete copy number level


class DownloadError(SequelaError, RuntimeError):
    """A study could not be downloaded."""


def download_study(
    study: str,
    *,
    host: str = PUBLIC_HOST,
    cache: str | os.PathLike[str] | None = None,
    refresh: bool = False,
) -> Path:
    """Return the folder of a study; download it if it is not in the cache.

    Parameters
    ----------
    study : str
        The id of the study, such as "gbm_tcga_pan_can_atlas_2018".
    host : str
        The address of the server.
    cache : path or None
        Folder for downloads. None means the user's cache folder.
    refresh : bool
        Whether to download the study again if it is in the cache.

    Returns
    -------
    path
        A folder that ``read_cbioportal(folder=...)`` reads.

    Raises
    ------
    InputError
        If the server has no such study.
    DownloadError
        If the server cannot be reached or does not answer as expected.
    """
    from pathlib import Path

    if not isinstance(study, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", study):
        raise InputError(
            f"{argument('study')} is {study!r}; expected the id of a study of cBioPortal, such as "
            "'gbm_tcga_pan_can_atlas_2018'"
        )
    platformdirs = _load("platformdirs")
    root = Path(platformdirs.user_cache_path("sequela") if cache is None else cache) / "cbioportal"
    target: Path = root / study
    if target.is_dir() and not refresh:
        return target
    api = _Api(host)
    with WorkProgress(f"download of {study}", 5) as bar:
        api.get(f"studies/{study}", missing=f"{host} has no study {study!r}; check its id")
        bar.advance()
        profiles = api.get(f"studies/{study}/molecular-profiles")
        bar.advance()
        lists = {row["sampleListId"] for row in api.get(f"studies/{study}/sample-lists")}
        mutations = _profile(profiles, "MUTATION_EXTENDED", None)
        copies = _profile(profiles, "COPY_NUMBER_ALTERATION", "DISCRETE")
        if mutations is None and copies is None:
            raise DownloadError(f"{study!r} has neither mutations nor discrete copy numbers")
        content: dict[str, str] = {}
        if mutations is not None:
            samples = _samples(api, lists, study, "sequenced")
            content["case_lists/cases_sequenced.txt"] = _case_list(study, "sequenced", samples)
            content["data_mutations.txt"] = _maf(api, mutations, f"{study}_sequenced")
        bar.advance()
        if copies is not None:
            samples = _samples(api, lists, study, "cna")
            content["case_lists/cases_cna.txt"] = _case_list(study, "cna", samples)
            content["data_cna.txt"] = _copy_numbers(api, copies, f"{study}_cna", samples)
        bar.advance()
    root.mkdir(parents=True, exist_ok=True)
    source = {"study": study, "host": host, "profiles": [mutations, copies]}
    content["run.json"] = json.dumps({"format": "sequela download", **source}, indent=1)
    with new_folder(target, force=True) as folder:
        for name, text in content.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    return target


def _load(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"downloads need {name}, which is not installed: pip install 'sequela[download]'"
        ) from None


class _Api:
    """Sends GET and POST requests, and repeats requests that fail; errors have short messages."""

    def __init__(self, host: str) -> None:
        requests = _load("requests")
        adapters = _load("requests.adapters")
        retry = _load("urllib3.util.retry")
        self._errors = requests.exceptions
        self._host = host.rstrip("/")
        self._session = requests.Session()
        again = retry.Retry(
            total=_RETRIES,
            backoff_factor=0.5,
            status_forcelist=(429, 500, 502, 503, 504),
            allowed_methods=None,  # also repeat POST, because our POST requests change nothing
        )
        adapter = adapters.HTTPAdapter(max_retries=again)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def get(self, path: str, *, missing: str | None = None) -> Any:
        return self._ask("GET", path, missing=missing)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._ask("POST", path, body=body)

    def _ask(self, method: str, path: str, *, body: Any = None, missing: str | None = None) -> Any:
        url = f"{self._host}/api/{path}"
        try:
            answer = self._session.request(method, url, json=body, timeout=_SECONDS)
        except self._errors.RetryError:
            raise DownloadError(
                f"{url} failed {_RETRIES + 1} times; the server has a problem, try again later"
            ) from None
        except self._errors.ConnectionError:
            raise DownloadError(
                f"{self._host} cannot be reached. Check the internet connection, or download the "
                "study in a browser and read its folder with --study-folder"
            ) from None
        except self._errors.RequestException as error:
            raise DownloadError(f"{url} failed ({type(error).__name__}); try again") from None
        if answer.status_code == 404 and missing is not None:
            raise InputError(missing)
        if answer.status_code != 200:
            raise DownloadError(
                f"{url} answered with status {answer.status_code}; expected 200. Check the address "
                "of the server, or try again later"
            )
        try:
            return answer.json()
        except ValueError:
            raise DownloadError(
                f"{url} did not answer in JSON; is it a server of cBioPortal?"
            ) from None


def _profile(profiles: Any, kind: str, datatype: str | None) -> str | None:
    for row in profiles:
        if row["molecularAlterationType"] == kind and datatype in (None, row["datatype"]):
            return str(row["molecularProfileId"])
    return None


def _samples(api: _Api, lists: set[str], study: str, kind: str) -> list[str]:
    name = f"{study}_{kind}"
    if name not in lists:
        raise DownloadError(
            f"{study!r} has no list {name!r} of the samples that were profiled; try another study"
        )
    return sorted(map(str, api.get(f"sample-lists/{name}/sample-ids")))


def _case_list(study: str, kind: str, samples: list[str]) -> str:
    ids = "\t".join(samples)
    return f"cancer_study_identifier: {study}\nstable_id: {study}_{kind}\ncase_list_ids: {ids}\n"


def _cell(value: Any) -> str:
    """Return a value as text without tabs and line breaks."""
    return re.sub(r"[\t\r\n]+", " ", str(value))


def _maf(api: _Api, profile: str, sample_list: str) -> str:
    rows = api.post(
        f"molecular-profiles/{profile}/mutations/fetch?projection=DETAILED",
        {"sampleListId": sample_list},
    )
    lines = ["Hugo_Symbol\tVariant_Classification\tTumor_Sample_Barcode"]
    for row in rows:
        cells = (row["gene"]["hugoGeneSymbol"], row["mutationType"], row["sampleId"])
        lines.append("\t".join(map(_cell, cells)))
    return "\n".join(lines) + "\n"


def _copy_numbers(api: _Api, profile: str, sample_list: str, samples: list[str]) -> str:
    rows = api.post(
        f"molecular-profiles/{profile}/discrete-copy-number/fetch"
        "?discreteCopyNumberEventType=HOMDEL_AND_AMP&projection=DETAILED",
        {"sampleListId": sample_list},
    )
    column = {sample: place for place, sample in enumerate(samples)}
    genes: dict[str, list[int]] = {}
    for row in rows:
        level = int(row["alteration"])
        if abs(level) > _MOST_COPIES:
            raise DownloadError(f"{profile} has a copy number level {level}; expected -2 to 2")
        levels = genes.setdefault(_cell(row["gene"]["hugoGeneSymbol"]), [0] * len(samples))
        if row["sampleId"] in column:
            levels[column[row["sampleId"]]] = level
    lines = ["\t".join(["Hugo_Symbol", *samples])]
    lines += ["\t".join([gene, *map(str, levels)]) for gene, levels in sorted(genes.items())]
    return "\n".join(lines) + "\n"
