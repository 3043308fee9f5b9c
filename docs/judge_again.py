"""Judge recorded runs again from docs/recorded/NAME alone, and name every number and word that comes out otherwise.

    python docs/judge_again.py            # all records
    python docs/judge_again.py real       # one, by its name or its folder

With its parts in docs/judging it shares no code with Encore: it reads CSV files by pandas, integrates by SciPy, and is
written from the formulas of docs/protocol.md. From values of queries it computes means, their intervals, differences, p
values (the cluster-robust test, Holm's correction, equivalence, the paired t-test, the randomisation test), markers and
verdicts on objectives, and each claim's estimate, interval, p and verdict; from means by seed the numbers of the other
columns. Digests of all files are compared first. Not judged again, since a record does not hold what they are made
from: ranges of ties, answered queries, minimum detectable gains, chances of claims, printed numbers and figures.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from judging.claims import judge_claim
from judging.records import RECORDED, SUMS, Judged, Record, altered, text_of, unbound
from judging.tables import TableAgain

BEFORE = "cannot be judged again: made before per-query values were recorded"


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
