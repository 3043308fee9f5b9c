"""Judge recorded runs again from docs/recorded/NAME alone, and name every number and word that comes out otherwise.

    python docs/judge_again.py            # all records
    python docs/judge_again.py real       # one, by its name or its folder

It shares no code with Encore: it reads CSV files by pandas, integrates by SciPy, and is written from the formulas of
docs/protocol.md. From values of queries it computes means, their intervals, differences, p values (the cluster-robust
test, Holm's correction, the paired t-test, the randomisation test), markers, verdicts on objectives, and each claim's
estimate, interval, p, equivalence and verdict; from means by seed the numbers of the other columns. Digests of all
files are compared first. Not judged again, since a record does not hold what they are made from: ranges of ties,
answered queries, minimum detectable gains, chances of claims, printed numbers and figures.
"""

import argparse
import hashlib
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import integrate, special

RECORDED = Path(__file__).resolve().parent / "recorded"
SUMS = "SHA256SUMS"
FORM = 2  # of records; those without a form may lack the values of queries
LEVEL, ENOUGH_SEEDS, DUST = 0.05, 5, 1e-9
SYMBOLS = "†‡§¶‖"
SAMPLES = 10_000  # of a randomisation test
UNTESTED, TOO_FEW, OPEN, PREMISE = "not testable here", "too few seeds", "not distinguishable", "premise not met"
BEFORE = "cannot be judged again: made before per-query values were recorded"

Key = tuple[str, str, str, str]  # table or figure, setting, row, column
Parts = Sequence[tuple[np.ndarray, np.ndarray]]  # differences [queries, seeds] and the clusters of the queries


class Part(NamedTuple):
    """A variance of a mean, and its degrees of freedom."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Tested:
    """A mean difference, the variances of the mean, and p where nothing varies."""

    mean: float
    parts: tuple[Part, ...]
    least_p: float = 0.0

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return math.sqrt(sum(part.variance for part in self.parts))

    def p_of(self, distance: float) -> float:
        """The two-sided p value of a mean that is ``distance`` from 0."""
        if math.isinf(self.error):
            return 1.0
        if self.error <= 1e-12 * abs(distance):
            return 1.0 if distance == 0 else self.least_p
        return min(1.0, 2 * below(-abs(distance), [part for part in self.parts if part.variance > 0]))

    @property
    def p(self) -> float:
        """The two-sided p value of no difference."""
        return self.p_of(self.mean)

    def within(self, margin: float) -> float:
        """p of two one-sided tests that the difference is smaller than a margin: that of the nearer end."""
        inside = margin - abs(self.mean)
        half = self.p_of(inside) / 2
        return half if inside > 0 else 1 - half

    def precise(self, p: float) -> float:
        """The relative error of Encore's own quadrature, which has too few nodes where tails are heavy or far away."""
        return 1e-5 if p > 1e-6 and all(part.freedom >= 3 for part in self.parts) else 1e-2


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


def below(distance: float, parts: Sequence[Part]) -> float:
    """P(sqrt(V_1) t(f_1) + sqrt(V_2) t(f_2) < distance), Behrens's and Fisher's, for a negative distance."""
    if len(parts) == 1:
        return float(special.stdtr(parts[0].freedom, distance / math.sqrt(parts[0].variance)))
    (first, f_1), (second, f_2) = ((math.sqrt(part.variance), part.freedom) for part in parts)
    log_constant = special.gammaln((f_2 + 1) / 2) - special.gammaln(f_2 / 2) - math.log(f_2 * math.pi) / 2

    def both(x: float) -> float:
        density = math.exp(log_constant - (f_2 + 1) / 2 * math.log1p(x * x / f_2))
        return density * float(special.stdtr(f_1, (distance - second * x) / first))

    turn = distance / second  # from here on down the second alone goes beyond the distance
    ends = sorted({-math.inf, 2 * turn, turn, turn / 2, min(-1.0, turn / 4), 0.0, 1.0, math.inf})
    return sum(
        integrate.quad(both, low, high, epsabs=0, epsrel=1e-9, limit=200)[0] for low, high in itertools.pairwise(ends)
    )


def clustered(parts: Parts) -> Tested:
    """The sum of mean differences, each over its own queries: leaving out clusters one by one, and seeds one by one."""
    seeds = parts[0][0].shape[1]
    mean = variance = 0.0
    of_seeds, effective, groups = np.zeros(seeds), math.inf, 0
    for values, clusters in parts:
        own, total = float(values.mean()), values.size
        by_cluster = pd.DataFrame(values).groupby(clusters)
        sums, sizes = by_cluster.sum().sum(axis=1).to_numpy(), seeds * by_cluster.size().to_numpy()
        without = (own * total - sums) / (total - sizes)
        variance += (len(sums) - 1) / len(sums) * float(((without - own) ** 2).sum())
        effective = min(effective, float(sizes.sum() ** 2 / (sizes**2).sum()))
        mean, groups = mean + own, groups + len(sums)
        of_seeds += values.mean(axis=0)
    found = [Part(variance, effective - 1)]
    if seeds > 1:
        without = (of_seeds.sum() - of_seeds) / (seeds - 1)
        found.append(Part((seeds - 1) / seeds * float(((without - mean) ** 2).sum()), seeds - 1))
    return Tested(mean, tuple(found), 2.0 ** (1 - groups))


def testable(clusters: np.ndarray) -> bool:
    """True unless one cluster has nearly all queries."""
    sizes = pd.Series(clusters).value_counts()
    return len(sizes) > 1 and sizes.sum() ** 2 >= 1.1 * (sizes**2).sum()


def randomised(tests: Sequence[np.ndarray], clusters: np.ndarray) -> list[float]:
    """p of randomisation tests [queries, seeds]: 10,000 times signs of whole clusters, in their names' order, flip."""
    sums = np.stack([pd.DataFrame(each).groupby(clusters).sum().mean(axis=1).to_numpy() for each in tests], axis=1)
    generator, larger = np.random.default_rng(0), np.zeros(len(tests))
    least = np.abs(sums.sum(axis=0)) - 1e-10 * np.abs(sums).sum(axis=0)
    for _ in range(SAMPLES // 1000):
        signs = np.where(generator.integers(0, 2, (1000, len(sums))) == 1, 1.0, -1.0)
        larger += (np.abs(signs @ sums) >= least).sum(axis=0)
    return [float(p) for p in (larger + 1) / (SAMPLES + 1)]


def holm(p_values: Sequence[float]) -> list[float]:
    """p values of a family, each times how many are not smaller, and never below that of a smaller one."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.minimum(1, np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1))
    found = np.empty(len(p_values))
    found[order] = np.maximum.accumulate(adjusted)
    return list(map(float, found))


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


@dataclass
class Against:
    """A row against a comparator: the test, corrected p, and that of a gain over none and control together."""

    tested: Tested
    values: np.ndarray
    clusters: np.ndarray
    flips: float | None = None
    p_holm: float | None = None
    joint: float | None = None
    equivalent: float | None = None
    jointly_equivalent: float | None = None

    @property
    def sign(self) -> int:
        """1 for a significant gain, -1 for a significant loss, 0 for neither."""
        return 0 if self.p_holm is None or self.p_holm > LEVEL else int(math.copysign(1, self.tested.mean))


class TableAgain:
    """A recorded table that is judged again by what its ``run.json`` says of its rows; without that, its means."""

    def __init__(self, record: Record, name: str, judged: Judged) -> None:
        said = record.run.get("tables", {}).get(name, {})
        self.name, self.judged, self.cells = name, judged, record.tables[name]
        self.is_old, self.has_rows = record.is_old, bool(said)
        self.primary: list[str] = said.get("primary", [])
        compared = [name.removeprefix("delta_") for name in self.cells if name.startswith("delta_")]
        self.comparators: list[str] = said.get("comparators", compared)
        self.roles: dict[str, dict[str, str]] = said.get("roles", {})
        self.margin: float | None = said.get("margin")
        self.queries = {key[1:]: found for key, found in record.queries.items() if key[0] == name}
        short = name.rpartition("/")[2] if self.is_old else name
        self.by_seed = {key[1:]: found for key, found in record.by_seed.items() if key[0] in (name, short)}
        self.against = {at: dict(self._against(*at)) for at in self.queries if at[2] in self.primary}
        self._randomise()
        for setting, rows in self.roles.items():
            self._correct(setting, [row for row, role in rows.items() if role == "objective"])

    def _against(self, setting: str, row: str, column: str) -> Iterator[tuple[str, Against]]:
        for other in self.comparators:
            theirs = self.queries.get((setting, other, column))
            if theirs is None or other == row:
                continue
            ours = self.queries[setting, row, column]
            pairs = [ours[a].sub(theirs[b]) for a, b in paired(ours, theirs)]
            apart = pd.concat(pairs, axis=1).dropna()
            clusters = apart.index.get_level_values("cluster").to_numpy()
            if testable(clusters):
                yield other, Against(clustered([(apart.to_numpy(), clusters)]), apart.to_numpy(), clusters)

    def _randomise(self) -> None:
        """The randomisation tests, those of the same clusters at once."""
        alike: dict[tuple[str, ...], list[Against]] = {}
        for one in (one for own in self.against.values() for one in own.values()):
            alike.setdefault(tuple(one.clusters), []).append(one)
        for tests in alike.values():
            for one, p in zip(tests, randomised([each.values for each in tests], tests[0].clusters), strict=True):
                one.flips = p

    def _correct(self, setting: str, objectives: Sequence[str]) -> None:
        """Correct p over the objectives of a setting under all primary columns."""
        family = [at for column in self.primary for row in objectives if (at := (setting, row, column)) in self.against]
        for other in self.comparators:
            own = [self.against[at][other] for at in family if other in self.against[at]]
            for one, p in zip(own, holm([each.tested.p for each in own]), strict=True):
                one.p_holm = p
            for one, p in zip(own, holm([each.tested.within(self.margin or 0) for each in own]), strict=True):
                one.equivalent = p if self.margin else None
        deciding = [row for row, role in self.roles[setting].items() if role in ("none", "control")]
        both = [[self.against[at][name] for name in deciding if name in self.against[at]] for at in family]
        gains = [max((each.tested.p if each.tested.mean > 0 else 1.0 for each in own), default=1.0) for own in both]
        alike = [max((each.tested.within(self.margin or 0) for each in own), default=1.0) for own in both]
        for own, gain, same in zip(both, holm(gains), holm(alike), strict=True):
            for one in own:
                one.joint, one.jointly_equivalent = gain, same if self.margin else None

    def judge(self) -> None:
        """Compare every cell."""
        tested = any(self.cells[name].any() for name in self.cells if name.startswith("p_") or name == "verdict")
        if not self.has_rows and not self.is_old:
            self.judged.differs.append(f"{self.name}: run.json does not say what its rows are")
        elif not self.has_rows and tested:
            self.judged.cannot.append(f"tables/{self.name}: its tests and verdicts")
        unseen = [column for column in dict.fromkeys(self.cells["column"]) if self._was_not_kept(column)]
        if unseen:
            self.judged.cannot.append(f"tables/{self.name}: columns {', '.join(unseen)}")
        places = [(line["setting"], line["row"], line["column"]) for line in self.cells.to_dict("records")]
        rows = [(setting, row) for setting, own in self.roles.items() for row in own]
        columns = {column for _, _, column in [*places, *self.by_seed] if "[" not in column}
        for at in sorted({(*row, column) for row in rows for column in columns} - {*places}):
            self.judged.differs.append(f"{self.name}: {' / '.join(filter(None, at))} has no line")
        for line, at in zip(self.cells.to_dict("records"), places, strict=True):
            where = f"{self.name}: {' / '.join(filter(None, at))}:"
            if at[2] not in unseen:
                self._means(where, line, at)
            if at in self.queries:
                self._queries(where, line, at)
            if at[2] in self.primary:
                self._tests(where, line, at)

    def _was_not_kept(self, column: str) -> bool:
        """Whether a column has no means by seed, as all columns of unseen queries once had none, or all of a record."""
        return (
            self.is_old
            and not any(at[2] == column for at in self.by_seed)
            and bool(self.cells[self.cells["column"] == column]["reproduced"].any())
        )

    def _means(self, where: str, line: dict[str, str], at: tuple[str, str, str]) -> None:
        """The numbers that follow from the means by seed."""
        own = self.by_seed.get(at, {})
        values = list(own.values())
        self.judged.number(f"{where} reproduced", line["reproduced"], float(np.mean(values)) if own else None)
        spread = float(np.std(values, ddof=1)) if len(own) > 1 else None
        self.judged.number(f"{where} sd", line["sd"], spread, 1e-6)
        seeds = float(len(own)) if own and [*own] != [""] else None
        self.judged.number(f"{where} seeds", line["seeds"], seeds)
        for other in self.comparators:
            if line[f"delta_{other}"]:
                theirs = self.by_seed.get((at[0], other, at[2]), {})
                apart = [own[a] - theirs[b] for a, b in paired(own, theirs)]
                found = float(np.mean(apart)) if apart else None
                self.judged.number(f"{where} delta_{other}", line[f"delta_{other}"], found, 1e-6)

    def _queries(self, where: str, line: dict[str, str], at: tuple[str, str, str]) -> None:
        """The means by seed, how many queries there are, and the interval of their mean."""
        own = self.queries[at]
        for seed in sorted({*own, *self.by_seed.get(at, {})}):
            mean = float(own[seed].mean()) if seed in own else None
            recorded = self.by_seed.get(at, {}).get(seed)
            self.judged.number(f"{where} per_seed {seed}", "" if recorded is None else str(recorded), mean)
        counts = {len(each) for each in own.values()}
        self.judged.number(f"{where} queries_judged", line["queries_judged"], float(counts.pop()))
        if counts:
            self.judged.differs.append(f"{where} its seeds have values of different numbers of queries")
        values = pd.concat(list(own.values()), axis=1).dropna()
        clusters = values.index.get_level_values("cluster").to_numpy()
        tested = clustered([(values.to_numpy(), clusters)]) if testable(clusters) else None
        for end in ("mean_low", "mean_high"):
            self.judged.end(f"{where} {end}", line[end], tested)
        self._sides(where, line, "mean", tested)

    def _sides(self, where: str, line: dict[str, str], name: str, tested: Tested | None) -> None:
        """An interval has its mean in its middle."""
        low, high = line[f"{name}_low"], line[f"{name}_high"]
        if tested and low and high and not math.isclose(float(low) + float(high), 2 * tested.mean, abs_tol=1e-9):
            self.judged.differs.append(f"{where} the middle of {low} and {high} is not {tested.mean:.12g}")

    def _tests(self, where: str, line: dict[str, str], at: tuple[str, str, str]) -> None:
        """What follows from the values of queries of this row and of its comparators."""
        against, marks = self.against.get(at, {}), ""
        for other, mark in zip(self.comparators, SYMBOLS, strict=False):
            one = against.get(other)
            self.judged.number(f"{where} delta_{other}", line[f"delta_{other}"], one.tested.mean if one else None)
            self.judged.p(f"{where} p_{other}", line[f"p_{other}"], one.tested if one else None)
            corrected = one if one and one.p_holm is not None else None
            of_family = (corrected.tested, corrected.p_holm) if corrected else (None, None)
            self.judged.p(f"{where} p_holm_{other}", line[f"p_holm_{other}"], *of_family)
            if self.margin:
                equivalent = (one.tested, one.equivalent) if one and one.equivalent is not None else (None, None)
                self.judged.p(f"{where} p_equivalent_{other}", line[f"p_equivalent_{other}"], *equivalent)
            t_test = student(one.values[:, 0]) if one else None
            self.judged.number(f"{where} p_ttest_one_seed_{other}", line[f"p_ttest_one_seed_{other}"], t_test, 1e-5)
            flips = one.flips if one else None
            self.judged.number(f"{where} p_randomisation_{other}", line[f"p_randomisation_{other}"], flips)
            marks += ("−" if one.sign < 0 else "") + mark if one and one.sign else ""
        self.judged.word(f"{where} markers", line["markers"], marks)
        role_of = self.roles[at[0]]
        control = against.get(next((row for row, role in role_of.items() if role == "control"), ""))
        for end in ("interval_low", "interval_high"):
            self.judged.end(f"{where} {end}", line[end], control.tested if control else None)
        self._sides(where, line, "interval", control.tested if control else None)
        self.judged.word(f"{where} verdict", line["verdict"], self._verdict(line, at, against))

    def _verdict(self, line: dict[str, str], at: tuple[str, str, str], against: dict[str, Against]) -> str:
        """The verdict on an objective; a paper's table without a control is about none alone."""
        rows = self.roles[at[0]]
        if rows[at[1]] != "objective":
            return ""
        if at not in self.by_seed:
            return UNTESTED
        controls = line["paper"] == "encore" or "control" in {
            role for own in self.roles.values() for role in own.values()
        }
        needed = [[row for row, role in rows.items() if role == part] for part in ("none", "control")[: 1 + controls]]
        if not all(names and names[0] in against for names in needed):
            return ""
        none, *control = (against[names[0]] for names in needed)
        if min(one.values.shape[1] for one in (none, *control)) < ENOUGH_SEEDS:
            return TOO_FEW
        proxy = line["stand_in"] == "yes"
        if none.joint is not None and none.joint <= LEVEL:
            return "holds here" if proxy else "reproduced"
        if none.sign > 0 and any(one.sign < 0 for one in control):
            return "not beyond its compute"
        if any(one.sign < 0 for one in (none, *control)):
            return "fails here" if proxy else "contradicted"
        if none.jointly_equivalent is not None and none.jointly_equivalent <= LEVEL:
            return f"equivalent within {self.margin:g}"
        return OPEN


def student(values: np.ndarray) -> float:
    """p of the paired t-test over queries."""
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    if error <= 1e-12 * abs(mean := float(np.mean(values))):
        return 1.0 if mean == 0 else 0.0
    return float(2 * special.stdtr(len(values) - 1, -abs(mean) / error))


@dataclass
class Compared:
    """A comparison of a claim: the difference less its bound, which is above 0 where it holds."""

    name: str
    tested: Tested
    seeds: int | None
    or_equal: bool
    equivalence: bool

    @property
    def holds(self) -> bool:
        """Whether it holds of the estimate."""
        return self.tested.mean > 0 or (self.or_equal and abs(self.tested.mean) < DUST)

    @property
    def above(self) -> float:
        """One-sided p of its not holding, for 2.5 %; that of an equivalence, for 5 %, is halved."""
        if self.tested.error == 0:
            return 0.0 if self.holds else 1.0
        half = self.tested.p / 2
        return (half if self.tested.mean > 0 else 1 - half) / (2 if self.equivalence else 1)

    @property
    def below(self) -> float:
        """One-sided p of its holding."""
        if self.tested.error == 0:
            return 0.0 if self.tested.mean < 0 and not self.holds else 1.0
        half = self.tested.p / 2
        return half if self.tested.mean < 0 else 1 - half


class ClaimAgain:
    """A claim that is judged again: its comparisons as they are recorded, on the recorded values.

    ``compared`` has the tests of ``premise``, ``tests`` and ``control``, each with its comparisons.
    """

    def __init__(self, record: Record, said: dict[str, Any]) -> None:
        self.record = record
        self.compared: dict[str, list[tuple[dict[str, Any], list[Compared]]]] = {
            part: [(test, [self._one(each) for each in test["contrasts"]]) for test in tests]
            for part, tests in said.items()
        }

    def verdict(self, part: str, proxy: bool) -> str:
        """The verdict on ``tests`` or on ``control``."""
        premise = self.compared["premise"] if part == "tests" else []
        tested = self.compared[part]
        seeds = [one.seeds for _, own in (*premise, *tested) for one in own if one.seeds is not None]
        if min(seeds, default=ENOUGH_SEEDS) < ENOUGH_SEEDS:
            return TOO_FEW
        if any(evidence(test, own) != "shown" for test, own in premise):
            return PREMISE
        found = [evidence(test, own) for test, own in tested]
        if "refuted" in found:
            return "fails here" if proxy else "contradicted"
        if all(one == "shown" for one in found):
            return "holds here" if proxy else "reproduced"
        return next((word for word in ("opposite direction", OPEN) if word in found), "same direction")

    def _one(self, said: dict[str, Any]) -> Compared:
        """A comparison: over queries where all of its cells have values of queries, otherwise over seeds."""
        parts = [(term["weight"] * weight, tuple(key)) for term in said["terms"] for weight, key in term["parts"]]
        of_seeds = [self.record.by_seed[key] for _, key in parts]
        seeded = [[*each] for each in of_seeds if [*each] != [""]]
        seeds = [seed for seed in (seeded[0] if seeded else []) if all(seed in each for each in seeded)]
        totals = sum(
            weight * np.array([each.get("", each.get(seed, math.nan)) for seed in seeds or [""]])
            for (weight, _), each in zip(parts, of_seeds, strict=True)
        )
        spread = float(np.var(totals, ddof=1)) if len(totals) > 1 else math.inf
        has_queries = all(key in self.record.queries for _, key in parts)
        mean, bound = float(np.mean(totals)), sum(each["weight"] * each["value"] for each in said["printed"])
        if said["printed"]:
            found = self._against_print(said, parts, len(seeds), spread)
        elif has_queries:
            found = clustered(self._by_queries(parts, seeds))
            mean = found.mean
        else:
            found = Tested(mean, (Part(spread / len(totals), max(len(totals) - 1, 1)),))
        shifted = Tested(mean + bound - said["least"], found.parts, found.least_p)
        return Compared(said["name"], shifted, len(seeds) or None, said["or_equal"], said["equivalence"])

    def _by_queries(
        self, parts: Sequence[tuple[float, Any]], seeds: Sequence[str]
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weighted sums over the cells of the same queries, and the clusters of these queries."""
        sums: dict[tuple[str, ...], pd.DataFrame] = {}
        for weight, key in parts:
            own = self.record.queries[key]
            values = weight * pd.concat([own[""] if "" in own else own[seed] for seed in seeds or [""]], axis=1)
            values.columns = pd.RangeIndex(values.shape[1])
            same = tuple(values.index.get_level_values("query"))
            sums[same] = sums[same] + values if same in sums else values
        return [(each.to_numpy(), each.index.get_level_values("cluster").to_numpy()) for each in sums.values()]

    def _against_print(
        self, said: dict[str, Any], parts: Sequence[tuple[float, Any]], seeds: int, spread: float
    ) -> Tested:
        """The variances of a difference to printed numbers, each of one training."""
        ratio = sum(each["weight"] ** 2 for each in said["printed"]) / sum(
            each["weight"] ** 2 for each in said["terms"]
        )
        found = [Part((1 / seeds + ratio) * spread, max(seeds - 1, 1))] if seeds else []
        share = max(each["share"] for each in said["printed"])
        if share and all(key in self.record.queries for _, key in parts):
            own = []
            for weight, key in parts:
                values = pd.concat(list(self.record.queries[key].values()), axis=1).mean(axis=1)
                clusters = values.index.get_level_values("cluster").to_numpy()
                part = clustered([(values.to_numpy()[:, None], clusters)]).parts[0]
                own.append(Part(weight**2 * part.variance, part.freedom))
            variance = share * (1 + ratio) * sum(part.variance for part in own)
            found.append(Part(variance, min(part.freedom for part in own)))
        return Tested(0.0, tuple(found) or (Part(0.0, 1),))


def evidence(test: dict[str, Any], own: Sequence[Compared]) -> str:
    """What the comparisons say of a test, by the rules of ``docs/claims.md``."""
    level, tests = LEVEL / 2, test["of"]
    above, beneath = ([getattr(one, side) for one in own] for side in ("above", "below"))
    if test["kind"] == "no-winner":
        if min(max(above), max(beneath)) <= level / (2 * tests):
            return "refuted"
        if len(own) * max(min(above), min(beneath)) <= level:
            return "shown"
        return "same direction" if len({one.tested.mean > 0 for one in own}) == 2 else OPEN
    if test["kind"] == "alike":
        return _alike(test, own)
    needed = test["needed"]
    if (len(own) - needed + 1) * sorted(above)[needed - 1] <= level:
        return "shown"
    if needed * sorted(beneath)[len(own) - needed] <= level / tests:
        return "refuted"
    if sum(one.holds for one in own) >= needed:
        return "same direction"
    certain = all(one.seeds is None and math.isinf(one.tested.error) for one in own)
    return "opposite direction" if certain else OPEN


def _alike(test: dict[str, Any], own: Sequence[Compared]) -> str:
    """Whether two settings order systems alike under every column, by Kendall's tau."""
    size = len(own) // (2 * test["columns"])
    halves = [own[start : start + size] for start in range(0, len(own), size)]
    found = []
    for first, second in zip(halves[::2], halves[1::2], strict=True):
        pairs = list(zip(first, second, strict=True))
        most = int(len(pairs) * (1 + test["tau"]) / 2) + 1
        rest = len(pairs) - most + 1
        agree = sorted(min(max(x.above, y.above), max(x.below, y.below)) for x, y in pairs)[most - 1]
        oppose = sorted(min(max(x.above, y.below), max(x.below, y.above)) for x, y in pairs)[rest - 1]
        signs = sum(np.sign(x.tested.mean) * np.sign(y.tested.mean) for x, y in pairs)
        found.append((rest * agree, most * oppose, signs > test["tau"] * len(pairs)))
    if all(agree <= LEVEL / 2 for agree, _, _ in found):
        return "shown"
    if any(oppose <= LEVEL / 2 / (test["of"] * len(found)) for _, oppose, _ in found):
        return "refuted"
    return "same direction" if all(alike for _, _, alike in found) else OPEN


def judge_claim(record: Record, said: dict[str, Any], line: dict[str, str], judged: Judged) -> None:
    """Compare a line of ``claims.csv``."""
    name, proxy = line["id"], line["proxy_data"] == "yes"
    if not said.get("tests"):
        judged.word(f"{name}: verdict", line["verdict"], UNTESTED)
        return
    again = ClaimAgain(record, said)
    tested, control = again.compared["tests"], again.compared["control"]
    every = [one for _, compared in tested for one in compared]
    judged.word(f"{name}: verdict", line["verdict"], again.verdict("tests", proxy))
    judged.number(f"{name}: held", line["held"], float(sum(one.holds for one in every)))
    judged.number(f"{name}: needed", line["needed"], float(sum(test["needed"] for test, _ in tested)))
    judged.number(f"{name}: inequalities", line["inequalities"], float(len(every)))
    seeds = [float(one.seeds) for one in every if one.seeds is not None]
    judged.number(f"{name}: seeds", line["seeds"], min(seeds, default=None))
    weakest = weakest_of(every, line["weakest"])
    judged.word(f"{name}: weakest", line["weakest"], weakest.name)
    judged.number(f"{name}: estimate", line["estimate"], weakest.tested.mean, 1e-6)
    judged.p(f"{name}: p", line["p"], weakest.tested)
    for end in ("interval_low", "interval_high"):
        judged.end(f"{name}: {end}", line[end], weakest.tested)
    over = weakest_of([one for _, compared in control for one in compared]) if control else None
    judged.number(f"{name}: control_estimate", line["control_estimate"], over.tested.mean if over else None, 1e-6)
    judged.p(f"{name}: control_p", line["control_p"], over.tested if over else None)
    untested = "" if line["survives_control"] == "" else UNTESTED
    judged.word(
        f"{name}: survives_control",
        line["survives_control"],
        again.verdict("control", proxy) if control else untested,
    )


def weakest_of(every: Sequence[Compared], named: str = "") -> Compared:
    """The comparison with the largest one-sided p, then the smallest estimate; of equal ones that of a name."""
    last = max(every, key=lambda one: (one.above, -one.tested.mean))
    equal = [one for one in every if math.isclose(one.above, last.above, rel_tol=1e-9) and one.name == named]
    return next((one for one in equal if math.isclose(one.tested.mean, last.tested.mean, rel_tol=1e-9)), last)


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


def judge(folder: Path) -> Judged:
    """Judge a record again."""
    judged = Judged(folder.name, [f"{name} is not the file that run.json names" for name in altered(folder)])
    record = Record(folder)

    def each(what: str, compare: Callable[[], None]) -> None:
        """A file that is damaged or lacks a line is a difference, and no end."""
        try:
            compare()
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, OSError) as error:
            judged.differs.append(f"{what} cannot be judged: {type(error).__name__}: {error}")

    for name in record.tables:
        each(f"tables/{name}", lambda name=name: TableAgain(record, name, judged).judge())  # type: ignore[misc]
    claims = text_of(folder / "claims.csv").to_dict("records") if (folder / "claims.csv").exists() else []
    if claims and record.is_old:
        judged.cannot.append("claims.csv")
        return judged
    for line in claims:
        each(line["id"], lambda line=line: judge_claim(record, record.claims.get(line["id"], {}), line, judged))  # type: ignore[misc]
    return judged


def main() -> int:
    """Judge the records that are named, all without names, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="*", help="names of folders in docs/recorded, or paths of records")
    given = [RECORDED / name if (RECORDED / name).is_dir() else Path(name) for name in parser.parse_args().records]
    folders = given or [path.parent for path in sorted(RECORDED.glob("*/run.json"))]
    if missing := [str(folder) for folder in folders if not (folder / "run.json").is_file()]:
        sys.exit(f"error: {', '.join(missing)}: no record, since it has no run.json; name one of docs/recorded")
    bad = [] if given else unbound()
    for name in bad:
        print(f"bad: docs/recorded/{name} is not the file that {SUMS} names")
    count = len(bad)
    for folder in folders:
        judged = judge(folder)
        print("".join(f"bad: {judged.name}: {each}\n" for each in judged.differs), end="")
        if judged.cannot:
            print(f"NOT judged again: {judged.name}: {'; '.join(judged.cannot)} {BEFORE}")
        said = f"{judged.numbers:,} numbers and {judged.words} words were judged again"
        print(f"{judged.name}: {said}, {len(judged.differs)} differ", flush=True)
        count += len(judged.differs)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
