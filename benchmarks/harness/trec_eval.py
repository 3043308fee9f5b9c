"""Our measures next to the printed output of NIST's trec_eval on the same run and judgments."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from encore.config.datasets import Measure, parse_measure
from encore.data.rankings import Run
from encore.data.trec_runs import read_trec
from encore.errors import EncoreError
from encore.evaluation.measures import measure_values
from encore.evaluation.ranks import Grades
from encore.storage.text_files import numbered_lines

ALL = "all"  # the query of the rows that are means
PRINTED = 0.5e-4  # they print four decimals
_WHOLE = {"map": "AP", "recip_rank": "RR", "ndcg": "nDCG"}
_CUT = {"P": "P", "recall": "R", "ndcg_cut": "nDCG", "map_cut": "AP", "success": "Success"}
Values = dict[str, dict[str, float]]  # measure, as we write it -> query -> value


@dataclass(frozen=True)
class Case:
    """A run, its judgments and trec_eval's output, made with ``-l rel``, ``-M ranks`` and, where complete, ``-c``."""

    run: str
    judgments: str
    output: str
    rel: int = 1
    ranks: int | None = None
    complete: bool = False


def compare(folder: Path, case: Case) -> dict[str, object]:
    """How far our values are from what is printed, at most.

    Raises:
        EncoreError: the output has none of our measures, or not a number where we expect one.
    """
    run, grades = _run(folder / case.run), judgments(folder / case.judgments)
    printed = _printed(folder / case.output, case)
    if not printed:
        raise EncoreError(f"{folder / case.output} has no measure of ours; name an output of trec_eval")
    found = measure_values([parse_measure(expression) for expression in printed], grades, run)
    compared, furthest = 0, 0.0
    for measure, ours in found.items():
        theirs = printed[str(measure)]
        means = ours if case.complete else {query: ours[query] for query in ours if query in run}
        ours = ours | {ALL: mean(means.values())}
        furthest = max(furthest, *(abs(value - ours[query]) for query, value in theirs.items()))
        compared += len(theirs)
    return {
        "run": case.run,
        "output": case.output,
        "measures": len(found),
        "values": compared,
        "furthest": furthest,
        "agrees": furthest <= PRINTED * (1 + 1e-6),
    }


def judgments(path: Path) -> Grades:
    """Grades from a qrels file of TREC's: query, a column that nobody reads, document, grade."""
    grades: dict[str, dict[str, int]] = {}
    for number, line in numbered_lines(path):
        columns = line.split()
        if not columns or line.startswith("#"):
            continue
        if len(columns) != 4:
            raise EncoreError(f"{path}, line {number}: {len(columns)} columns instead of four; give TREC's qrels")
        grades.setdefault(columns[0], {})[columns[2]] = int(columns[3])
    return grades


def expression(theirs: str, rel: int = 1, ranks: int | None = None) -> str | None:
    """Our spelling of one of their names; None where we have no such measure.

    nDCG knows no threshold here; and with fewer ranks theirs keeps the whole ideal ranking, which is no nDCG@k.
    """
    name, cutoff = _WHOLE.get(theirs), ranks
    if match := re.fullmatch(r"([A-Za-z_]+)_(\d+)", theirs):
        name, cutoff = _CUT.get(match[1]), int(match[2])
    if name is None or (name == "nDCG" and (rel > 1 or ranks)) or (ranks and cutoff and cutoff > ranks):
        return None
    return str(Measure(name, rel, cutoff))


def _run(path: Path) -> Run:
    """A run, of whose lines trec_eval reads six columns and forgets the rest; our own reader takes no such line."""
    lines = [line.split() for _, line in numbered_lines(path)]
    if all(len(columns) == 6 for columns in lines):
        return read_trec(path)
    with tempfile.NamedTemporaryFile("w", suffix=".trec", encoding="utf-8") as file:
        file.writelines(" ".join(columns[:6]) + "\n" for columns in lines)
        file.flush()
        return read_trec(Path(file.name))


def _printed(path: Path, case: Case) -> Values:
    found: Values = {}
    for _, line in numbered_lines(path):
        name, query, value = line.split()
        if ours := expression(name, case.rel, case.ranks):
            found.setdefault(ours, {})[query] = float(value)
    return found
