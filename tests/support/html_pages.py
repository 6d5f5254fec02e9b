"""A page as a reader finds it: its parts by name, their tables, what its pictures say, and its colours."""

from __future__ import annotations

import re
from collections import defaultdict
from html.parser import HTMLParser


class Page(HTMLParser):
    """What stands where; what comes before the first part is its `top`."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.elements: set[str] = set()
        self.elements_of_pictures: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.headings: list[tuple[int, str]] = []
        self.pictures: list[str] = []
        self.tables: dict[str, list[list[list[str]]]] = defaultdict(list)
        self.drawn: dict[str, list[str]] = defaultdict(list)
        self.links: dict[str, list[str]] = defaultdict(list)
        self.texts: dict[str, str] = defaultdict(str)
        self._part, self._open = "top", ""
        self._in_picture = False
        self.feed(source)
        self.close()

    def cells(self, part: str) -> list[list[str]]:
        return [row for table in self.tables[part] for row in table]

    def place_of(self, case: str) -> str:
        """Where the list of all cases leads for one."""
        (place,) = re.findall(
            rf'<td><a href="#([a-z0-9-]+)">{re.escape(case)}</a></td><td>(?:[a-z_]+)</td>', self.source
        )
        return str(place)

    def colours(self, scheme: str) -> dict[str, str]:
        """The variables as they are under one scheme: what is said for all, and over it what is said for this one."""
        style = self.source.split("<style>")[1].split("</style>")[0]
        asked = {"dark": "(prefers-color-scheme: dark)", "print": "print"}.get(scheme)
        for query, block in re.findall(r"@media ([^{]+?) \{\n((?:  .*\n)*)\}", style):
            style = style.replace(f"@media {query} {{\n{block}}}", block if query == asked else "")
        return dict(re.findall(r"--(\w+): (#[0-9a-f]+);", style))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.add(tag)
        self.attributes += attrs
        if tag == "section":
            self._part = str(given["aria-labelledby"])
        if tag == "svg":
            self.pictures.append(self._part)
            self._in_picture = True
        if self._in_picture:
            self.elements_of_pictures.add(tag)
        self._begin(tag, given)

    def _begin(self, tag: str, given: dict[str, str | None]) -> None:
        match tag:
            case "text":
                self.drawn[self._part].append("")
            case "h1" | "h2" | "h3":
                self.headings.append((int(tag[1]), ""))
            case "table":
                self.tables[self._part].append([])
            case "tr":
                self.tables[self._part][-1].append([])
            case "td" | "th":
                self.tables[self._part][-1][-1].append("")
            case "a":
                self.links[self._part].append(str(given["href"]))
        if tag in {"text", "h1", "h2", "h3", "td", "th"}:
            self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._in_picture &= tag != "svg"
        if tag == self._open:
            self._open = ""

    def handle_data(self, data: str) -> None:
        self.texts[self._part] += data
        match self._open:
            case "text":
                self.drawn[self._part][-1] += data
            case "h1" | "h2" | "h3":
                level, before = self.headings[-1]
                self.headings[-1] = (level, before + data)
            case "td" | "th":
                self.tables[self._part][-1][-1][-1] += data


def read(source: str) -> Page:
    return Page(source)


def contrast(one: str, other: str) -> float:
    """As the Web Content Accessibility Guidelines count it."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
