"""A model: theta, the labels of its items, its observation, and metadata about its origin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from sequela import __version__
from sequela.data._reading import read_labels
from sequela.model_files import (
    FORMAT,
    OBSERVATION_ROW,
    VERSION,
    content,
    json_object,
    mhn_meta_path,
    naming,
    plain_metadata,
    read_mhn_table,
    read_table,
    table_text,
    unpack,
    writing,
)
from sequela.observation import ObservationEffects, as_observation, read_observation
from sequela.support.errors import InputError
from sequela.support.frames import is_frame
from sequela.support.spreadsheets import guarded, unguarded
from sequela.support.validation import check_theta

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Self

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from sequela.observation import Observation

__all__ = ["Fitted", "Model", "ModelLike", "as_model"]

# The first cell of our CSV files says that rows act on columns. In CSV files of mhn, this cell is
# empty, and the columns act on the rows.
_CORNER = "row acts on column"


class Fitted(Protocol):
    """A fitted estimator: any object with the attribute `model_`."""

    model_: Model


# The types that every function with an argument `model` accepts; `as_model` converts them.
ModelLike: TypeAlias = "Model | Fitted | pd.DataFrame | ArrayLike"


class Model:
    """The parameters of a Markov chain over sets, with the labels of the items.

    Parameters
    ----------
    theta : array or DataFrame, (n, n)
        theta[i, j] is the log-effect of item i on the rate of item j. theta[j, j] is the log base
        rate of item j.
    items : sequence of str or None
        Labels of the items. None uses the labels of a DataFrame, or "0", "1", ...
    metadata : mapping or None
        A record of how the model was made, such as penalty, seed and versions. The values must be
        plain JSON values.
    observation : Observation or None
        The distribution of the observation time. None gives an exponential time with rate 1.

    Examples
    --------
    >>> Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"])
    <Model: 2 items, 1 interaction>
    >>> from sequela.observation import Exponential
    >>> Model([[0.0]], observation=Exponential(rate=2.0)).observation.mean_time
    0.5
    """

    def __init__(
        self,
        theta: pd.DataFrame | ArrayLike,
        items: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        observation: Observation | None = None,
    ) -> None:
        self._observation = as_observation(observation)
        if items is None and is_frame(theta):
            items = [str(label) for label in theta.columns]
        if items is not None:
            items = read_labels("items", items)
        matrix = check_theta(theta, items)
        matrix.flags.writeable = False
        self._theta = matrix
        self._items = tuple(map(str, range(len(matrix)))) if items is None else tuple(items)
        if isinstance(self._observation, ObservationEffects):
            count = len(self._observation.omega)
            if count != len(matrix):
                raise InputError(
                    f"the observation has effects of {count} items, but theta has {len(matrix)} "
                    "items; expected one effect per item"
                )
        self.metadata: dict[str, Any] = dict(metadata or {})

    @property
    def theta(self) -> NDArray[np.float64]:
        """The parameters, an n x n array (read-only)."""
        return self._theta

    @property
    def items(self) -> tuple[str, ...]:
        """Labels of the items."""
        return self._items

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self._items)

    @property
    def observation(self) -> Observation:
        """How samples come to be observed: the distribution of the observation time."""
        return self._observation

    def with_items(self, items: Sequence[str]) -> Model:
        """Return the same model with its items in another order.

        Examples
        --------
        >>> Model([[0.0, 4.0], [0.0, -4.0]], ["a", "b"]).with_items(["b", "a"]).theta.tolist()
        [[-4.0, 0.0], [4.0, 0.0]]
        """
        if tuple(items) == self._items:
            return self
        theta = check_theta(self.to_frame(), items)
        observation = self._observation
        if isinstance(observation, ObservationEffects):
            observation = observation.in_order([self._items.index(str(item)) for item in items])
        return Model(theta, items, self.metadata, observation=observation)

    def without_observation_effects(self) -> Model:
        """Return an equivalent model in which items have no effects on the observation.

        Both models give the same probabilities to all sets and orders. But times differ, because
        the observation rate of every state becomes 1. If the model has no such effects, it is
        returned unchanged.

        Examples
        --------
        >>> from sequela import ObservationEffects
        >>> model = Model([[0.0, 4.0], [0.0, -4.0]], observation=ObservationEffects([1.0, 0.0]))
        >>> model.without_observation_effects().theta.tolist()
        [[0.0, 3.0], [0.0, -4.0]]
        """
        if not isinstance(self._observation, ObservationEffects):
            return self
        return Model(self._observation.absorb(self._theta), self._items, self.metadata)

    def to_frame(self) -> pd.DataFrame:
        """Return theta as a table: rows act on columns, and the diagonal has the log base rates."""
        import pandas as pd

        return pd.DataFrame(self._theta, index=list(self._items), columns=list(self._items))

    def interactions(self) -> pd.DataFrame:
        """Return a table of the interactions that are not zero, the strongest first.

        Examples
        --------
        >>> Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"]).interactions()
            from      to  effect
        0  first  second     4.0
        """
        import pandas as pd

        off = self._theta.copy()
        np.fill_diagonal(off, 0.0)
        i, j = np.nonzero(off)
        order = np.argsort(-np.abs(off[i, j]), kind="stable")
        labels = np.array(self._items, dtype=object)
        return pd.DataFrame(
            {
                "from": labels[i[order]],
                "to": labels[j[order]],
                "effect": off[i, j][order],
            }
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, with its labels and metadata.

        The file is a NumPy archive (a zip file). It does not use pickle, so other programs can read
        it, too.
        ``theta`` contains the parameters. ``meta`` contains a JSON text with the items, the
        observation, the metadata, and the version of the format. If the file exists, it is replaced
        only after the new file is complete.

        Parameters
        ----------
        path : str or path
            The name of the file. No suffix is added to this name; ".npz" is usual.

        Examples
        --------
        >>> import tempfile
        >>> model = Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"], {"penalty": 0.01})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.npz")
        ...     again = Model.load(f"{folder}/model.npz")
        >>> again == model, again.metadata
        (True, {'penalty': 0.01})
        """
        header = {
            "format": FORMAT,
            "version": VERSION,
            "sequela": __version__,
            "items": self._items,
            "observation": self._observation.to_json(),
            "metadata": plain_metadata(self.metadata),
        }
        # Write to an open file, because np.savez(path) would add a suffix to the name.
        with writing(path) as file:
            np.savez_compressed(
                file, theta=self._theta.astype("<f8"), meta=np.array(json.dumps(header))
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote; raise an `InputError` for a damaged or unknown file.

        Parameters
        ----------
        path : str or path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Model([[-1.0]], ["only"]).save(f"{folder}/model.npz")
        ...     Model.load(f"{folder}/model.npz").items
        ('only',)
        """
        header, theta = unpack(content(path), path)
        with naming(path):
            observation = read_observation(header.get("observation"))
            return cls(theta, header["items"], header["metadata"], observation=observation)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write theta as a labelled table: rows act on columns.

        Numbers are written with all their digits. The metadata and the observation are not written;
        to keep them, use `save`. A spreadsheet would run a label as a formula if the label begins
        with =, +, -, @, a tab or a new line. Such a label is written with an apostrophe in front,
        which makes it plain text. `from_csv` removes the apostrophe.

        Parameters
        ----------
        path : str or path
            The name of the file, which is written in UTF-8. No suffix is added to this name.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "theta.csv")
        ...     Model([[0.0, 4.0], [0.0, -4.0]], ["first", "=second"]).to_csv(path)
        ...     print(path.read_text())
        "row acts on column","first","'=second"
        "first",0.0,4.0
        "'=second",0.0,-4.0
        <BLANKLINE>
        """
        table = table_text(_CORNER, [guarded(label) for label in self._items], self._theta)
        with writing(path) as file:
            file.write(table)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Self:
        """Read a labelled table of theta as `to_csv` writes it: rows act on columns.

        Parameters
        ----------
        path : str or path
            A comma-separated file in UTF-8 with the items in its first row and first column.

        Returns
        -------
        Model
            A model without metadata. Its observation time is exponential with rate 1.

        Examples
        --------
        >>> import tempfile
        >>> model = Model([[0.1, 4.0], [0.0, -1 / 3]], ["first", "=second"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.to_csv(f"{folder}/theta.csv")
        ...     Model.from_csv(f"{folder}/theta.csv") == model
        True
        """
        _, labels, theta = read_table(path)
        with naming(path):
            return cls(theta, [unguarded(label) for label in labels])

    def to_mhn(self, path: str | os.PathLike[str]) -> None:
        """Write the model to files in the format of the Python package `mhn`.

        In `mhn`, theta is the transpose of ours: row i, column j is the effect of j on i. The unit
        of time in `mhn` is the mean observation time, so base rates are divided by the rate of the
        observation. The metadata are written to ``<name>_meta.json`` in the same folder. Labels are
        written unchanged, because `mhn` reads them literally. If you do not trust the labels, do
        not open the table in a spreadsheet.

        Parameters
        ----------
        path : str or path
            The name of the CSV file. No suffix is added to this name. `mhn` finds the file only if
            the name ends in ".csv".

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "model.csv")
        ...     Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"]).to_mhn(path)
        ...     print(path.read_text())
        "","first","second"
        "first",0.0,0.0
        "second",4.0,-4.0
        <BLANKLINE>
        """
        rest = plain_metadata(self.metadata)
        theirs = rest.pop("mhn", {})
        # `from_mhn` stores the metadata that mhn wrote under the key "mhn". In a file for mhn, they
        # must be at the top level again.
        meta = {**theirs, **rest} if isinstance(theirs, dict) else {"mhn": theirs, **rest}
        theirs_theta = self._theta.T.copy()
        effects = isinstance(self._observation, ObservationEffects)
        rate = 1.0 if effects else self._observation.constant_rate
        if rate is None:
            raise InputError(
                f"mhn has no observation of kind {self._observation.kind!r}; expected a model "
                "whose observation has a constant rate or effects of items. Use Model.save for "
                "this model"
            )
        theirs_theta[np.diag_indices(self.n_items)] -= np.log(rate)
        extra = None
        if isinstance(self._observation, ObservationEffects):
            extra = (OBSERVATION_ROW, np.array(self._observation.omega))
        table = table_text("", self._items, theirs_theta, extra)
        with writing(path) as file:
            file.write(table)
        with writing(mhn_meta_path(path)) as file:
            file.write(json.dumps(meta, indent=4).encode())

    @classmethod
    def from_mhn(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that the Python package `mhn` saved, ``cMHN`` or ``oMHN``.

        Parameters
        ----------
        path : str or path
            The CSV file, with its suffix. If ``<name>_meta.json`` is in the same folder, its
            content becomes ``metadata["mhn"]``.

        Returns
        -------
        Model
            The model, with theta transposed to our convention: rows act on columns. The row
            "Observation" of an ``oMHN`` becomes the `ObservationEffects` of the model.

        Examples
        --------
        >>> import os, tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "model.csv")
        ...     lines = [",first,second", "first,0.0,0.0", "second,4.0,-4.0"]
        ...     _ = path.write_text(os.linesep.join(lines))
        ...     Model.from_mhn(path).interactions()
            from      to  effect
        0  first  second     4.0
        """
        corner, labels, theta, omega = read_mhn_table(path)
        if corner == _CORNER:
            raise InputError(
                f"{str(path)!r} is a table of sequela, in which rows act on columns; a table of "
                "mhn is its transpose. Read the file with Model.from_csv"
            )
        beside = mhn_meta_path(path)
        metadata = {}
        if beside.exists():
            with naming(beside):
                metadata["mhn"] = json_object(content(beside))
        with naming(path):
            observation = None if omega is None else ObservationEffects(tuple(omega.tolist()))
            return cls(theta.T, labels, metadata, observation=observation)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return (
            self._items == other._items
            and self._observation == other._observation
            and bool(np.array_equal(self._theta, other._theta))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        count = int(np.count_nonzero(self._theta) - np.count_nonzero(np.diagonal(self._theta)))
        plural = "" if count == 1 else "s"
        return f"<Model: {self.n_items} items, {count} interaction{plural}>"


def as_model(
    model: ModelLike, items: Sequence[str] | None = None, *, instead: str | None = None
) -> Model:
    """Return a `Model` for a model, a fitted estimator or theta.

    Parameters
    ----------
    model : Model, fitted SetChain, DataFrame or array
        If only theta is given, the observation time is exponential with rate 1.
    items : sequence of str or None
        The labels of the items, in the order that the result should have. If `model` is an array,
        which has no labels, its items get these labels.
    instead : str or None
        The name of a function that accepts a posterior. If `model` is a posterior, the error
        message tells the user to call this function.

    Examples
    --------
    >>> as_model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"]).items
    ('first', 'second')
    """
    learned = model if isinstance(model, Model) else getattr(model, "model_", None)
    if isinstance(learned, Model):
        return learned if items is None else learned.with_items(items)
    if hasattr(model, "fit"):
        raise InputError("model is an estimator that has not been fitted; call its fit(data) first")
    if callable(getattr(model, "models", None)):
        # A posterior is recognised by its method `models`, because this module cannot import the
        # class.
        other = "" if instead is None else f"use {instead}, or "
        raise InputError(
            "model is a posterior, which consists of many models; expected a single model. Instead "
            f"{other}call this function for each of posterior.models(100) and compare the "
            "answers. Some functions also take a posterior, for example order_probability, "
            "order_matrix, pseudo_times, next_items, item_frequencies and goodness_of_fit"
        )
    if isinstance(model, str):
        raise InputError(
            f"model is the text {model!r}; expected a Model, a fitted SetChain or theta. To read a "
            "file use Model.load"
        )
    return Model(cast("pd.DataFrame | ArrayLike", model), items)
