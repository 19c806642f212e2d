"""Nodes to frozen types, with errors that a person can act on."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import ClassVar, Literal

import attrs
import pytest

from amqpgate.errors import ConfigError
from amqpgate.yamldoc import (
    FilePath,
    FolderPath,
    Invalid,
    Node,
    Seconds,
    Secret,
    Size,
    TextValue,
    WholeSeconds,
    between,
    compose,
    describe,
    doc,
    expand,
    key_of,
    nearest,
    not_empty,
    schema_for,
    structure,
)
from amqpgate.yamldoc.structure import MOST_ERRORS
from amqpgate.yamldoc.values import parse_seconds, parse_size


@attrs.frozen
class Pair(TextValue):
    left: str
    right: str

    FORM: ClassVar[str] = "a/b"
    PATTERN: ClassVar[str | None] = "^[^/]+/[^/]+$"

    @classmethod
    def parse(cls, text: str) -> Pair:
        left, slash, right = text.partition("/")
        if not slash:
            raise ValueError("expected a/b")
        return cls(left, right)


@attrs.frozen(kw_only=True)
class Inner:
    """What is inside. More about it."""

    low_end: int = attrs.field(default=0, validator=between(0, 10), metadata=doc("the low end"))
    high_end: int = attrs.field(default=10, metadata=doc("the high end"))

    def __attrs_post_init__(self) -> None:
        if self.low_end > self.high_end:
            raise Invalid("lowEnd is above highEnd", "low_end")
        if self.high_end == 99:
            raise ValueError("not 99")


@attrs.frozen(kw_only=True)
class Outer:
    """All of it.

    Not in the description.
    """

    name: str = attrs.field(validator=not_empty(), metadata=doc("the name"))
    inners: tuple[Inner, ...] = attrs.field(default=(), metadata=doc("the inner ones"))
    one: Inner | None = attrs.field(default=None, metadata=doc("one more"))
    mode: Literal["fast", "slow"] = attrs.field(default="fast", metadata=doc("how"))
    flag: bool = attrs.field(default=False, metadata=doc("whether"))
    size: Size = attrs.field(default=Size(4096), metadata=doc("how much"))
    time: Seconds = attrs.field(default=Seconds(1.5), metadata=doc("how long"))
    beat: WholeSeconds | None = attrs.field(
        default=None, validator=attrs.validators.optional(between(1, 5)), metadata=doc("how often")
    )
    pair: Pair | None = attrs.field(default=None, metadata=doc("two", default="none"))
    secret: Secret | None = attrs.field(default=None, metadata=doc("hidden"))
    file: FilePath | None = attrs.field(default=None, metadata=doc("a file"))
    folder: FolderPath | None = attrs.field(default=None, metadata=doc("a folder", key="theFOLDER"))
    count: int | None = attrs.field(default=None, metadata=doc("how many"))

    RESERVED_KEYS: ClassVar[dict[str, str]] = {"color": "comes later"}

    def __attrs_post_init__(self) -> None:
        for index, inner in enumerate(self.inners):
            if inner.high_end == 7:
                raise Invalid("no sevens", "inners", index, "high_end")
            if inner.high_end == 8:
                raise Invalid("no eights", "inners", index, "low_end")


def load(text: str, environ: dict[str, str] | None = None, file: str = "f.yaml") -> Outer:
    (root,) = compose(text, file)
    return structure(expand(root, environ or {}), Outer)


def test_everything_filled() -> None:
    got = load(
        "name: n\ninners: [{lowEnd: 1}, {highEnd: 3}]\none: {lowEnd: 0x05}\nmode: slow\nflag: true\n"
        "size: 2Ki\ntime: 1m30s\nbeat: 5s\npair: a/b\nsecret: s3\ncount: -3\n"
    )
    assert got == Outer(
        name="n",
        inners=(Inner(low_end=1), Inner(high_end=3)),
        one=Inner(low_end=5),
        mode="slow",
        flag=True,
        size=Size(2048),
        time=Seconds(90.0),
        beat=WholeSeconds(5),
        pair=Pair("a", "b"),
        secret=Secret("s3"),
        count=-3,
    )


def test_defaults_and_null() -> None:
    assert load("name: n\none: null\nbeat: ~\npair:\n") == Outer(name="n")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("name: n\nmood: slow\n", "2:1", "unknown key 'mood' (did you mean 'mode'?); known are name, inners"),
        ("name: n\ninners: [{low_end: 1}]\n", "2:11", "unknown key 'low_end' (did you mean 'lowEnd'?)"),
        ("name: n\nzzzzzz: slow\n", "2:1", "unknown key 'zzzzzz'; known are"),
        ("name: n\ncolor: red\n", "2:1", "'color' comes later"),
        ("mode: slow\n", "1:1", "key 'name' is missing"),
        ("name: ''\n", "1:7", "must not be empty"),
        ("name:\n", "1:6", "expected text, not nothing"),
        ("name: 12\n", "1:7", "expected text: put it in quotes, '12'"),
        ("name: [a]\n", "1:7", "expected text, not a list"),
        ("name: n\nmode: fats\n", "2:7", "expected one of fast, slow; not 'fats' (did you mean 'fast'?)"),
        ("name: n\nflag: yes\n", "2:7", "expected true or false, not 'yes'"),
        ("name: n\nflag: 'true'\n", "2:7", "expected true or false, not 'true'"),
        ("name: n\ncount: '5'\n", "2:8", "expected a whole number, not '5'"),
        ("name: n\ncount: 5.0\n", "2:8", "expected a whole number, not '5.0'"),
        ("name: n\nsize: 5 MB\n", "2:7", "such as 256Ki; not '5 MB'"),
        ("name: n\nsize: -5\n", "2:7", "such as 256Ki; not '-5'"),
        ("name: n\ntime: 5 days\n", "2:7", "such as 500ms or 1m30s; not '5 days'"),
        ("name: n\ntime: .inf\n", "2:7", "not '.inf'"),
        ("name: n\nbeat: 1500ms\n", "2:7", "expected whole seconds, not '1500ms'"),
        ("name: n\nbeat: 6\n", "2:7", "must be between 1 and 5"),
        ("name: n\npair: ab\n", "2:7", "expected a/b"),
        ("name: n\ninners: {}\n", "2:9", "expected a list, not a mapping"),
        ("name: n\none: 5\n", "2:6", "expected a mapping with lowEnd, highEnd; not '5'"),
        ("name: n\ninners:\n- {}\n- lowEnd: 11\n", "4:11", "must be between 0 and 10"),
        ("name: n\none: {highEnd: 1, lowEnd: 2}\n", "2:27", "lowEnd is above highEnd"),
        ("name: n\none: {highEnd: 99}\n", "2:6", "not 99"),
        ("name: n\ninners:\n- {}\n- {lowEnd: 1, highEnd: 7}\n", "4:24", "no sevens"),
        ("name: n\ninners:\n- {}\n- {highEnd: 8}\n", "4:3", "no eights"),
        ("name: n\nfile: none.txt\n", "2:7", "no such file: none.txt"),
        ("name: n\ntheFOLDER: none\n", "2:12", "no such folder: none"),
        ("- name\n", "1:1", "expected a mapping with name, inners"),
    ],
)
def test_refusals_cite_place_and_remedy(
    text: str, place: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert str(caught.value).startswith(f"f.yaml:{place}: ")
    assert words in str(caught.value)


def test_a_wrong_document_is_gone_with_its_error() -> None:
    """Not at the next full collection: each reading of a large file would stay until then."""

    def read() -> int:
        (node,) = compose(text, "wrong.yaml")
        try:
            structure(node, Outer)
        except ConfigError as error:
            return len(error.all)
        return 0

    text = "name: x\ninners: [" + ", ".join(["{lowEnd: 11}"] * 60) + "]\n"
    gc.collect()
    gc.disable()
    try:
        assert read() == MOST_ERRORS
        assert not [each for each in gc.get_objects() if isinstance(each, ConfigError | Node)]
    finally:
        gc.enable()


def test_expanded_values_take_the_type_that_is_wanted_and_stay_hidden() -> None:
    got = load("name: ${A}\ncount: ${A}\nflag: ${T}\nsize: ${A}Ki\n", {"A": "12", "T": "true"})
    assert (got.name, got.count, got.flag, got.size) == ("12", 12, True, 12288)
    for key in ("count", "flag", "size", "time", "mode"):
        with pytest.raises(ConfigError) as caught:
            load(f"name: n\n{key}: ${{PW}}\n", {"PW": "hunter2"})
        assert "hunter2" not in str(caught.value)
        assert "${PW}" in str(caught.value)


def test_secrets_stay_secret() -> None:
    got = load("name: n\nsecret: hunter2\n")
    assert got.secret is not None
    assert got.secret.reveal() == "hunter2"
    assert "hunter2" not in repr(got)
    assert "hunter2" not in str(got.secret)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(got.secret)
    for wrong in ("[hunter2]", "{hunter2: 1}", "31337"):
        with pytest.raises(ConfigError) as caught:
            load(f"name: n\nsecret: {wrong}\n")
        assert "hunter2" not in str(caught.value)
        assert "31337" not in str(caught.value)


def test_paths_start_at_the_documents_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "sub").mkdir()
    got = load("name: n\nfile: a.txt\ntheFOLDER: sub\n", file=str(tmp_path / "f.yaml"))
    assert got.file == tmp_path / "a.txt"
    assert got.folder == tmp_path / "sub"
    with pytest.raises(ConfigError, match="no such file"):
        load("name: n\nfile: sub\n", file=str(tmp_path / "f.yaml"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("65536", 65536),
        ("256Ki", 262144),
        ("1Mi", 1 << 20),
        ("2Gi", 2 << 30),
        ("10k", 10_000),
        ("1G", 10**9),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "Ki", "1.5Mi", "1 Ki", "1KB", "1ki", "+1", "1\n", "٣", "9" * 16])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5", 5.0), ("0.5", 0.5), ("500ms", 0.5), ("5s", 5.0), ("2m", 120.0), ("1h", 3600.0), ("1m30s", 90.0)],
)
def test_times(text: str, expected: float) -> None:
    assert parse_seconds(text) == expected


@pytest.mark.parametrize("text", ["", "s", "-5", "5 s", "5d", "1e3", "inf", "5s\n", "5s3", "٣", "1" * 40])
def test_no_times(text: str) -> None:
    with pytest.raises(ValueError, match="a time"):
        parse_seconds(text)


def test_nearest() -> None:
    assert nearest("Mod", ["mode", "name"]) == " (did you mean 'mode'?)"
    assert nearest("CLIENTCA", ["clientCa"]) == " (did you mean 'clientCa'?)"
    assert nearest("qqq", ["mode", "name"]) == ""


def test_keys_are_camel_case() -> None:
    fields = attrs.fields_dict(Outer)
    assert key_of(attrs.fields_dict(Inner)["low_end"]) == "lowEnd"
    assert key_of(fields["folder"]) == "theFOLDER"


def test_schema() -> None:
    schema = schema_for(Outer, identifier="x")
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert schema["description"] == "All of it."
    assert schema["required"] == ["name"]
    assert properties["name"] == {"type": "string", "minLength": 1, "description": "the name"}
    assert properties["inners"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Inner"},
        "description": "the inner ones",
    }
    assert properties["mode"] == {"enum": ["fast", "slow"], "description": "how", "default": "fast"}
    assert properties["one"] == {
        "anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}],
        "description": "one more",
    }
    beat = properties["beat"]
    assert isinstance(beat, dict)
    assert isinstance(beat["anyOf"], list)
    assert isinstance(beat["anyOf"][0], dict)
    assert (beat["anyOf"][0]["minimum"], beat["anyOf"][0]["maximum"]) == (1, 5)
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    assert list(definitions) == ["Inner"]


def test_table() -> None:
    lines = describe(Outer).splitlines()
    assert lines[0] == "| key | type | default | meaning |"
    assert "| `name` | text | required | the name |" in lines
    assert "| `inners[].lowEnd` | whole number | `0` | the low end |" in lines
    assert "| `one.highEnd` | whole number | `10` | the high end |" in lines
    assert "| `size` | size | `4Ki` | how much |" in lines
    assert "| `time` | time | `1.5s` | how long |" in lines
    assert "| `flag` | true or false | `false` | whether |" in lines
    assert "| `pair` | a/b | none | two |" in lines


@attrs.frozen(kw_only=True)
class Bounded:
    """Two bounds, and an object that has one."""

    first: int = attrs.field(validator=between(0, 10), metadata=doc("the first"))
    second: str = attrs.field(default="x", validator=not_empty(), metadata=doc("the second"))
    inner: Inner | None = attrs.field(default=None, metadata=doc("what is inside"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{first: 11, second: ''}", ["1:9: must be between 0 and 10", "1:21: must not be empty"]),
        (
            "{first: 11, inner: {lowEnd: -1, highEnd: x}}",
            [
                "1:42: expected a whole number",
                "1:29: must be between 0 and 10",
                "1:9: must be between 0 and 10",
            ],
        ),
        (
            "{first: 1, inner: {lowEnd: 9, highEnd: 8}, second: ''}",
            ["1:28: lowEnd", "1:52: must not be empty"],
        ),
        ("{second: ''}", ["1:1: key 'first' is missing", "1:10: must not be empty"]),
    ],
)
def test_all_that_is_out_of_bounds_is_told_at_once(text: str, told: list[str]) -> None:
    (root,) = compose(text, "f.yaml")
    with pytest.raises(ConfigError) as raised:
        structure(root, Bounded)
    found = [str(error).partition(":")[2] for error in raised.value.all]
    assert [said.startswith(words) for said, words in zip(found, told, strict=True)] == [True] * len(told), (
        found
    )
