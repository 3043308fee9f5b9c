"""Record a finished run under docs/recorded/, and render the pages that show recorded numbers or fields of data.

    python docs/results.py                                          # render the pages
    python docs/results.py record ten-seeds                         # make what a record of the pages has, and copy it
    python docs/results.py record NAME --config config/seeds.yaml   # copy what that run made to docs/recorded/NAME
    python docs/results.py bind NAME                                # after a change of it by hand: its digests again
    python docs/judge_again.py                                      # judge all records again, from themselves alone

Pages take numbers from records only: results from these, speed from those of ``make bench`` in benchmarks/results.
"""

import argparse
import json
import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from encore.storage.program import run

import jinja2
import pandas as pd
from judging.records import RECORDED
from recording import PAPERS, bind, make, record, tests_of_claims
from scipy import special

from encore.evaluation.significance import SIGNIFICANT, holm
from encore.plan import tuning
from encore.plan.plan import Plan
from encore.products import known_numbers
from encore.products.catalogue import DEFAULT_RUN, load_plan
from encore.products.claims import run_claims
from encore.products.claims.entries import number_tests, read_claims, read_papers
from encore.products.claims.verdict import AGREE, HOLDS_HERE, REPRODUCED
from encore.products.figures import coverage, curves, forest, heat, learning, words
from encore.products.figures import map as neighbours
from encore.products.tables import grid, table, tidy

DOCS = Path(__file__).resolve().parent
TUNING = DOCS.parent / "config/tuning"
BENCHMARKS = DOCS.parent / "benchmarks/results"
COMPARED = {  # benchmarks that have a table of ways or programs, and what a page calls them
    "evaluation": "Evaluation",
    "runs": "Writing and reading runs",
    "search": "Exact search",
    "tokens": "Tokenising and reading texts",
    "encoding": "Encoding",
    "examples": "Making examples",
    "randomisation": "Randomisation test",
    "planning": "Dry run",
    "demo": "The demo",
}
TRIALS = ("<!-- trials -->", "<!-- end of trials -->")  # the lines of docs/trust.md around its counts
PAGE = re.compile(r"^<!-- page: ([\w-]+) -->\n", re.M)  # where the text of results.md.jinja begins another page
CLAIMS = (  # pages with every claim, their titles and the papers
    ("results-claims-two-tower", "Claims on docstrings: two towers and TCT-ColBERT", ("two_tower", "tct_colbert")),
    ("results-claims-costa", "Claims on docstrings: COSTA and CPDAE", ("costa", "cpdae")),
    ("results-claims-bow", "Claims on docstrings: BoW prediction, few labels", ("bow", "encore")),
)
README_TABLE = ("<!-- labels -->", "<!-- end of labels -->")  # the lines of README.md around its table
PARTS = {  # of a table as data, as docs/table-data.md names them
    "The table": table.Table,
    "In `columns`": grid.Column,
    "In `rows`": grid.Row,
    "In `cells` of a row, by the column's id": table.Cell,
    "In `ours` of a cell, our number": table.Ours,
    "In `printed` of a cell, the paper's number": table.Printed,
    "In `comparisons` of a cell, by the comparator's row id, a test": table.Comparison,
}
WRITTEN = (  # modules that write CSV files, for docs/columns.md
    *(tidy, known_numbers, run_claims, tuning, learning),
    *(forest, curves, coverage, words, neighbours, heat),
)


class Record:
    """A recorded run, as templates see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run: dict[str, Any] = json.loads((folder / "run.json").read_text())

    def table(self, name: str, notes: bool = False) -> str:
        """A table's Markdown: its rows, and with ``notes`` its title and the lines below it too."""
        text = (self.folder / f"tables/{name}.md").read_text().strip()
        text = text if notes else "\n".join(line for line in text.splitlines() if line.startswith("|"))
        return re.sub(r" ? RR@", " MRR@", text)  # as records that are older than the labels have it

    def data(self, name: str) -> pd.DataFrame:
        """A recorded CSV file: ``tables/table1``, ``figures/pretraining``, ``claims``."""
        return pd.read_csv(self.folder / f"{name}.csv")

    def value(self, table: str, row: str, column: str, setting: str | None = None, digits: int = 3) -> str:
        """The number of one cell; ``row`` is a label."""
        cells = self.data(f"tables/{table}")
        chosen = cells[(cells["label"] == row) & (cells["column"] == column)]
        if setting is not None:
            chosen = chosen[chosen["setting"] == setting]
        (number,) = set(chosen["reproduced"])  # a row may be in a table twice
        return f"{number:.{digits}f}"

    def trained(self, table: str, row: str, column: str, setting: str) -> dict[int, str]:
        """The number of one cell under each seed; ``row`` is its id."""
        each = self.data("per_seed").query(
            "table == @table and row == @row and column == @column and setting == @setting"
        )
        return {seed: f"{value:.3f}" for seed, value in zip(each.seed, each.value, strict=True)}

    def expected(self, table: str, row: str, column: str, setting: str) -> str:
        """Where one more training of a row is expected: the prediction interval of its cell, 95 %."""
        cells = self.data(f"tables/{table}").query("label == @row and column == @column and setting == @setting")
        (cell,) = cells.itertuples()
        half = further(cell.seeds) * cell.sd
        return f"[{cell.reproduced - half:.3f}, {cell.reproduced + half:.3f}]"

    def two_words(self, table: str, larger: str) -> list[str]:
        """Rows that two tables share and whose verdicts differ, since the second corrects for more objectives."""
        verdicts = [
            self.data(f"tables/{name}").dropna(subset="verdict").set_index(["setting", "label", "column"]).verdict
            for name in (table, larger)
        ]
        both = pd.concat(verdicts, axis=1, join="inner", keys=("table", "larger"))
        differ = both[both.table != both.larger]
        return list(dict.fromkeys(differ.index.get_level_values("label")))

    def standings(self, table: str, column: str, than: str = "control") -> pd.DataFrame:
        """A table's objectives, by row and the best first, with ``side``: ``above``, ``below`` or ``at`` a comparator.

        What is not significantly above or below, corrected by Holm, is at it; ``holds`` says whether its verdict does.
        """
        cells = self.data(f"tables/{table}").query("column == @column").dropna(subset="verdict")
        side = cells[f"delta_{than}"].gt(0).map({True: "above", False: "below"})
        side = side.where(cells[f"p_holm_{than}"] < SIGNIFICANT).fillna("at")
        cells = cells.assign(side=side, holds=cells.verdict.isin([REPRODUCED, HOLDS_HERE]))
        return cells.sort_values("reproduced", ascending=False).set_index("row")

    def without(self, table: str, column: str, left_out: str) -> pd.DataFrame:
        """What Holm's correction says otherwise of a table where a row is left out: the marks that change.

        By ``label`` and ``comparator``, and ``side``: ``p`` is corrected over the others, ``was`` as the table has it.
        """
        cells, found = self.data(f"tables/{table}").query("column == @column"), []
        for comparator in [name.removeprefix("p_holm_") for name in cells if name.startswith("p_holm_")]:
            family = cells[cells[f"p_holm_{comparator}"].notna() & (cells["row"] != left_out)]
            corrected = family.assign(p=holm(family[f"p_{comparator}"].tolist()), was=family[f"p_holm_{comparator}"])
            changed = (corrected.p < SIGNIFICANT) != (corrected.was < SIGNIFICANT)
            side = corrected[f"delta_{comparator}"].gt(0).map({True: "above", False: "below"})
            found.append(corrected.assign(comparator=comparator, side=side)[changed])
        return pd.concat(found)[["label", "comparator", "side", "p", "was"]]

    def others(self, shown: list[str]) -> list[str]:
        """Tables that the record has besides those that a page shows."""
        tables = self.folder / "tables"
        names = [str(path.relative_to(tables).with_suffix("")) for path in tables.rglob("*.md")]
        return sorted(set(names) - set(shown))


def further(seeds: int) -> float:
    """How many of their standard deviations one more training may be from the mean of others, 95 %: t sqrt(1 + 1/n)."""
    return float(special.stdtrit(seeds - 1, 0.975) * (1 + 1 / seeds) ** 0.5)


def records() -> dict[str, Record]:
    """All records, by name."""
    return {path.parent.name: Record(path.parent) for path in sorted(RECORDED.glob("*/run.json"))}


def claims_of(one: Record) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """The claims of a record, by their numbers.

    Returns:
        Those whose tests are what was judged, as they are worded now; those whose tests were changed since, as they
        were worded then; and the ids of the papers' claims that it has not.
    """
    found, known = one.data("claims"), read_claims(PAPERS)
    found = found.assign(tests=found.id.map(one.run["tests"]))
    current = found.tests == found.id.map(tests_of_claims())
    judged = found[current].assign(claim=found.id.map({name: claim.says for name, (_, claim) in known.items()}))
    all_runs = {paper for paper, fields in read_papers().items() if fields.claims == "all"}
    of_papers = [name for name, (paper, _) in known.items() if paper in all_runs]
    return judged, found[~current], [name for name in of_papers if name not in set(found.id)]


def about_amounts(names: list[str]) -> list[str]:
    """Those of some claims that are about an amount, which proxy data cannot test."""
    tests = {name: number_tests(claim.tests) for name, (_, claim) in read_claims(PAPERS).items()}
    return [name for name in names if any(test.is_amount for test in tests[name])]


def every_claim(judged: pd.DataFrame, changed: pd.DataFrame, papers: Collection[str]) -> pd.DataFrame:
    """Some papers' claims by their numbers, with what was judged on runs.

    A claim whose tests were changed since has ``verdict`` "other tests then", one that no record has "not run".
    """
    says = {name: claim.says for name, (paper, claim) in read_claims(PAPERS).items() if paper in papers}
    lines = pd.DataFrame(says.items(), columns=["id", "claim"])
    found = lines.merge(judged.drop(columns="claim"), how="left", on="id")
    found.loc[found.id.isin(changed.id), "verdict"] = "other tests then"
    return found.fillna({"verdict": "not run", "why": ""})


def compared(one: Record, other: Record, column: str) -> pd.DataFrame:
    """The rows of table 1 with several seeds in two records: both means, their difference, and its standard errors."""
    tables = [record.data("tables/table1") for record in (one, other)]
    several = [table[(table.column == column) & (table.seeds > 1)] for table in tables]
    both = several[0].merge(several[1], on=["setting", "label"], suffixes=("", "_other"))
    error = (both.sd**2 / both.seeds + both.sd_other**2 / both.seeds_other) ** 0.5
    difference = both.reproduced_other - both.reproduced
    return both.assign(difference=difference, standard_errors=difference / error)


def loss_differences(one: Record, other: Record) -> dict[str, float]:
    """By what share the last held-out loss of each pre-training step differs between records, the mean over seeds."""
    losses = [each.data("figures/pretraining").query("term == 'loss'") for each in (one, other)]
    ends = [rows.sort_values("training_step").groupby(["step", "lineage", "seed"]).value.last() for rows in losses]
    return (ends[1] / ends[0] - 1).dropna().groupby("step").mean().to_dict()


def excerpt(labels: Record) -> str:
    """The README's table, as Markdown: R@10 with 1 % and 10 % of the labels, and with 1 % its gain over the control.

    A gain is bold if it is significant after Holm's correction, and a value with 10 % if its gain is.
    """
    cells = labels.data("tables/real/labels").set_index(["row", "column"])
    lines = ["| system | R@10, 1 % | gain [95 %] | R@10, 10 % |", "| --- | ---: | ---: | ---: |"]
    for row in dict.fromkeys(cells.index.get_level_values("row")):
        few, more = cells.loc[(row, "r10-1")], cells.loc[(row, "r10-10")]
        gain = "" if pd.isna(few.p_holm_control) else _gain(few)
        value = f"{more.reproduced:.3f}"
        shown = f"**{value}**" if more.p_holm_control < SIGNIFICANT else value
        lines.append(f"| {few.label} | {few.reproduced:.3f} | {gain} | {shown} |")
    return "\n".join(lines)


def _gain(cell: Any) -> str:
    """A cell's difference to the control, with its interval."""
    difference, low, high = (
        f"{cell[name]:+.3f}".replace("-", "−") for name in ("delta_control", "interval_low", "interval_high")
    )
    return f"{f'**{difference}**' if cell.p_holm_control < SIGNIFICANT else difference} [{low}, {high}]"


def trial(row: str, rate: float, grid: str = "recipes") -> str:
    """What a row of a grid (table 2's is ``recipes``) reached on validation with a learning rate."""
    tried = pd.read_csv(TUNING / f"{grid}.csv")
    (score,) = tried[(tried["row"] == row) & (tried["value"] == rate)]["score"]
    return f"{score:.3f}"


@cache
def default_plan() -> Plan:
    """The embedded default."""
    return load_plan(DEFAULT_RUN)


def steps(name: str) -> int:
    """The steps of a pre-training step on the embedded default."""
    resolve = default_plan().resolve
    step: Any = resolve.step(resolve.lineage(f"bert-base+{name}").steps[-1])
    return int(step.steps_per_epoch)


def trials() -> str:
    """How many trials of each suite of ``tests/trust`` held, and the classes of which not all did, as Markdown."""
    suites = json.loads((RECORDED / "trials.json").read_text())
    lines = ["| suite | classes | tried | held | not all held |", "| --- | ---: | ---: | ---: | --- |"]
    for suite, kinds in suites.items():
        tried, held = (sum(kind[key] for kind in kinds.values()) for key in ("tried", "held"))
        failed = "; ".join(name for name, kind in kinds.items() if kind["held"] < kind["tried"])
        lines.append(f"| {suite} | {len(kinds)} | {tried} | {held} | {failed or 'none'} |")
    return "\n".join(lines)


def benchmarks(folder: Path = BENCHMARKS) -> dict[str, dict[str, Any]]:
    """What each benchmark has recorded, by the name of its file."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    return {name: record for name, record in found.items() if "machine" in record and name != "real-data"}


def in_table(value: Any) -> str:
    """A value in a table: numbers to three digits or whole."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)


def as_table(rows: list[dict[str, Any]], without: Collection[str] = ()) -> str:
    """Rows that have the same keys as Markdown, numbers to the right; ``without`` are keys that are left out."""
    kept = [{key: value for key, value in row.items() if key not in without} for row in rows]
    sides = ["---:" if type(value) in (int, float) else "---" for value in kept[0].values()]
    lines = [[key.replace("_", " ") for key in kept[0]], sides, *(map(in_table, row.values()) for row in kept)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def described(columns: dict[str, str]) -> list[dict[str, str]]:
    """The columns of a CSV file as rows of a table."""
    return [{"column": f"`{name}`", "what it is": what} for name, what in columns.items()]


def settings(fields: dict[str, Any]) -> str:
    """What a record was measured with, in a line."""
    return ", ".join(f"{key.replace('_', ' ')} {in_table(value)}" for key, value in fields.items())


def pages_of(text: str) -> dict[str, str]:
    """The pages of a text by their names; a link to a section leads to the page that has it."""
    _, *parts = PAGE.split(text)
    pages = dict(zip(parts[::2], parts[1::2], strict=True))
    places = {anchor(title): name for name, page in pages.items() for title in re.findall(r"^#+ (.+)$", page, re.M)}

    def led(name: str) -> str:
        return re.sub(
            r"\]\(#([\w-]+)\)",
            lambda link: f"]({'' if places[link[1]] == name else f'{places[link[1]]}.md'}#{link[1]})",
            pages[name],
        )

    return {name: led(name).rstrip() + "\n" for name in pages}


def anchor(title: str) -> str:
    """A heading as links name it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def rendered() -> dict[Path, str]:
    """The text of every page that shows recorded numbers or fields of data."""
    loader = jinja2.FileSystemLoader(DOCS)
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["shown"] = in_table
    environment.globals |= {
        "table": as_table,
        "settings": settings,
        "claims_of": claims_of,
        "about_amounts": about_amounts,
        "every_claim": every_claim,
        "pages_of_claims": CLAIMS,
        "further": further,
    }
    environment.globals |= {
        "agree": AGREE,
        "trial": trial,
        "steps": steps,
        "compared": compared,
        "loss_differences": loss_differences,
    }
    results = pages_of(environment.get_template("results.md.jinja").render(records=records()))
    measured = benchmarks()
    speeds = {
        DOCS / name: environment.get_template(f"{name}.jinja").render(
            records=measured,
            titles=COMPARED,
            gpu=benchmarks(BENCHMARKS / "gpu"),
            of=lambda part: [record for name, record in measured.items() if name.partition("-")[0] == part],
        )
        for name in ("performance.md", "performance-details.md")
    }
    readme = DOCS.parent / "README.md"
    before, _, rest = readme.read_text().partition(README_TABLE[0])
    shown = f"{README_TABLE[0]}\n\n{excerpt(records()['labels'])}\n\n{README_TABLE[1]}"
    trust = DOCS / "trust.md"
    above, _, below = trust.read_text().partition(TRIALS[0])
    counted = f"{above}{TRIALS[0]}\n\n{trials()}\n\n{TRIALS[1]}{below.partition(TRIALS[1])[2]}"
    data = environment.get_template("table-data.md.jinja").render(parts=PARTS)
    columns = environment.get_template("columns.md.jinja").render(
        written={module.__name__.rpartition(".")[2]: described(module.COLUMNS) for module in WRITTEN}
    )
    pages = {DOCS / f"{name}.md": text for name, text in results.items()} | speeds
    pages |= {DOCS / "table-data.md": data, DOCS / "columns.md": columns}
    return {**pages, trust: counted, readme: before + shown + rest.partition(README_TABLE[1])[2]}


def render() -> None:
    """Write every page that shows recorded numbers or fields of data."""
    for path, text in rendered().items():
        path.write_text(text)


def main() -> None:
    """Parse the command line and record or render."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command")
    recording = commands.add_parser("record", help="copy what a run made to docs/recorded/NAME")
    recording.add_argument("name")
    recording.add_argument("--config", type=Path, help="of a finished run; without it, it is made first")
    binding = commands.add_parser("bind", help="write the digests of a changed record, or file, to SHA256SUMS")
    binding.add_argument("name", nargs="?", default="", help="its folder or file in docs/recorded; all without")
    arguments = parser.parse_args()
    if arguments.command == "record":
        run(lambda: print(record(arguments.name, arguments.config or make(arguments.name))))
    elif arguments.command == "bind":
        run(lambda: bind(name=arguments.name))
    else:
        run(render)


if __name__ == "__main__":
    main()
