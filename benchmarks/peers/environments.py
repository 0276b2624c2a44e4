"""Install each peer in its own environment.

If an installation fails, this is recorded, and the other peers are installed and measured.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peers.records import Places

# Seconds after which a compiler is stopped; compiling mhn takes a few minutes.
_MOST_SECONDS = 1200


@dataclass(frozen=True)
class Peer:
    """A package to install.

    Attributes
    ----------
    name, package : str
        Name in this benchmark, and name in the package index.
    before : tuple of int
        The first version of Python that it does not support.
    compiles : bool
        Whether it is distributed as source and needs a C compiler.
    """

    name: str
    package: str
    before: tuple[int, int]
    compiles: bool


# fastmhn needs mhn, and therefore the compiler and the older Python.
PEERS = [
    Peer("mhn", "mhn", (3, 13), compiles=True),
    Peer("fastmhn", "fastmhn", (3, 13), compiles=True),
    Peer("py-spy", "py-spy", (4, 0), compiles=False),
]


def python_of(places: Places, name: str) -> Path:
    """Return the path of the interpreter of an environment, even if it does not exist."""
    return places.cache / "envs" / name / "bin" / "python"


def install(places: Places, only: str | None = None) -> None:
    """Create the missing environments, and record the results."""
    for peer in PEERS:
        if only not in (None, peer.name) and peer.name != "py-spy":
            continue
        state = _state(places, peer.name)
        if usable(places, peer.name) is None:
            start = time.perf_counter()
            status, message, version = _install(places, peer)
            found = {
                "status": status,
                "message": message,
                "version": version,
                "seconds": time.perf_counter() - start,
                "compiles": peer.compiles,
            }
            state.parent.mkdir(parents=True, exist_ok=True)
            state.write_text(json.dumps(found))
        found = json.loads(state.read_text())
        places.write("install", peer.name, found)
        print(f"{peer.name}: {found['status']} {found['version']} {found['message']}")


def _state(places: Places, name: str) -> Path:
    """Return the file that records how an environment was installed."""
    return places.cache / "envs" / f"{name}.json"


def _install(places: Places, peer: Peer) -> tuple[str, str, str]:
    """Return status, message and version of one installation."""
    base = find_python(peer.before)
    if base is None:
        limit = ".".join(map(str, peer.before))
        return "skipped", f"needs Python below {limit}, and none was found", ""
    if peer.compiles and shutil.which(os.environ.get("CC", "cc")) is None:
        return "skipped", "needs a C compiler, and none was found", ""
    python = python_of(places, peer.name)
    asked = "import sys; print(*sys.version_info[:2], sep='.')"
    done = subprocess.run([base, "-c", asked], capture_output=True, text=True, check=True)  # noqa: S603
    wheels = places.cache / "wheels" / done.stdout.strip()
    wheels.mkdir(parents=True, exist_ok=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    steps = [[base, "-m", "venv", "--clear", str(python.parents[1])]]
    if peer.compiles and not list(wheels.glob("mhn-*.whl")):
        # mhn is compiled once for both peers. Do not use a cached wheel: if it was built with nvcc,
        # it fails at run time without a GPU.
        build = ["wheel", "--no-cache-dir", "--no-deps", "--wheel-dir", str(wheels), "mhn"]
        steps.append(pip + build)
    found = ["--no-cache-dir", "--find-links", str(wheels)]
    steps.append([*pip, "install", *found, peer.package])
    for step in steps:
        message = _run(step)
        if message:
            return "failed", message, ""
    asked = f"from importlib.metadata import version; print(version({peer.package!r}))"
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)  # noqa: S603
    return "installed", "", done.stdout.strip()


def _run(step: list[str]) -> str:
    """Run one command; return the error message, or an empty text if the command succeeded."""
    environment = {**os.environ, "INSTALL_MHN_NO_CUDA": "1"}
    environment.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(  # noqa: S603 - our own steps
            step, capture_output=True, text=True, check=False, env=environment,
            timeout=_MOST_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    if done.returncode == 0:
        return ""
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"ended with status {done.returncode}"


def find_python(before: tuple[int, int]) -> str | None:
    """Return a Python interpreter older than the version `before`, or None if there is none.

    It is the interpreter that runs this program, or one on the path.
    """
    if sys.version_info[:2] < before:
        return sys.executable
    for minor in range(before[1] - 1, 10, -1):
        found = shutil.which(f"python3.{minor}")
        # A program on the path may be unusable, such as a shim of a version that is not installed.
        if found and not _run([found, "-c", "pass"]):
            return found
    return None


def usable(places: Places, name: str) -> dict[str, Any] | None:
    """Return the record of an installation if the environment can be used, else None."""
    found = installation(places, name)
    return found if found["status"] == "installed" else None


def installation(places: Places, name: str) -> dict[str, Any]:
    """Return the record of an installation, or a record with the status "missing"."""
    state = _state(places, name)
    if state.exists():
        found: dict[str, Any] = json.loads(state.read_text())
        if found["status"] != "installed" or python_of(places, name).exists():
            return found
    return {"status": "missing", "message": "not tried", "version": ""}
