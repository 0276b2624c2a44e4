"""Checkpoints of a fit. A checkpoint is one file with arrays and JSON, written atomically."""

from __future__ import annotations

import hashlib
import io
import json
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from sequela import __version__
from sequela.learning.fit_values import Start
from sequela.learning.solvers.adagrad import AdaGradState
from sequela.learning.solvers.contract import Info, Status
from sequela.learning.solvers.proximal_newton import NewtonState
from sequela.support.errors import InputError
from sequela.support.files import replacing
from sequela.support.naming import argument
from sequela.support.schema import AnyNumber, Count, Digest, Place, Rule, parse_json, read_fields

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.learning.fit_values import FitOptions
    from sequela.likelihood.objective import Objective

__all__ = ["Checkpoint", "Running", "check_place", "fingerprint", "recorded_seed"]

_FORMAT = "sequela checkpoint"
_VERSION = 3  # version 3 added a checksum of the content
_CHECKSUM = "checksum"
_REMEDY = "Delete it, or name another file"

_HistoryRow = tuple[Count, AnyNumber, AnyNumber, Count, AnyNumber]
_StatusName = Annotated[
    str, Rule(lambda name: name in Status.__members__, "the name of a status, such as CONVERGED")
]


@dataclass(frozen=True)
class _StoredInfo:
    """An `Info` as stored in a checkpoint."""

    iterations: Count
    evaluations: Count
    objective: AnyNumber
    residual: AnyNumber
    floor: AnyNumber
    status: _StatusName
    closed: ClassVar[bool] = True

    def info(self) -> Info:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return Info(**{**values, "status": Status[self.status]})


@dataclass(frozen=True)
class _StoredStart:
    """A `Start` as stored in a checkpoint; its theta is stored separately, as an array."""

    objective: AnyNumber
    objective_se: AnyNumber
    kkt_residual: AnyNumber
    kkt_floor: AnyNumber
    n_iterations: Count
    n_evaluations: Count
    status: _StatusName
    message: str
    width: AnyNumber
    history: list[_HistoryRow]
    closed: ClassVar[bool] = True

    def start(self, theta: NDArray[Any]) -> Start:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return Start(theta=theta, **{**values, "status": Status[self.status]})


@dataclass(frozen=True)
class _StoredRunning:
    """A `Running` as stored in a checkpoint; the arrays of its state are stored separately."""

    numbers: dict[str, Any]
    info: _StoredInfo
    phase: Literal[0, 1]
    history: list[_HistoryRow]
    closed: ClassVar[bool] = True


@dataclass(frozen=True)
class _Header:
    """The fields of the JSON text in a checkpoint."""

    data: Digest
    options: dict[str, Any]
    finished: list[_StoredStart]
    running: _StoredRunning | None


@dataclass(frozen=True)
class _NewtonNumbers:
    """The numbers in the state of the quasi-Newton solver."""

    loss: AnyNumber
    kept: Count
    rounds: Count
    inner_tol: AnyNumber
    free: None = None
    closed: ClassVar[bool] = True


@dataclass(frozen=True)
class _AdaGradNumbers:
    """The numbers in the state of the paper's solver."""

    steps_taken: Count
    settled: bool
    closed: ClassVar[bool] = True


def fingerprint(data: Dataset) -> str:
    """Return a checksum of the samples, labels, times, missing cells, orders and weights."""
    digest = hashlib.sha256()
    digest.update(json.dumps([list(data.items), list(data.samples)]).encode())
    digest.update(np.packbits(data.values, axis=1).tobytes())
    digest.update(b"" if data.times is None else np.ascontiguousarray(data.times).tobytes())
    # Add nothing for a property that the data do not have. So the checksums in files of earlier
    # versions, which did not include these properties, stay valid.
    if data.missing is not None:
        digest.update(b"missing" + np.packbits(data.missing, axis=1).tobytes())
    if data.orders is not None:
        digest.update(b"orders" + json.dumps(data.orders).encode())
    if data.weights is not None:
        digest.update(b"weights" + np.ascontiguousarray(data.weights, dtype="<f8").tobytes())
    return digest.hexdigest()


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise an error if no checkpoint can be written to `path`. A fit begins with this check."""
    try:
        place = Path(path)
    except TypeError:
        raise InputError(
            f"{argument('checkpoint')} is {path!r} ({type(path).__name__}); expected the path of "
            "a file, or None"
        ) from None
    if place.is_dir():
        raise InputError(
            f"{argument('checkpoint')} is {str(path)!r}, a folder; expected the path of a file"
        )
    if not place.parent.is_dir():
        raise InputError(
            f"{argument('checkpoint')} is {str(path)!r}, but there is no folder "
            f"{str(place.parent)!r}; create "
            "the folder, or name another file"
        )


def _damaged(path: str | os.PathLike[str], reason: str) -> InputError:
    """Return an error for a checkpoint that cannot be used."""
    return InputError(
        f"the checkpoint {str(path)!r} cannot be read ({reason}); it is damaged or not a "
        "checkpoint. Delete it, or name another file"
    )


@dataclass(frozen=True)
class Running:
    """A start that has not ended: the state of its solver, its info and its history.

    Attributes
    ----------
    arrays : dict
        The arrays of the solver's state.
    numbers : dict
        The numbers of the solver's state.
    info : Info
        The progress so far.
    phase : int
        The phase of the paper's solver: 0 while only base rates are learned, 1 for all entries.
    history : list of tuples
        All iterations before the current one.
    """

    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, Any]
    info: Info
    phase: int
    history: list[tuple[int, float, float, int, float]]

    @classmethod
    def of(
        cls,
        state: NewtonState | AdaGradState,
        info: Info,
        phase: int,
        history: list[tuple[int, float, float, int, float]],
    ) -> Running:
        """Split the state of a solver into arrays and numbers."""
        arrays: dict[str, NDArray[Any]] = {}
        numbers: dict[str, Any] = {}
        for f in fields(state):
            value = getattr(state, f.name)
            if isinstance(value, tuple):
                arrays[f.name] = np.array(value)
            elif isinstance(value, np.ndarray):
                arrays[f.name] = value
            else:
                numbers[f.name] = value
        # Leave out the current iteration, because it is recorded again when the fit continues.
        return cls(arrays, numbers, info, phase, history[:-1])

    def newton(self) -> tuple[NewtonState, Info]:
        """Return the state of the quasi-Newton solver."""
        values: dict[str, Any] = {**self.arrays, **self.numbers}
        values |= {name: tuple(values[name]) for name in ("steps", "changes")}
        return NewtonState(**values), self.info

    def adagrad(self) -> tuple[AdaGradState, Info]:
        """Return the state of AdaGrad."""
        values: dict[str, Any] = {**self.arrays, **self.numbers}
        return AdaGradState(**values), self.info


class Checkpoint:
    """The file to which a fit is saved, and from which it is resumed.

    Parameters
    ----------
    path : path or None
        The file. If None, no file is written.
    every : float
        Seconds between two writes during a start.
    data, options : Dataset, FitOptions
        The data and options of the fit. A checkpoint with other data or options raises an error.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        every: float,
        data: Dataset,
        options: FitOptions,
    ) -> None:
        self.path = path
        self.every = every
        self._saved = time.monotonic()
        self._identity = {} if path is None else _identity(data, options)

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed to write the file again."""
        return self.path is not None and time.monotonic() - self._saved >= self.every

    def save(
        self,
        finished: list[Start],
        running: Running | None = None,
        objective: Objective | None = None,
    ) -> None:
        """Write the finished starts and, if a start is running, also its state and drawn orders."""
        if self.path is None:
            return
        meta: dict[str, Any] = {
            **self._identity,
            "sequela": __version__,
            "finished": [_start_entry(start) for start in finished],
            "running": None,
        }
        arrays: dict[str, NDArray[Any]] = {
            f"finished_{i}_theta": start.theta for i, start in enumerate(finished)
        }
        if running is not None and objective is not None:
            meta["running"] = {
                "numbers": running.numbers,
                "info": {**asdict(running.info), "status": running.info.status.name},
                "phase": running.phase,
                "history": running.history,
            }
            arrays |= {f"state_{name}": array for name, array in running.arrays.items()}
            arrays |= objective.arrays()
        _write(self.path, meta, arrays)
        self._saved = time.monotonic()

    def load(self, objective: Objective) -> tuple[list[Start], Running | None]:
        """Return the finished starts, and the start that has not ended.

        The drawn orders of the start that has not ended are put into `objective`.
        """
        if self.path is None:
            return [], None
        found = _read(self.path)
        if found is None:
            return [], None
        meta, arrays = found
        for name, value in self._identity.items():
            if meta.get(name) != value:
                raise InputError(
                    f"the checkpoint {str(self.path)!r} belongs to another fit: its {name} "
                    f"{_difference(meta.get(name), value)}. Give the same data and options, or "
                    "name another file"
                )
        try:
            return _restore(meta, arrays, objective, self.path)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise _damaged(self.path, f"missing or wrong: {error}") from None


def _identity(data: Dataset, options: FitOptions) -> dict[str, Any]:
    """Return what identifies a fit: the checksum of its data, and its options.

    The options are converted to JSON and back, so that they can be compared with stored options.
    """
    chosen = {f.name: getattr(options, f.name) for f in fields(options)}
    chosen["budget"] = asdict(options.budget)
    chosen["observation"] = options.observation.to_json()
    if not options.fixed:  # older checkpoints do not have this option
        del chosen["fixed"]
    plain: dict[str, Any] = json.loads(json.dumps(chosen))
    return {"data": fingerprint(data), "options": plain}


def _start_entry(start: Start) -> dict[str, Any]:
    entry = {f.name: getattr(start, f.name) for f in fields(start) if f.name != "theta"}
    return {**entry, "status": start.status.name}


def _restore(
    meta: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    objective: Objective,
    path: str | os.PathLike[str],
) -> tuple[list[Start], Running | None]:
    place = Place(path, _REMEDY)
    header = read_fields(_Header, meta, place)
    n = objective.n
    finished = [
        entry.start(_array(arrays, f"finished_{i}_theta", (n, n), np.float64, place))
        for i, entry in enumerate(header.finished)
    ]
    if header.running is None:
        return finished, None
    running = header.running
    adagrad = meta["options"]["solver"] == "adagrad"
    kind: type[NewtonState | AdaGradState] = AdaGradState if adagrad else NewtonState
    read_fields(
        _AdaGradNumbers if adagrad else _NewtonNumbers, running.numbers, place.at("running.numbers")
    )
    state = {
        name.removeprefix("state_"): arrays[name] for name in arrays if name.startswith("state_")
    }
    _demand_fields(kind, {**state, **running.numbers})
    for name in state.keys() - {"steps", "changes"}:
        dtype = np.bool_ if name == "free" else np.float64
        _array(arrays, f"state_{name}", (n, n), dtype, place)
    for name in state.keys() & {"steps", "changes"}:
        if state[name].size:
            _array(arrays, f"state_{name}", (len(state[name]), n * n), np.float64, place)
    if "free" in state:
        objective.prepare(state["free"])
    elif kind is NewtonState and not objective.plan.partial.places.size:  # all entries are free
        n = objective.n
        objective.prepare(np.ones((n, n), dtype=np.bool_))
    objective.restore(arrays)
    return finished, Running(
        state, running.numbers, running.info.info(), running.phase, running.history
    )


def _array(
    arrays: dict[str, NDArray[Any]], name: str, shape: tuple[int, ...], dtype: Any, place: Place
) -> NDArray[Any]:
    """Return an array of a checkpoint; raise an error if its shape, type or a value is invalid."""
    if name not in arrays:
        raise place.at(name).error("is missing", "an array")
    found = arrays[name]
    if found.shape != shape or found.dtype != dtype:
        raise place.at(name).error(
            f"is an array of {found.dtype} with shape {found.shape}",
            f"{np.dtype(dtype)} with shape {shape}",
        )
    if not np.isfinite(found).all():
        raise place.at(name).error("has entries that are not finite", "finite numbers")
    return found


def _demand_fields(kind: type[NewtonState | AdaGradState | Info], found: dict[str, Any]) -> None:
    """Raise a KeyError if a field is missing or unknown.

    A default value in place of a missing field would change the rest of the fit.
    """
    wrong = {f.name for f in fields(kind)} ^ found.keys()
    if wrong:
        raise KeyError(", ".join(sorted(wrong)))


def _write(
    path: str | os.PathLike[str], meta: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Write a checkpoint. The previous file is replaced only after the new one is complete."""
    header = json.dumps({"format": _FORMAT, "version": _VERSION, **meta})
    with replacing(path) as file:
        # NumPy would store arrays of Python objects as pickles, which can run code when they are
        # read. A checkpoint has no such arrays, and `_read` refuses them.
        content: dict[str, Any] = {"meta": np.array(header), **arrays}
        content[_CHECKSUM] = np.array(_checksum(content))
        np.savez(file, **content)


def _checksum(content: dict[str, NDArray[Any]]) -> str:
    """Return the checksum of all arrays, with their names, types and shapes."""
    digest = hashlib.sha256()
    for name in sorted(content):
        array = np.asarray(content[name])
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def recorded_seed(path: str | os.PathLike[str]) -> int | None:
    """Return the seed of the fit that a checkpoint belongs to; None if there is no file."""
    found = _read(path)
    if found is None:
        return None
    options = found[0].get("options")
    place = Place(path, _REMEDY, "options")
    return read_fields(_Seed, options, place).seed


@dataclass(frozen=True)
class _Seed:
    seed: Count


def _difference(found: Any, expected: Any) -> str:
    """Describe how two entries differ. For options, name only those that differ."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = [n for n in {**expected, **found} if found.get(n) != expected.get(n)]
        return "differ: " + ", ".join(
            f"{name} was {found.get(name)!r}, here it is {expected.get(name)!r}" for name in names
        )
    return f"differ (the file has the checksum {found!r}, here it is {expected!r})"


def _read(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """Return the JSON fields and the arrays of a checkpoint; None if there is no file."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _damaged(path, str(error.strerror or error)) from None
    # Check the first bytes here. NumPy would take any file that is not a zip file for a pickle.
    if not content.startswith(b"PK\x03\x04"):
        raise _damaged(path, "it does not begin like a checkpoint")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        checksum = str(arrays.pop(_CHECKSUM, ""))
        whole = checksum == _checksum(arrays)
        header = str(arrays.pop("meta"))
    except Exception as error:  # noqa: BLE001 - a damaged file can raise any exception
        raise _damaged(path, type(error).__name__) from None
    meta = parse_json(header, Place(path, _REMEDY))
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise InputError(
            f"{str(path)!r} is not a checkpoint of a fit; name another file for the checkpoint"
        )
    if meta.get("version") != _VERSION:
        raise InputError(
            f"the checkpoint {str(path)!r} has format version {meta.get('version')!r:.40}, but "
            f"this version of sequela reads {_VERSION}. Finish the fit with the version of sequela "
            "that began it, or delete the file"
        )
    if not whole:
        raise _damaged(path, "its content has changed since it was written: the checksum differs")
    return meta, arrays
