"""The files of a record, their digests, and what came of judging it again."""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from judging.statistics import LEVEL, Tested

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
SUMS = "SHA256SUMS"
FORM = 2  # of records; those without a form may lack the values of queries
UNTESTED, TOO_FEW, OPEN = "not testable here", "too few seeds", "not distinguishable"
Key = tuple[str, str, str, str]  # table or figure, setting, row, column


@dataclass
class Judged:
    """What came of a record: what differs, what cannot be judged again, and how much was."""

    name: str
    differs: list[str] = field(default_factory=list)
    cannot: list[str] = field(default_factory=list)
    numbers: int = 0
    words: int = 0

    def number(self, where: str, recorded: str, again: float | None, precise: float = 1e-9) -> None:
        """Compare a recorded number, empty for none, with what comes out: relative to the larger of the two."""
        self.numbers += 1
        if recorded == "" or again is None:
            if recorded != "" or again is not None:
                self.differs.append(f"{where} is {recorded or 'empty'}, comes out as {again}")
        elif not math.isclose(float(recorded), again, rel_tol=precise, abs_tol=1e-11):
            self.differs.append(f"{where} is {recorded}, comes out as {again:.12g}")

    def p(self, where: str, recorded: str, tested: Tested | None, corrected: float | None = None) -> None:
        """Compare a p value, or the corrected one."""
        again = corrected if corrected is not None or tested is None else tested.p
        self.number(where, recorded, again, tested.precise(tested.p) if tested else 0)

    def end(self, where: str, recorded: str, tested: Tested | None, level: float = LEVEL) -> None:
        """Compare an end of an interval: the p value of the distance between it and the mean has to be the level."""
        if recorded == "" or tested is None or math.isinf(tested.error):
            self.number(where, recorded, None if tested is None or math.isinf(tested.error) else tested.mean)
            return
        if tested.error <= 1e-12 * abs(tested.mean):
            self.number(where, recorded, tested.mean)
            return
        self.numbers += 1
        distance = abs(float(recorded) - tested.mean)
        if not math.isclose(p := tested.p_of(distance), level, rel_tol=tested.precise(level)):
            self.differs.append(f"{where} is {recorded}, where p is {p:.6g} and not {level}")

    def word(self, where: str, recorded: str, again: str) -> None:
        """Compare a verdict or a marker."""
        self.words += 1
        if recorded != again:
            self.differs.append(f"{where} is {recorded or 'empty'!r}, comes out as {again or 'empty'!r}")


class Record:
    """The files of a record."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))

    @property
    def is_old(self) -> bool:
        """Whether it was made before the values of queries of all tables with verdicts were recorded."""
        return self.run.get("form", 1) < FORM

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The recorded tables by name, their cells as text."""
        paths = sorted((self.folder / "tables").rglob("*.csv"))
        return {self._name(path, ".csv"): text_of(path) for path in paths}

    @cached_property
    def claims(self) -> dict[str, Any]:
        """The recorded comparisons of claims."""
        found: dict[str, Any] = json.loads((self.folder / "claims.tests.json").read_text(encoding="utf-8"))
        return found

    @cached_property
    def by_seed(self) -> dict[Key, dict[str, float]]:
        """The recorded means of cells, by seed; the seed of what has no chance in it is empty."""
        found: dict[Key, dict[str, float]] = {}
        path = self.folder / "per_seed.csv"
        for line in text_of(path).itertuples() if path.exists() else ():
            found.setdefault((line.table, line.setting, line.row, line.column), {})[line.seed] = float(line.value)
        return found

    @cached_property
    def queries(self) -> dict[Key, dict[str, pd.Series]]:
        """The recorded values of queries by seed, each indexed by query and cluster."""
        found: dict[Key, dict[str, pd.Series]] = {}
        for path in sorted(self.folder.rglob("*.queries.csv.gz")):
            kept = pd.read_csv(path, index_col=["query", "cluster"], dtype={"query": str, "cluster": str},
                               keep_default_na=False, na_values=[""])  # fmt: skip
            for name in kept:
                setting, row, column, seed = json.loads(name)
                key = (self._name(path, ".queries.csv.gz"), setting, row, column)
                found.setdefault(key, {})["" if seed is None else str(seed)] = kept[name].dropna()
        return found

    def _name(self, path: Path, ending: str) -> str:
        return str(path.relative_to(self.folder)).partition("/")[2].removesuffix(ending)


def text_of(path: Path) -> pd.DataFrame:
    """A CSV file's cells as text, without the apostrophe that keeps a spreadsheet from calculating."""
    cells = pd.read_csv(path, dtype=str, keep_default_na=False)
    return cells.map(lambda text: text[1:] if text[:1] == "'" and text[1:2] in tuple("=+-@") else text)


def paired(ours: Iterable[str], theirs: Iterable[str]) -> list[tuple[str, str]]:
    """The seeds of two rows that belong together; a row without seeds is paired with each."""
    one, other = list(ours), list(theirs)
    if other == [""]:
        return [(seed, "") for seed in one]
    return [("", seed) for seed in other] if one == [""] else [(seed, seed) for seed in one if seed in other]


def altered(folder: Path) -> list[str]:
    """Files of a record that are not those that were recorded, by the digests of its ``run.json``."""
    known = json.loads((folder / "run.json").read_text(encoding="utf-8"))["files"]
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "run.json"]
    found = {path.relative_to(folder).as_posix(): digest(path) for path in paths}
    return sorted(name for name in {*found, *known} if found.get(name) != known.get(name))


def unbound(recorded: Path = RECORDED) -> list[str]:
    """Files of all records, by their paths, that are not those that ``SHA256SUMS`` names."""
    sums = (line.split("  ", 1) for line in (recorded / SUMS).read_text(encoding="utf-8").splitlines())
    known = {name: value for value, name in sums}
    found = {path.relative_to(recorded).as_posix(): digest(path) for path in recorded.rglob("*") if path.is_file()}
    return sorted(name for name in {*found, *known} - {SUMS} if found.get(name) != known.get(name))


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
