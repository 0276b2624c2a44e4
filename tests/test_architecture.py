"""Automatic checks of the rules of the project.

The rules are about imports between packages, the modules that are loaded, and the lengths of files.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sequela

SOURCE = Path(sequela.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# A package may import from packages above it in this list, never from packages below it.
ROOMS = [
    {"support"},  # errors, files, threads, seeds, compilation
    {"kernels"},  # compiled functions of arrays
    {"data"},  # data sets and readers
    {"observation_times", "observation_effects"},  # kinds of observation
    {"observation"},  # distributions of the observation time
    {"model_files"},
    {"model"},  # theta, its labels, its observation
    {"samples"},  # data read for a model
    {"budget"},  # the largest cost of an exact evaluation
    {"settings"},  # how answers are computed: budget, draws, seed, threads
    {"likelihood"},
    {"simulation"},
    {"learning"},
    {"posteriors"},  # Markov chains over theta
    {"questions"},
    {"repeats"},
    {"plots"},
    {"report"},
    {"cli"},
    {"__main__"},
]
FLOOR = {name: floor for floor, names in enumerate(ROOMS) for name in names}
# The top-level package may import from all packages: it loads a package when it is first used.
FRONT_DOOR = SOURCE / "__init__.py"


def module_name(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports(path):
    """Return all modules of sequela that a file imports, including imports inside functions.

    Each module is a tuple of names. ``from a import b`` gives a.b, because b may be a module.
    """
    package = module_name(path) if path.name == "__init__.py" else module_name(path)[:-1]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                base = package[: len(package) - node.level + 1] + base
            found += [(*base, alias.name) for alias in node.names]
    return [name for name in found if name[0] == "sequela"]


def room(name):
    return name[1] if len(name) > 1 else None


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_lower_room_never_imports_a_higher_one(path):
    if path == FRONT_DOOR:
        return
    here = room(module_name(path))
    assert here in FLOOR, f"{here} is not in ROOMS: add it there"
    for name in imports(path):
        there = room(name)
        if there == "__version__":
            continue
        assert there in FLOOR, f"{path.name} imports {'.'.join(name)} from the top-level package"
        if there != here:
            assert FLOOR[there] <= FLOOR[here], f"{path.name} imports {'.'.join(name)}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_the_core_never_imports_the_package_of_the_paper(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert "sequela_paper" not in ast.unparse(node)


def test_there_is_something_to_check():
    """Check that `imports` finds imports. If it found none, the other tests would always pass."""
    seen = {room(name) for path in FILES for name in imports(path)}
    assert {"support", "kernels", "data", "likelihood"} <= seen
    assert ("sequela", "likelihood", "plan", "Plan") in imports(
        SOURCE / "likelihood" / "objective.py"
    )


@pytest.mark.parametrize(
    "path",
    sorted((SOURCE / "kernels").glob("*.py")),
    ids=lambda p: p.name,
)
def test_kernels_know_kernels_only(path):
    for name in imports(path):
        inside = name[:2] == ("sequela", "kernels")
        jit = name[:3] == ("sequela", "support", "jit")
        assert inside or jit, f"{path.name} imports {'.'.join(name)}"
    others = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert others <= {"math", "cmath", "numpy"}


@pytest.mark.parametrize(
    "path",
    sorted((SOURCE / "kernels").glob("*.py")),
    ids=lambda p: p.name,
)
def test_numba_is_spoken_to_in_one_place(path):
    """Each function in `kernels` has one of three decorators, whose options support/jit.py sets."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(d) for d in node.decorator_list]
            assert decorators in (["kernel"], ["helper"], ["inlined"]), node.name


def test_only_jit_imports_numba():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] == "numba" for name in names):
                # The command line may import Numba inside a function, to show its version.
                assert path.name == "jit.py" or path.parent.name == "cli", path


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_are_short(path):
    lines = len(path.read_text().splitlines())
    assert lines <= 500, f"{path.name} has {lines} lines; split it by subject"


def test_nothing_prints():
    """Only the command line writes to standard output. Progress messages go to a logger."""
    for path in FILES:
        if "cli" in path.parts:
            continue
        calls = [
            node.lineno
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ]
        assert not calls, f"{path} prints in lines {calls}"


# --- What is loaded -------------------------------------------------------------------------------


def modules_after(statement):
    """Return the modules that a new Python process has loaded after it ran `statement`."""
    script = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_import_is_lazy():
    loaded = modules_after("import sequela")
    assert "sequela" in loaded
    heavy = {"numba", "pandas", "sklearn", "scipy", "numpy", "joblib", "click", "rich"}
    assert not loaded & heavy


def test_attributes_load_what_they_need():
    loaded = modules_after("import sequela; sequela.Dataset")
    assert "numpy" in loaded
    assert "numba" not in loaded  # reading data does not load the compiler
    assert "numba" in modules_after("import sequela; sequela.log_likelihood")


# Packages that are slow to load, and that a small fit does not need.
HEAVY = {
    "joblib", "matplotlib", "numpy.f2py", "pandas", "rich", "scipy.linalg", "scipy.optimize",
    "scipy.sparse", "scipy.special", "scipy.stats", "sklearn",
}  # fmt: skip


def test_a_fit_from_a_file_loads_no_more_than_it_needs():
    """A small fit takes 0.1 seconds, but loading a package in HEAVY takes up to a second."""
    path = SOURCE / "data" / "example" / "samples.csv"
    script = (
        "import sequela\n"
        f"data = sequela.read_table({str(path)!r}).data.most_frequent(8)\n"
        "model = sequela.fit(data, penalty=0.02, random_state=1)\n"
        "assert model.metadata['converged'] and model.n_items == 8"
    )
    loaded = modules_after(script)
    assert "sequela.kernels.lattice" in loaded
    assert not loaded & HEAVY


def test_repeats_load_no_more_than_a_fit():
    """Every worker process of repeats imports `fit_task` when it starts."""
    assert not modules_after("import sequela.repeats.fit_task") & HEAVY


def test_frames_are_recognised_once_pandas_is_there():
    """Missing values are recognised with and without pandas.

    Data frames are recognised only if pandas is loaded. Without pandas, there are none.
    """
    script = (
        "from sequela import Dataset, InputError\n"
        "from sequela.support.frames import is_frame, is_missing, is_series\n"
        "values = [None, float('nan'), 0.0, 1, 'nan', True]\n"
        "before = [is_missing(value) for value in values]\n"
        "assert not is_frame(values) and not is_series(values)\n"
        "import pandas as pd\n"
        "assert before == [is_missing(value) for value in values]\n"
        "assert before == [bool(pd.isna(value)) for value in values]\n"
        "assert is_missing(pd.NA) and is_missing(pd.NaT)\n"
        "assert is_frame(pd.DataFrame()) and is_series(pd.Series(dtype=float))\n"
        "assert Dataset(pd.DataFrame({'a': [1, 0]}, index=['s', 't'])).samples == ('s', 't')"
    )
    modules_after(script)


def test_linear_algebra_of_numba_works_after_a_fit():
    """After a fit, which loads Numba without scipy.linalg, Numba can still load scipy.linalg."""
    script = (
        "import sys, numpy as np, sequela\n"
        "sequela.fit([{'a'}, {'a', 'b'}, set()], penalty=0.1)\n"
        "assert 'scipy.linalg' not in sys.modules\n"
        "import numba\n"
        "solve = numba.njit(lambda a: np.linalg.solve(a, a @ a))\n"
        "a = np.array([[2.0, 1.0], [0.0, 3.0]])\n"
        "assert np.allclose(solve(a), a)"
    )
    assert "scipy.linalg" in modules_after(script)


def test_errors_load_nothing():
    assert not modules_after("import sequela; sequela.InputError") & {"numba", "pandas", "numpy"}


ROOMS_WITH_A_DOOR = [
    "data",
    "likelihood",
    "learning",
    "posteriors",
    "questions",
    "plots",
    "repeats",
    "report",
]


def declared(stub):
    """Return the names that a stub file (.pyi) declares."""
    return {
        alias.asname
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("place", ["", *ROOMS_WITH_A_DOOR])
def test_every_name_is_declared_once_and_leads_somewhere(place):
    """Public names are declared only in a stub, and each of them can be loaded."""
    room = sequela if not place else getattr(sequela, place)
    names = declared(SOURCE / place / "__init__.pyi")
    assert set(room.__all__) - {"__version__"} == names == set(dir(room))
    for name in names:
        assert getattr(room, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = room.nothing


def test_the_front_door_is_small():
    assert len(sequela.__all__) <= 40


@pytest.mark.parametrize("place", ROOMS_WITH_A_DOOR)
def test_the_door_of_a_room_is_light(place):
    heavy = {"numba", "pandas", "sklearn", "scipy", "numpy", "matplotlib"}
    assert not modules_after(f"import sequela.{place}") & heavy


def parameters(function):
    arguments = function.args
    named = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    others = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return len([name for name in named if name not in ("self", "cls")]) + len(others)


# These files have scikit-learn estimators, whose constructors have one argument per hyperparameter.
ESTIMATORS = {"learner.py", "cross_validation.py"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_functions_have_at_most_seven_parameters(path):
    if path.parent.name == "kernels":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == "__init__" and path.name in ESTIMATORS:
                continue
            assert parameters(node) <= 7, f"{path.name}: {node.name} has {parameters(node)}"


def test_the_rate_of_the_observation_has_one_home():
    """Only the observation and the reader of model files may use the name `observation_rate`."""
    found = {path.name for path in FILES if "observation_rate" in path.read_text()}
    assert found <= {"observation.py", "model_files.py"}


def test_learning_draws_no_orders_and_sums_no_sets():
    """The package `learning` may import only one module of kernels: `newton`, for its solver."""
    for path in FILES:
        if "learning" in path.parts:
            kernels = {name[2] for name in imports(path) if name[:2] == ("sequela", "kernels")}
            assert kernels <= {"newton"}, path.name
