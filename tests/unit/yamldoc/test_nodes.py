"""YAML text to nodes: positions, bounds, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from amqpgate.errors import ConfigError
from amqpgate.yamldoc import (
    Mapping,
    Mark,
    Node,
    NumberBounds,
    Scalar,
    Sequence,
    compose,
    from_python,
    nodes,
    read,
)


@pytest.fixture(params=["libyaml", "python"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of PyYAML's parsers must say the same."""
    if request.param == "libyaml" and not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(nodes, "_LOADER", yaml.CSafeLoader if request.param == "libyaml" else yaml.SafeLoader)


def plain(node: Node) -> object:
    if isinstance(node, Mapping):
        return {key: plain(value) for key, value in node.entries.items()}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return node.text


def refusal(text: str | bytes, bounds: NumberBounds | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        compose(text, "f.yaml", bounds=bounds)
    return str(caught.value)


@pytest.mark.usefixtures("_parser")
class TestBothParsers:
    def test_tree_with_places(self) -> None:
        (root,) = compose("a: 1\nb:\n  - x\n  - {c: 'd'}\n", "f.yaml")
        assert plain(root) == {"a": "1", "b": ["x", {"c": "d"}]}
        assert isinstance(root, Mapping)
        assert root.keys["b"] == Mark("f.yaml", 2, 1)
        items = root.entries["b"]
        assert isinstance(items, Sequence)
        assert items.items[0].mark == Mark("f.yaml", 3, 5)
        inner = items.items[1]
        assert isinstance(inner, Mapping)
        assert inner.entries["c"] == Scalar("d", Mark("f.yaml", 4, 9), plain=False)

    def test_several_documents_empty_ones_left_out(self) -> None:
        assert [plain(node) for node in compose("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n", "f")] == [
            {"a": "1"},
            {"b": "2"},
        ]

    @pytest.mark.parametrize(
        ("text", "place", "words"),
        [
            ("a: &x 1\n", "1:4", "anchors and aliases"),
            ("a: *x\n", "1:4", "anchors and aliases"),
            ("- &x [1]\n", "1:3", "anchors and aliases"),
            ("a: !!python/name:os.system x\n", "1:4", "tags"),
            ("a: !!str 1\n", "1:4", "tags"),
            ("a: !mine [1]\n", "1:4", "tags"),
            ("a: 1\nb: 2\na: 3\n", "3:1", "given twice (first on line 1)"),
            ("x: {b: 1, b: 2}\n", "1:11", "given twice"),
            ("<<: {a: 1}\n", "1:1", "merge keys"),
            ("[a]: 1\n", "1:1", "a key must be a plain word"),
            ("{a: 1}: 1\n", "1:1", "a key must be a plain word"),
            ("a: [1\n", "2:1", "not valid YAML"),
        ],
    )
    def test_refused(self, text: str, place: str, words: str) -> None:
        message = refusal(text)
        assert message.startswith(f"f.yaml:{place}: ")
        assert words in message

    def test_syntax_errors_do_not_show_the_line(self) -> None:
        assert "hunter2" not in refusal("password: hunter2: x\n")

    def test_bounds(self) -> None:
        assert "larger than 10 bytes" in refusal("a: 12345678\n", NumberBounds(size=10))
        assert "deeper than 3 levels" in refusal("[[[[]]]]", NumberBounds(depth=3))
        assert compose("[[[]]]", "f", bounds=NumberBounds(depth=3))
        assert "more than 2 documents" in refusal("--- a\n--- b\n--- c\n", NumberBounds(documents=2))
        assert "more than 4 values" in refusal("[1, 2, 3, 4]", NumberBounds(nodes=4))

    def test_deep_nesting_is_no_recursion(self) -> None:
        # The pure Python scanner takes quadratic time in flow depth, so the text stays moderate.
        assert refusal("[" * 3000).startswith("f.yaml:1:33: nested deeper than 32 levels")

    def test_not_text(self) -> None:
        assert refusal(b"a: 1\nb: \xff\n").startswith("f.yaml:2:4: the file is not UTF-8")
        for text, number, written in (
            ("\x00", "0000", r"\x00"),
            ("\x1b", "001b", r"\x1b"),
            ("\ufffe", "fffe", r"\ufffe"),
        ):
            said = f"no character #x{number} may be in it; in double quotes it is written {written}"
            assert refusal(f"a: é\nb: '{text}'\n") == f"f.yaml:2:5: not valid YAML: {said}"

    def test_a_quote_without_an_end_is_told_where_it_begins(self) -> None:
        for quote in "'\"":
            said = "not valid YAML: the quote that begins here has no end"
            assert refusal(f"a: 1\nb: {quote}x\nc: 1\n") == f"f.yaml:2:4: {said}"

    def test_all_keys_that_are_given_twice_are_told(self) -> None:
        with pytest.raises(ConfigError) as caught:
            compose("a: 1\na: {x: 1, x: 2}\na: 3\n---\nb: 1\nb: 2\n", "f.yaml")
        places = [(one.line, one.column) for one in caught.value.all]
        assert places == [(2, 1), (2, 11), (3, 1), (6, 1)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("yes", "string"),
        ("no", "string"),
        ("on", "string"),
        ("12:30:45", "string"),
        ("2020-01-01", "string"),
        ("1_000", "string"),
        ("'5'", "string"),
        ("true", "boolean"),
        ("~", "null"),
        ("''", "string"),
        ("-5", "integer"),
        ("0x1f", "integer"),
        ("1.5", "number"),
        ("1e3", "number"),
        (".inf", "number"),
    ],
)
def test_scalars_follow_the_core_schema(text: str, kind: str) -> None:
    (root,) = compose(f"a: {text}\n", "f")
    assert isinstance(root, Mapping)
    scalar = root.entries["a"]
    assert isinstance(scalar, Scalar)
    assert scalar.kind == kind


def test_read(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert [plain(node) for node in read(file)] == [{"a": "1"}]
    file.write_bytes(b"#" * 101)
    with pytest.raises(ConfigError, match="larger than 100 bytes"):
        read(file, bounds=NumberBounds(size=100))
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read(tmp_path / "none.yaml")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    )
)
def test_what_pyyaml_reads_is_read_the_same(value: object) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    assume("<<" not in text)
    # Not `value`: PyYAML folds a line break such as U+0085 into a space when it writes it.
    again = yaml.safe_load(text)
    expected = [] if again is None else [plain(from_python(again, "f"))]
    assert [plain(node) for node in compose(text, "f")] == expected


def test_errors_of_values_that_were_in_no_file_cite_their_source() -> None:
    node = from_python({"a": [1, True, None, "x"]}, "--flag")
    assert plain(node) == {"a": ["1", "true", "null", "x"]}
    assert str(node.mark.error("bad")) == "--flag: bad"
