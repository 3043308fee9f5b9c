"""What the README says of real text and of the league, and what pages say of claims that fail."""

import re
from pathlib import Path

import pandas as pd
import pytest

from encore.products.catalogue import load_plan
from tests.support.results_pages import PROGRAM

ROOT = Path(__file__).parents[3]
RECORDS = PROGRAM.records()
TWO_TOWER, LEAGUE, LABELS, CLS = (RECORDS[name] for name in ("real-two-tower", "league", "labels", "labels-cls"))


def section(page: str, heading: str) -> str:
    return (ROOT / page).read_text().partition(heading)[2].partition("\n## ")[0]


@pytest.fixture(scope="module")
def readme():
    return section("README.md", "## What we found")


@pytest.fixture(scope="module")
def league():
    """The league's cells under MRR@10, by row."""
    return LEAGUE.data("tables/league").query("column == 'rr10'").set_index("row")


def last_step(plan, lineage):
    return plan.resolve.step(plan.resolve.lineage(lineage).steps[-1])


PAGE_OF_CLS = " ".join((ROOT / "docs/results-real-labels-cls.md").read_text().split())
PAGE_OF_LABELS = " ".join((ROOT / "docs/results-real-labels.md").read_text().split())


@pytest.fixture(scope="module")
def labels():
    """The cells of real text under R@10 with 1 % of the labels, by row."""
    return LABELS.data("tables/real/labels").query("column == 'r10-1'").set_index("row")


def test_the_readme_has_the_rows_of_real_text(readme, labels):
    """Each number as the record's CSV has it; bold is what differs significantly from the control."""
    found = readme.partition(PROGRAM.README_TABLE[0])[2].partition(PROGRAM.README_TABLE[1])[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.strip().splitlines()[2:]]
    assert [line[0] for line in lines] == list(labels.label)
    ten = LABELS.data("tables/real/labels").query("column == 'r10-10'").set_index("row")
    for (_, recall, gain, more), (row, cell) in zip(lines, labels.iterrows(), strict=True):
        values = (float(recall), float(more.strip("*")))
        assert values == pytest.approx((cell.reproduced, ten.reproduced[row]), abs=5.1e-4)
        assert more.startswith("**") == (ten.p_holm_control[row] < 0.05), row
        assert gain.startswith("**") == (cell.p_holm_control < 0.05), row
        told = [float(number.replace("−", "-")) for number in re.findall(r"[+−][\d.]+", gain)]
        expected = [cell.delta_control, cell.interval_low, cell.interval_high] if pd.notna(cell.p_holm_control) else []
        assert told == pytest.approx(expected, abs=5.1e-4), row


def test_what_the_readme_and_the_page_say_of_real_text(labels):
    """Which rows gain and which change nothing, by the table's verdicts and by the claims."""
    verdicts = labels.verdict.dropna().groupby(labels.verdict).groups
    assert set(verdicts["holds here"]) == {"ict", "bfs", "ict-bfs-wlp", "bow"}
    assert set(verdicts["equivalent within 0.03"]) == {"wlp"}
    assert labels.verdict["mlm"] == "fails here", "significantly below the control"
    assert f"{-labels.delta_control['mlm']:.3f} below the control" in PAGE_OF_LABELS
    times = labels.reproduced / labels.reproduced["none"]
    assert (times[["bow", "ict"]] > 1.8).all(), "nearly double"
    assert times[["bfs", "ict-bfs-wlp"]].between(1.6, 1.73).all(), "by two thirds"
    assert (labels.reproduced[["bm25", "minilm"]] > 2 * labels.reproduced["bow"]).all(), "far below"
    claims = LABELS.data("claims").set_index("id").verdict
    for name in ("C153", "C161", "C163", "C183", "C184"):  # ICT, MLM, BoW, the control, MLM
        assert claims[name] == "holds here", name
    assert claims["C164"] == "same direction", "BoW prediction above ICT, BFS, WLP and the three tasks"
    assert claims["C154"] == "fails here", "the three tasks above ICT"


def test_the_page_has_the_held_out_losses_of_the_start():
    losses = pd.read_csv(ROOT / "docs/recorded/labels-start.tsv", sep="\t").mlm
    assert ", ".join(f"{loss:.2f}" for loss in losses) in (ROOT / "docs/results-real-labels.md").read_text()


def test_the_page_says_what_another_start_gave(labels):
    """The same four rows gain, in the same order, and no other; the numbers are those of its table."""
    other = pd.read_csv(ROOT / "docs/recorded/labels-other-start.csv").set_index("row")
    gains = [set(each.index[each.verdict == "holds here"]) for each in (labels, other)]
    assert gains[0] == gains[1] == {"bow", "ict", "bfs", "ict-bfs-wlp"}
    orders = [each.reproduced[sorted(gains[0])].sort_values().index.to_list() for each in (labels, other)]
    assert orders[0] == orders[1]
    names = {"none": "none", "bow": "BoW prediction", "ict": "ICT", "bfs": "BFS", "ict-bfs-wlp": "the three tasks"}
    names |= {"mlm": "further MLM", "wlp": "WLP"}
    assert ", ".join(f"{name} {other.reproduced[row]:.3f}" for row, name in names.items()) in PAGE_OF_LABELS


def test_what_the_page_says_of_vectors_of_cls(labels, readme):
    """All rows are below those of the mean, which are the same numbers in both records; what gains, and what not."""
    ours, mean = (record.data("per_seed") for record in (CLS, LABELS))
    both = ours.merge(mean, on=["table", "row", "column", "seed"])
    assert (len(both), (both.value_x == both.value_y).all()) == (20, True)
    cells = CLS.data("tables/real/labels-cls").set_index(["column", "row"])
    first = LABELS.data("tables/real/labels").set_index(["column", "row"])
    for column in ("r10-1", "r10-10"):
        cls = cells.loc[column]
        assert (cls.reproduced < first.loc[column].reproduced[cls.index]).all(), "The mean is better in each row"
        assert (cls.delta_none[["mlm", "control"]] < 0).all(), "gain nothing"
        assert cls.p_holm_none["ict"] < 0.05
    ten = cells.loc["r10-10"]
    assert ten.p_holm_none["bow"] > 0.05 > ten.p_holm_none["mlm"]
    gains = [f"{cells.delta_control['r10-1', row]:.2f}" for row in ("ict", "bow")]
    assert "all rows are lower; with 1 % ICT still gains {}, BoW prediction {} (".format(*gains) in " ".join(
        readme.split()
    )
    assert f"{cells.sd.max():.3f}, with the mean up to {first.loc[['r10-1', 'r10-10']].sd.max():.3f}" in PAGE_OF_CLS
    told = CLS.data("claims").set_index("id").verdict
    assert (told["C179"], told["C180"], told["C181"]) == ("holds here", "holds here", "not distinguishable")


def test_what_the_page_says_of_ten_times_the_labels(labels):
    """What still gains, and that no further pre-training has then about what ICT has with a tenth of them."""
    ten = LABELS.data("tables/real/labels").query("column == 'r10-10'").set_index("row")
    assert ten.reproduced["none"] == pytest.approx(labels.reproduced["ict"], abs=0.01)
    claims = LABELS.data("claims").set_index("id").verdict
    gains = {row for row in ten.index if ten.verdict[row] == "holds here"}
    assert gains == {"bow", "ict", "bfs", "ict-bfs-wlp"}
    assert (ten.delta_control[["bow", "ict"]] > 0.07).all()
    assert ten.delta_control[["bfs", "ict-bfs-wlp"]].between(0.02, 0.05).all(), "a little"
    assert [claims[name] for name in ("C172", "C173", "C184", "C183")] == ["holds here"] * 4


def test_the_readme_says_what_the_league_found(readme, league):
    text = " ".join(readme.split())
    tested = league.dropna(subset="verdict")
    told = re.search(r"compares (\d+) ways to pre-train with (\w+) seeds", text).groups()
    assert told == (str(len(tested)), "ten")
    assert set(tested.seeds) == {10}
    assert (league.reproduced.drop("bm25") < league.reproduced["bm25"] / 2).all(), "far below BM25"

    assert "BM25 is far above models trained here**, on docstrings too" in text

    gains = tested[tested.verdict == "holds here"]
    assert f"{len(gains)} of the {len(tested)} gain significantly" in text
    assert (gains.delta_control > 0).all()
    assert (gains[["p_holm_control", "p_holm_none"]] < 0.05).all(axis=None)
    assert league.interval_low["none"] < 0 < league.interval_high["none"], "no pre-training and the control are alike"
    assert "cpdae" not in gains.index
    assert tested.delta_control.idxmax() == "bow"
    assert set(tested[(tested.delta_mlm > 0) & (tested.p_holm_mlm < 0.05)].index) == {"bow"}
    once = LEAGUE.without("league", "rr10", "retromae").query("comparator == 'mlm'")
    assert list(once.label) == ["ICT + MLM (COSTA's)"]
    assert tested.reproduced[["ict", "bfs", "wlp", "ict-bfs-wlp"]].idxmax() == "ict", "the two-tower paper's best here"

    rivals = tested.loc[["simcse", "prop", "bprop", "seed", "condenser", "cocondenser", "simlm", "retromae"]]
    assert rivals.reproduced.idxmax() == "retromae", "the best of other papers"
    above = (rivals.delta_costa > 0) & (rivals.p_holm_costa < 0.05)
    assert set(above[above].index) == {"retromae", "simlm"}
    same = rivals.loc[["seed", "condenser", "cocondenser"]]
    assert (same.p_holm_costa > 0.05).all(), "not distinguishable from COSTA"
    assert "+condenser" not in league.system["cocondenser"], "it starts without Condenser"


def test_the_readme_shows_two_rows_of_the_demo():
    """Their numbers are those that were recorded, and so is that BM25 is above every dense model."""
    text = section("README.md", "## Read the result")
    cells = RECORDS["demo"].data("tables/table1").query("column == 'rr10'")
    bm25 = cells[cells.row == "bm25"].iloc[0]
    dense = cells[cells.row != "bm25"]
    assert f"{len(cells)} rows" in text
    assert f"over {bm25.queries_judged:,} test queries" in text
    assert (dense.reproduced < bm25.reproduced).all(), "All dense models are below BM25"
    shown = dense[dense.setting == "BM25 negatives"].set_index("row").loc[["control", "bow"]]
    for row, cell in shown.iterrows():
        gain = f"{cell.delta_control:+.3f} [{cell.interval_low:+.3f}, {cell.interval_high:+.3f}] | {cell.verdict} "
        line = f"| {cell.label} | {cell.reproduced:.3f} | "
        assert (line + (gain if row == "bow" else "")) in text
    assert shown.verdict["bow"] == "too few seeds"


def test_the_page_says_what_another_pooling_does_to_gains():
    """Over no pre-training of the same pooling."""
    cells = RECORDS["ten-seeds"].data("tables/pooling").query("column == 'rr10' and setting == 'Mean of all states'")
    cells = cells.set_index("row").dropna(subset="p_holm_none")
    assert set(cells.index) == {"mlm", "ict", "bow", "costa"}
    significant = cells[cells.p_holm_none < 0.05]
    assert significant.delta_none.gt(0).to_dict() == {"ict": True, "bow": True, "costa": False}


@pytest.mark.usefixtures("at_the_root")
def test_the_rows_of_the_league_fine_tune_at_one_rate():
    """As the README says of what it shows; the random start, which it does not show, has its own."""
    plan = load_plan(Path(LEAGUE.run["config"]))
    systems = {row.id: row.system for row in plan.catalogue.tables["league"].rows if row.system != "bm25"}
    rates = {row: last_step(plan, system).learning_rate for row, system in systems.items()}
    assert {row for row, rate in rates.items() if rate != rates["control"]} == {"random"}


@pytest.mark.usefixtures("at_the_root")
def test_the_two_tower_papers_rows_fine_tune_at_one_rate():
    plan = load_plan(Path(TWO_TOWER.run["config"]))
    systems = {
        system
        for number in (3, 4, 5, 6)
        for system in TWO_TOWER.data(f"tables/two_tower/table{number}").dropna(subset="system").system
        if "+" in system
    }
    assert len(systems) > 10
    assert {last_step(plan, system).learning_rate for system in systems} == {5e-4}
    assert "All rows fine-tune at one rate, 5e-4" in section("docs/results-two-tower.md", "## Real text, the two-tower")


def test_the_page_explains_claims_that_fail_on_real_text():
    judged = PROGRAM.claims_of(TWO_TOWER)[0].set_index("id").verdict
    failed = set(judged[judged == "fails here"].index)
    bold = re.findall(r"\*\*((?:C\d+[, ]*)+)\*\*", section("docs/results-real-claims.md", "## Real text, claims of"))
    explained = set(re.findall(r"C\d+", " ".join(bold)))
    assert failed
    assert explained >= failed
