"""The sheet as Markdown and as HTML: what it says is shown letter by letter, and nothing in it acts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from host.handover.blocks import Cell, Note, Pairs, Section, Table, Verbatim
from host.handover.html import html
from host.handover.markdown import markdown

HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a|b", "`x`", "a\n# b", "a\r\n\r\n- b", "\x1b[31m",
    "\u202egpj.exe", "](https://evil.example)", "&lt;b&gt;", "</code></td>", "javascript:alert(1)",
)  # fmt: skip


def page_of(cell: Cell) -> tuple[Section, ...]:
    return (Section("One", (Note("A note."), Pairs(((cell, cell),)), Table(("h", "i"), ((cell, "x"),), "None."))),)


class Seen(HTMLParser):
    """Every element, attribute and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def seen(page: str) -> Seen:
    parser = Seen()
    parser.feed(page)
    parser.close()
    return parser


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_outside_adds_no_element_and_no_attribute_to_the_page(text: str):
    plain, hostile = seen(html("t", page_of(Verbatim("x")))), seen(html(text, page_of(Verbatim(text))))
    assert hostile.elements == plain.elements
    assert hostile.attributes == plain.attributes
    assert len(hostile.text) == len(plain.text)


def test_the_page_has_no_script_and_needs_nothing_from_elsewhere():
    page = html("t", page_of(Verbatim("x")))
    parsed = seen(page)
    assert parsed.elements.isdisjoint({"script", "img", "iframe", "object", "embed", "form", "a", "base"})
    assert {value for name, value in parsed.attributes if name in {"src", "href"}} == {"data:,"}
    assert "default-src 'none'" in page
    assert re.search(r"url\(|@import|https?:", page) is None
    assert not any(name.startswith("on") for name, _ in parsed.attributes)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_from_outside_stays_in_its_cell_of_the_markdown(text: str):
    plain, hostile = markdown("t", page_of(Verbatim("x"))), markdown("t", page_of(Verbatim(text)))
    assert len(hostile.splitlines()) == len(plain.splitlines())
    row = hostile.splitlines()[-1]
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    assert row.count("`") == 2
    assert all(letter.isprintable() or letter == "\n" for letter in hostile)


def test_a_table_without_rows_is_a_sentence():
    parts = (Section("One", (Table(("h",), (), "There is none."),)),)
    assert markdown("t", parts) == "# t\n\n## One\n\nThere is none.\n"
    assert "<p>There is none.</p>" in html("t", parts)
    assert "<table" not in html("t", parts)
