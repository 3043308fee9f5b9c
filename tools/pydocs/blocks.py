"""A docstring's lines without what is not prose: doctests, literal blocks, directives, tables, fences.

reStructuredText marks all of these by indentation, so one pass over the lines is enough.
"""

import re

from tools.pydocs.markup import CUT

_DIRECTIVE = re.compile(r"\.\.(?:\s+(?:\|[^|]+\|\s+)?(?P<name>[\w:-]+)::\s*(?P<argument>.*)|\s.*|$)")
_ADMONITION = re.compile("note|warning|important|attention|caution|tip|hint")
_FENCE = re.compile(r"(```|~~~)")
_TABLE_BORDER = re.compile(r"[\s+|]*[=\-]{2,}([\s+|]+[=\-]{2,})+[\s+|]*|\+[=\-+]{3,}\+")
_UNDERLINE = re.compile(r"([=\-~^*#+\"'`.])\1{2,}")


def prose_lines(docstring: str) -> tuple[list[str], list[str]]:
    """The lines that are left, with their indentation, and the lines of ``seealso`` directives."""
    lines: list[str] = []
    see_also: list[str] = []
    waiting = [line.expandtabs().rstrip() for line in docstring.splitlines()][::-1]
    while waiting:
        line = waiting.pop()
        text = line.strip()
        if text.startswith(">>>"):
            _cut(lines)
            _drop_paragraph(waiting)
        elif _FENCE.match(text):
            _drop_fence(waiting, text[:3])
        elif directive := _DIRECTIVE.fullmatch(text):
            block = [*([directive["argument"]] if directive["argument"] else []), *_take_block(waiting, _indent(line))]
            if _ADMONITION.fullmatch(directive["name"] or ""):
                waiting += ["", *_dedented(block, _indent(line))[::-1], ""]
            elif directive["name"] == "seealso":
                see_also += block
            else:
                _cut(lines)
        elif text.endswith("::"):
            lines.append(line[:-1])
            _cut(lines)
            _take_block(waiting, _indent(line))
        else:
            lines.append(line)
    return _without_tables(lines), see_also


def is_underline(text: str) -> bool:
    """Whether a line is a heading's rule: one mark, three times or more."""
    return _UNDERLINE.fullmatch(text.strip()) is not None


def dedent_of(lines: list[str]) -> int:
    """The smallest indentation of the lines that hold text."""
    return min((_indent(line) for line in lines if line.strip()), default=0)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _take_block(waiting: list[str], indent: int) -> list[str]:
    """Pop the lines that are blank or indented deeper than ``indent``."""
    block = []
    while waiting and (not waiting[-1].strip() or _indent(waiting[-1]) > indent):
        block.append(waiting.pop())
    if block and not block[-1].strip():
        waiting.append("")  # the blank line that ends the block still parts two paragraphs
    return block


def _cut(lines: list[str]) -> None:
    """Mark the sentence that announces a block ("as follows:"), since the block goes."""
    last = next((number for number in reversed(range(len(lines))) if lines[number].strip()), None)
    if last is not None and lines[last].endswith(":"):
        lines[last] += CUT


def _drop_paragraph(waiting: list[str]) -> None:
    while waiting and waiting[-1].strip():
        waiting.pop()


def _drop_fence(waiting: list[str], mark: str) -> None:
    while waiting and not waiting.pop().strip().startswith(mark):
        pass


def _dedented(block: list[str], indent: int) -> list[str]:
    """An admonition's content, moved to the indentation of its directive; options (``:class: x``) are left out."""
    content = [line for line in block if not re.match(r"\s*:\w+:(\s|$)", line)]
    removed = dedent_of(content[1:] if content and _indent(content[0]) == 0 else content)
    return [" " * indent + (line[removed:] if line[:removed].isspace() else line.strip()) for line in content]


def _without_tables(lines: list[str]) -> list[str]:
    kept: list[str] = []
    for paragraph in paragraphs(lines):
        if not any(_TABLE_BORDER.fullmatch(line.strip()) or line.strip().startswith("|") for line in paragraph):
            kept += [*paragraph, ""]
    return kept


def paragraphs(lines: list[str]) -> list[list[str]]:
    """Runs of lines between blank ones."""
    runs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            runs[-1].append(line)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
