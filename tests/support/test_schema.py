"""Every field of a stored file is checked. An error names the file, the field and its value."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest

from sequela import InputError
from sequela.support.schema import AnyNumber, Count, Digest, Place, parse_json, read_fields

PLACE = Place("a.json", "Delete it")


@dataclass
class Inner:
    x: float


@dataclass
class Outer:
    number: float
    anything: AnyNumber
    count: Count
    flag: bool
    kind: Literal["a", "b", 1]
    inner: Inner
    many: list[Inner]
    pair: tuple[str, int]
    named: dict[str, float]
    digest: Digest | None = None
    either: int | str = 0


@dataclass
class Closed:
    x: float = 0.0
    closed: ClassVar[bool] = True


GOOD = {
    "number": 1, "anything": float("inf"), "count": 0, "flag": False, "kind": "a",
    "inner": {"x": 2.5}, "many": [{"x": 1.0}], "pair": ["a", 2], "named": {"u": 1},
}  # fmt: skip


def test_what_fits_is_read():
    found = read_fields(Outer, {**GOOD, "more": 1}, PLACE)
    assert found.inner == Inner(2.5)
    assert found.many == [Inner(1.0)]
    assert found.pair == ("a", 2)
    assert isinstance(found.number, float)
    assert read_fields(Outer, {**GOOD, "either": "x", "digest": "0" * 64}, PLACE).either == "x"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"number": None}, "its field 'number' is null, expected a number. Delete it"),
        ({"number": True}, "'number' is True, expected a number"),
        ({"number": float("nan")}, "'number' is nan, expected a finite number"),
        ({"number": 10**5000}, "'number' is an integer of very many digits, expected a number"),
        ({"anything": "1"}, "'anything' is '1', expected a number, infinity or NaN"),
        ({"count": -1}, "'count' is -1, expected an integer of at least 0"),
        ({"count": 1.0}, "'count' is 1.0, expected an integer"),
        ({"count": True}, "'count' is True, expected an integer"),
        ({"flag": 0}, "'flag' is 0, expected true or false"),
        ({"kind": True}, "'kind' is True, expected one of 'a', 'b', 1"),
        ({"inner": [1]}, "'inner' is a list with 1 entries, expected an object"),
        ({"inner": {}}, "'inner.x' is missing, expected a number"),
        ({"many": [{"x": 1}, {"x": "a"}]}, r"'many\[1\].x' is 'a', expected a number"),
        ({"pair": ["a"]}, "'pair' is a list with 1 entries, expected a list of 2 entries"),
        ({"pair": ["\ud800", 1]}, r"'pair\[0\]' is '.ud800', expected text .*without lone surrog"),
        ({"named": {"\x1b": None}}, r"'named\..+x1b' is null, expected a number"),
        ({"digest": "g" * 64}, "expected a checksum of 64 hexadecimal digits"),
        ({"either": 1.5}, "'either' is 1.5, expected an integer or text"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    with pytest.raises(InputError, match=words) as caught:
        read_fields(Outer, {**GOOD, **change}, PLACE)
    assert str(caught.value).startswith("the file 'a.json' cannot be used: its field ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("missing", GOOD)
def test_missing_fields_are_named(missing):
    with pytest.raises(InputError, match=f"'{missing}' is missing"):
        read_fields(Outer, {k: v for k, v in GOOD.items() if k != missing}, PLACE)


def test_a_closed_class_refuses_other_fields():
    with pytest.raises(InputError, match="'y' is unknown"):
        read_fields(Closed, {"y": 1}, PLACE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" * 200 + "]" * 200, "nested too deeply"),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
        ("{", "is not JSON"),
        (b"\xff", "is not JSON"),
        ("1" * 5000, "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_what_is_no_json_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        parse_json(text, PLACE)
