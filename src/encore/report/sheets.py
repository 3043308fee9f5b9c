"""A table's own HTML page read back as the sheet that it was written from: the report shows what that page shows."""

from html.parser import HTMLParser
from pathlib import Path

from encore.errors import EncoreError
from encore.reporting.tables.sheet import Sheet, SheetBlock, SheetEntry


def read_sheet(path: Path) -> Sheet:
    """The sheet of a table that was made.

    Raises:
        EncoreError: the file is missing, or has no table.
    """
    try:
        reader = _Reader(path.stem)
        reader.feed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EncoreError(f"cannot read {path}: {error.strerror}; run snakemake for its table again") from error
    if not reader.header:
        raise EncoreError(f"{path} has no table; remove it and run snakemake for it again")
    return Sheet(reader.name, reader.title, reader.header, reader.blocks, reader.notes)


class _Reader(HTMLParser):
    """Takes the tags that ``reporting/tables/html.py`` writes."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.title = name, ""
        self.header: list[str] = []
        self.blocks: list[SheetBlock] = []
        self.notes: list[str] = []
        self._setting, self._lines, self._line = "", list[list[SheetEntry]](), list[SheetEntry]()
        self._text, self._marker, self._bold, self._in_marker = "", "", False, False
        self._group = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Begin a table part, or note how the text that follows is marked."""
        if tag in ("caption", "th", "td", "li"):
            self._text, self._marker, self._bold = "", "", False
            self._group = ("scope", "rowgroup") in attributes
        elif tag == "tbody":
            self._setting, self._lines = "", []
        elif tag == "tr":
            self._line = []
        elif tag == "strong":
            self._bold = True
        elif tag == "sup":
            self._in_marker = True

    def handle_data(self, data: str) -> None:
        """Add to the text of the current cell, or to its marker."""
        if self._in_marker:
            self._marker += data
        else:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        """Store the part that ends here: title, note, setting, cell, header, line or block."""
        if tag == "caption":
            self.title = self._text
        elif tag == "li":
            self.notes.append(self._text)
        elif tag == "sup":
            self._in_marker = False
        elif tag in ("th", "td") and self._group:
            self._setting = self._text
        elif tag in ("th", "td"):
            self._line.append(SheetEntry(self._text, self._bold, self._marker))
        elif tag == "thead":
            self.header, self._line = [entry.text for entry in self._line], []
        elif tag == "tr" and self.header and self._line:
            self._lines.append(self._line)
            self._line = []
        elif tag == "tbody":
            self.blocks.append(SheetBlock(self._setting, self._lines))
