"""Test how a table that was read becomes a data set: merging, selecting, and the summary."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sequela import Dataset, InputError
from sequela.data._gene_tables import Levels
from sequela.data._maf_stream import RuleKeywords, Rules
from sequela.data.cbioportal import CbioportalKeywords, read_cbioportal
from sequela.data.importing import Draft, Selection, SelectionKeywords, finish, propose_merges
from sequela.data.maf import MafKeywords, read_maf
from sequela.data.merging import merge_items, read_merges
from sequela.data.tables import TableKeywords, read_table

quick = settings(deadline=None, max_examples=150)
values = hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8))


def draft(table, **more):
    table = np.asarray(table, dtype=bool)
    return Draft(
        "a table",
        [f"s{i}" for i in range(table.shape[0])],
        [f"g{j}" for j in range(table.shape[1])],
        table,
        **more,
    )


@quick
@given(table=values, limit=st.integers(1, 4), wanted=st.integers(1, 9), data=st.data())
def test_selection_is_its_definition(table, limit, wanted, data):
    names = [f"g{j}" for j in range(table.shape[1])]
    drop = data.draw(st.sets(st.sampled_from(names), max_size=2))
    keep = data.draw(st.sets(st.sampled_from(names), max_size=2)) - drop
    counts = dict(zip(names, table.sum(axis=0).tolist(), strict=True))
    order = sorted((g for g in names if g not in drop), key=lambda g: -counts[g])
    enough = [g for g in order if counts[g] >= limit or g in keep]
    twin = [g for k, g in enumerate(enough) if k < wanted or g in keep]
    chosen = Selection(None, wanted, limit, sorted(keep), drop)
    if not twin:
        with pytest.raises(InputError):
            finish(draft(table), chosen)
        return
    done = finish(draft(table), chosen)
    assert list(done.data.items) == twin
    assert np.array_equal(done.data.values, table[:, [int(g[1:]) for g in twin]])
    dropped = [name for part in done.summary.dropped_items for name in part.names]
    assert sorted([*dropped, *twin]) == sorted(names)
    assert done.summary.items_read == len(names)


@quick
@given(table=values, data=st.data())
def test_merging_is_any_of_the_members(table, data):
    n = table.shape[1]
    unprofiled = data.draw(hnp.arrays(np.bool_, table.shape))
    table = table & ~unprofiled
    group = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    names = [f"g{j}" for j in range(n)]
    done = merge_items({"new": tuple(names[j] for j in group)}, names, table, unprofiled)
    assert done.items.index("new") == min(group) - sum(j in group for j in range(min(group)))
    assert [g for g in done.items if g != "new"] == [
        g for j, g in enumerate(names) if j not in group
    ]
    k = done.items.index("new")
    for i in range(len(table)):
        members = [None if unprofiled[i, j] else bool(table[i, j]) for j in group]
        twin = True if True in members else None if None in members else False
        found = None if done.unprofiled[i, k] else bool(done.values[i, k])
        assert found is twin


def test_merges_from_a_file(tmp_path):
    path = tmp_path / "merge.json"
    path.write_text('{"g0": ["g0", "g1"], "x": ["g9"]}', encoding="utf-8-sig")
    done = finish(draft([[0, 1, 0], [0, 0, 1]]), Selection(merge=path))
    assert done.data.items == ("g0", "g2")
    assert done.data.values.tolist() == [[True, False], [False, True]]
    assert dict(done.summary.merged) == {"g0": ("g0", "g1")}
    assert any("g9" in note for note in done.summary.notes)
    assert done.summary.files[0].path == str(path)


def test_dropping_what_was_merged_says_where_it_went():
    with pytest.raises(InputError, match="merged into 'x'"):
        finish(draft([[1, 1]]), Selection(merge={"x": ["g0", "g1"]}, drop=["g0"]))


def test_more_wanted_than_there_are():
    done = finish(draft([[1, 1]]), Selection(most_frequent=5))
    assert done.data.n_items == 2
    assert any("most_frequent=5" in note for note in done.summary.notes)


def test_times_follow_their_samples():
    unprofiled = np.array([[True], [False], [False]])
    done = finish(draft([[0], [1], [0]], unprofiled=unprofiled, times=np.arange(3.0)), Selection())
    assert done.data.samples == ("s1", "s2")
    assert done.data.times.tolist() == [1.0, 2.0]


@quick
@given(table=values, data=st.data())
def test_what_was_not_profiled_is_never_read_as_absent(table, data):
    unprofiled = data.draw(hnp.arrays(np.bool_, table.shape))
    incomplete = data.draw(st.sampled_from(["samples", "items"]))
    try:
        done = finish(
            draft(table & ~unprofiled, unprofiled=unprofiled), Selection(incomplete=incomplete)
        )
    except InputError:
        return
    rows = [int(s[1:]) for s in done.data.samples]
    columns = [int(g[1:]) for g in done.data.items]
    assert not unprofiled[np.ix_(rows, columns)].any()
    assert np.array_equal(done.data.values, table[np.ix_(rows, columns)])
    lost = sum(len(part.names) for part in done.summary.dropped_samples)
    assert lost + done.data.n_samples == done.summary.samples_read == len(table)


# --- The summary ----------------------------------------------------------------------------------


def test_samples_with_very_many_items():
    table = np.zeros((40, 60), dtype=bool)
    for i in range(40):
        table[i, : 3 + i % 3] = True
    table[7, :30] = True
    table[9, :14] = True  # not reported as a sample with very many items: it has fewer than 15
    table[11, :50] = True
    done = finish(draft(table), Selection())
    assert [(many.sample, many.size) for many in done.summary.many_items] == [
        ("s11", 50),
        ("s7", 30),
    ]
    assert "2 samples have very many items: s11 (50), s7 (30)" in done.summary.text()


def test_equal_sizes_are_not_many():
    done = finish(draft(np.ones((5, 30))), Selection())
    assert done.summary.many_items == ()


def test_the_summary_as_text_and_for_json():
    table = np.array([[1, 0, 0, 1], [1, 0, 1, 0], [1, 0, 0, 0]])
    done = finish(draft(table), Selection(merge={"x": ["g2", "g3"]}))
    text = done.summary.text()
    assert "Samples: 3 read, 3 kept." in text
    assert "Items: 4 read, 3 kept." in text
    assert "2 items merged into 1: x" in text
    assert "1 of 3 items occur in no sample" in text
    assert "g0" in text
    plain = done.summary.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["merged"] == {"x": ["g2", "g3"]}
    assert plain["samples_kept"] == 3
    assert plain["empty_samples"] == 0


# --- Proposals ------------------------------------------------------------------------------------


@quick
@given(
    table=hnp.arrays(np.bool_, st.tuples(st.integers(4, 9), st.integers(2, 9))),
    similarity=st.sampled_from([0.3, 0.5, 0.75, 1.0]),
    at_least=st.integers(1, 3),
)
def test_all_pairs_of_a_proposed_group_are_similar(table, similarity, at_least):
    data = Dataset(table, items=[f"g{j}" for j in range(table.shape[1])])
    groups = propose_merges(data, similarity, at_least=at_least)
    frame = data.to_frame()

    def jaccard(a, b):
        return (frame[a] & frame[b]).sum() / max((frame[a] | frame[b]).sum(), 1)

    members = [name for group in groups.values() for name in group]
    assert len(members) == len(set(members))
    for group in groups.values():
        assert len(group) > 1
        assert all(jaccard(a, b) >= similarity - 1e-9 for a in group for b in group)
        assert all(frame[name].sum() >= at_least for name in group)
        counts = [frame[name].sum() for name in group]
        assert counts == sorted(counts, reverse=True)
    if similarity == 1.0:  # with a similarity of 1, the items of a group have equal columns
        common = [name for name in frame if frame[name].sum() >= at_least]
        twins = {a for a in common for b in common if a != b and frame[a].equals(frame[b])}
        assert set(members) == twins
    if groups:
        done = finish(draft(table), Selection(merge=groups))
        assert done.data.n_items == table.shape[1] - len(members) + len(groups)


def test_a_chain_is_cut():
    """Each item often occurs with its neighbours, but the first item never occurs with the last.

    Therefore the six items must not be proposed as one group.
    """
    table = np.array([[j <= i < j + 4 for j in range(6)] for i in range(10)])
    groups = propose_merges(Dataset(table), 0.5)
    assert all(len(group) <= 2 for group in groups.values())


def test_proposals_read_as_merges(tmp_path):
    data = Dataset([[1, 1, 0]] * 3 + [[0, 0, 1]], items=["a", "b", "a,..."])
    groups = propose_merges(data)
    assert groups == {"a,....": ["a", "b"]}
    path = tmp_path / "merge.json"
    path.write_text(json.dumps(groups))
    assert read_merges(path)[0] == {"a,....": ("a", "b")}


@pytest.mark.parametrize("wrong", [0, 1.1, -1, "x", None, True, float("nan")])
def test_similarities_that_are_none(wrong):
    with pytest.raises(InputError, match="similarity"):
        propose_merges(Dataset([[1, 0]]), wrong)


def test_no_proposals():
    assert propose_merges(Dataset([[1, 0]])) == {}
    with pytest.raises(InputError, match="at_least"):
        propose_merges(Dataset([[1, 0]]), at_least=0)


# --- Options --------------------------------------------------------------------------------------


def names(kind):
    return {f.name for f in fields(kind)}


def test_every_keyword_reaches_an_object():
    """Every keyword is a field of a dataclass; otherwise it would be ignored silently."""
    selection, rules = set(SelectionKeywords.__annotations__), set(RuleKeywords.__annotations__)
    assert selection == names(Selection) - {"incomplete"}
    assert rules == names(Rules) - {"items", "barcode_length"}
    assert set(TableKeywords.__annotations__) == selection | {
        "separator", "encoding", "weights", "missing",
    }  # fmt: skip
    assert set(MafKeywords.__annotations__) == selection | rules
    more = names(Levels) | {"incomplete", "panels"}
    assert set(CbioportalKeywords.__annotations__) == selection | rules | more


@pytest.mark.parametrize("read", [read_table, read_maf, read_cbioportal])
def test_every_keyword_is_documented(read):
    keywords = {
        read_table: TableKeywords, read_maf: MafKeywords, read_cbioportal: CbioportalKeywords
    }[read]  # fmt: skip
    described = [line.strip() for line in inspect.getdoc(read).splitlines() if " : " in line]
    documented = {name for line in described for name in line.split(" : ")[0].split(", ")}
    assert set(keywords.__annotations__) <= documented


@pytest.mark.parametrize("read", [read_table, read_maf, read_cbioportal])
def test_a_keyword_that_is_none_is_refused_with_the_one_that_may_be_meant(read):
    with pytest.raises(TypeError, match=r"'at_leest'; did you mean 'at_least'\?") as refused:
        read("no such file", at_leest=3)
    assert str(refused.value).startswith(f"{read.__name__}() got an unexpected keyword argument")
    with pytest.raises(TypeError, match=r"'qwertz'\. Expected: .*at_least"):
        read("no such file", qwertz=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'settings'"):
        read("no such file", settings=None)


def test_keywords_of_the_function_itself_are_proposed_too():
    with pytest.raises(TypeError, match="did you mean 'samples'"):
        read_table("no such file", sample="id")
    with pytest.raises(TypeError, match="did you mean 'barcode_length'"):
        read_maf("no such file", barcode_lenght=15)


def test_options_are_checked_before_a_file_is_opened():
    for wrong in ({"at_least": 0}, {"keep": "TP53"}, {"keep": ["a"], "drop": ["a"]}):
        with pytest.raises(InputError, match=r"at_least is 0|keep"):
            read_maf("no such file", **wrong)
    with pytest.raises(InputError, match="incomplete must be 'missing', 'samples' or 'items'"):
        read_cbioportal("no such file", incomplete="both")


def test_a_selection_keeps_what_it_was_given_only_once():
    labels = iter(["a", "b"])
    chosen = Selection(drop=labels, at_least=np.int64(2))
    assert chosen.drop == ("a", "b")
    assert chosen.at_least == 2
    assert type(chosen.at_least) is int
    assert Selection(keep=None, drop={"b", "a"}).drop == ("a", "b")
