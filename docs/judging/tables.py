"""A recorded table, judged again."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from judging.records import OPEN, TOO_FEW, UNTESTED, Judged, Record, paired
from judging.statistics import ENOUGH_SEEDS, LEVEL, Tested, clustered, holm, randomised, student, testable

SYMBOLS = "†‡§¶‖"


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
            return UNTESTED if line["verdict"] == UNTESTED and at not in self.by_seed else ""
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
