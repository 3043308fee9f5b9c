"""Every command that the documents show."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "config/README.md", "benchmarks/README.md", "tests/README.md", "docs/*.md"]
READERS = ("cat", "awk", "ir_measures", "head", "grep", "ssh-keygen")  # tools of others that read results
TOOLS = ("snakemake", "encore", "make", "python", "pip", "pytest", "bash", "source", *READERS)
SHELL = ("bash", "sh", "console")  # languages of fences whose every line is a command


@dataclass(frozen=True)
class Command:
    """A command as a page shows it, without its comment; ``inline`` in the middle of a sentence."""

    page: str
    text: str
    inline: bool = False

    @property
    def tool(self) -> str:
        """The program that it calls."""
        return self.text.split()[0]

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def documented() -> list[Command]:
    """The commands of all pages, each once a page."""
    pages = [page for pattern in PAGES for page in sorted(ROOT.glob(pattern))]
    return list(dict.fromkeys(each for page in pages for each in of_page(page, str(page.relative_to(ROOT)))))


def of_page(page: Path, name: str) -> Iterator[Command]:
    """The commands of a page, which is called ``name``: those of blocks, then those in sentences."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.S).replace("\\\n", " ")
    language, prose = "", []
    for line in text.splitlines():
        if fence := re.match(r" *```(\w*)", line):
            language = "" if language else fence[1] or "text"
        elif language in SHELL or (not language and re.match(r" {4}|\t", line)):
            if command := _command(line):
                yield Command(name, command)
            elif language in SHELL and line.strip() and not line.strip().startswith("#"):
                raise AssertionError(f"{name} shows {line!r}; say in tests how {line.split()[0]!r} is checked")
        elif not language:
            prose.append(line)
    for span in re.findall(r"`([^`]+)`", "\n".join(prose)):
        words = span.split()
        if len(words) > 1 and words[0] in TOOLS:
            yield Command(name, " ".join(words), inline=True)


def _command(line: str) -> str:
    """The command of a line, without prompt and comment; empty where it has none."""
    text = re.split(r"(?:^|\s{2,})# ", line.strip().removeprefix("$ "))[0].strip()
    tool = text.split(" ")[0]
    if tool in TOOLS:
        return " ".join(text.split()) if "\n" not in text else text
    output = text[len(tool) :].startswith("  ")  # columns of what a command prints
    if tool.isalpha() and tool.islower() and shutil.which(tool) and not output:
        raise AssertionError(f"{line!r} looks like a command; say in tests how {tool!r} is checked")
    return ""


def is_complete(command: Command) -> bool:
    """Whether it can be run as it stands: what is named in a sentence may leave its arguments out."""
    words = command.text.split()
    whole = len(words) > 2 or command.tool != "encore"
    return not command.inline or (whole and not words[-1].startswith("--") and not words[-1].isupper())


def needs_a_run(command: Command) -> bool:
    """Whether it is about what was made: run by tests/e2e/test_documented.py."""
    made = ("show", "explain", "audit", "crate", "flops", "compare", "export")
    return command.tool == "encore" and (command.text.split()[1] in made or command.text == "encore claims")
