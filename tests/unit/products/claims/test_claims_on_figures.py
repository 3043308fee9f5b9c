"""Claims about the points of figures: what is planned of them, and that they are judged as cells of tables are."""

import csv
import json
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from encore.commands.whatif import changed_claims
from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.catalogue import load_catalogue, load_plan
from encore.products.claims import run_claims
from encore.products.claims.entries import Claim, read_claims
from encore.products.claims.plan import all_shapes, cells_of, claims_plan
from encore.products.figures.plan import NOT_DRAWN, figure_cells, figure_shape
from encore.storage.files import write_json
from tests.support import small_claims
from tests.support.shipped import run_file
from tests.support.small_reads import figure_reads

ROOT = Path(__file__).parents[4]
PAPERS = ROOT / "config/papers"
NANO = run_file("nano")
DRAWN = {"tct_colbert/figure2", "bow/figure2", "bow/figure4", "costa/figure4", "label_efficiency"}

pytestmark = pytest.mark.usefixtures("at_the_root")


def make(**scale):
    """Nano's plan with entries of its scale put in, or others over them."""
    content = deepcopy(NANO) | {"tables": {}}
    for key, entries in scale.items():
        content["scale"][key] = content["scale"].get(key, {}) | entries
    return Plan(RunConfig.model_validate(content), load_catalogue())


@pytest.mark.slow
@pytest.mark.parametrize("run", ["config", "paper"])
def test_the_claims_read_their_figures_and_what_is_written_is_read_as_planned(run):
    plan = load_plan(ROOT / f"config/{run}.yaml")
    planned = claims_plan(plan)
    assert set(planned.figures) == DRAWN
    assert not planned.unavailable
    read = set(map(str, planned.reads()))
    assert {folder for _, folders in planned.parts() for folder in folders} == read
    written = run_claims.ClaimsSlice.model_validate(json.loads(json.dumps(planned.dumped())))
    assert written.reads() == planned.reads()
    for name in DRAWN:
        own = {each.folder for parts in figure_cells(plan, name).values() for part in parts for each in part.reads}
        assert own <= read
        assert own <= {artifact.folder for artifact in figure_reads(plan, name)}


def test_a_point_is_its_samples_and_a_level_is_the_same_at_every_place():
    plan = make()
    found = figure_cells(plan, "costa/figure4")
    axes = plan.catalogue.figures["costa/figure4"].axes()
    panel, *_ = axes.panels
    (first, second, third) = found[panel, "costa", "costa-low-2000"]
    assert len({part.reads[0].folder for part in (first, second, third)}) == 3
    assert (first.value, first.split) == ("RR@10", "test")
    levels = [found[panel, "BM25", place] for place in axes.places]
    assert levels == [levels[0]] * len(axes.places)
    assert [read.seed for read in levels[0][0].reads] == [None]
    assert set(figure_cells(plan, "bow/figure2")) == {
        (panel, line, place)
        for panel in ("of_text", "of_top")
        for line in plan.catalogue.figures["bow/figure2"].systems
        for place in ("5", "10", "20")  # as nano scales it
    }


def test_what_a_run_does_not_draw_is_no_mistake_and_has_a_reason():
    plan = make(figures={"costa/figure4": {"sizes": [{"step": "costa-low-500"}], "samples": [0]}})
    places = {column.id: column.hidden for column in figure_shape(plan, "costa/figure4").columns}
    assert places["costa-low-500"] is False
    assert places["costa-low-2000"] is True
    why = {(gap["table"], gap["row"], gap["column"]): gap["why"] for gap in claims_plan(plan).dumped()["missing"]}
    assert why["costa/figure4", "costa", "costa-low-2000"] == NOT_DRAWN
    assert ("costa/figure4", "costa", "costa-low-500") in why  # of TREC DL's panels, which nothing stands for here
    assert why["costa/figure4", "costa", "costa-low-500"] != NOT_DRAWN


def test_a_figure_that_a_run_cannot_have_is_told():
    content = deepcopy(NANO) | {"tables": {}}
    del content["scale"]["datasets"]["msmarco-passage"]
    content["scale"]["absent"] = {"msmarco-passage": "no text is given away"}
    plan = Plan(RunConfig.model_validate(content), load_catalogue())
    assert "no text is given away" in claims_plan(plan).dumped()["unavailable"]["bow/figure2"]


@pytest.mark.slow
def test_a_change_of_a_model_changes_the_claims_that_its_figure_decides():
    changed = make(steps={"costa-low-2000": {"queries": 70, "steps_per_epoch": 5}})
    found = changed_claims(make(), changed)
    assert {"C48", "C70"} <= set(found)
    assert not {"C18", "C37", "C113"} & set(found)


@pytest.mark.parametrize(
    ("test", "says"),
    [
        (
            {"rows": ["costa"], "than": ["BM52"]},
            "no setting of costa/figure4 has the rows costa, BM52; did you mean BM25",
        ),
        ({"rows": ["costa"], "than": ["seed"], "columns": ["costa-low-200"]}, "no column 'costa-low-200'"),
        ({"rows": ["costa"], "than": ["seed"], "settings": ["MRR"]}, "no row 'costa' under 'MRR'"),
        ({"figure": "costa/figure3", "rows": ["COSTA"], "than": ["SEED"]}, "no figure with points"),
    ],
    ids=["line", "place", "panel", "picture"],
)
def test_a_claim_about_no_point_is_refused(catalogue, tmp_path, test, says):
    entry = {"says": "s", "place": "p", "tests": [{"kind": "above", "figure": "costa/figure4", **test}]}
    shutil.copytree(PAPERS, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("claims.yaml"))
    (tmp_path / "costa/claims.yaml").write_text(yaml.safe_dump({"C900": entry}))
    (claim,) = (claim for _, claim in read_claims(tmp_path).values())
    with pytest.raises(EncoreError, match=f"claim C900: .*{says}"):
        cells_of("C900", claim, all_shapes(catalogue))


@pytest.mark.parametrize("about", [{}, {"table": "p/t", "figure": "p/f"}], ids=["neither", "both"])
def test_a_test_is_about_a_table_or_a_figure(about):
    with pytest.raises(ValidationError, match="name a `table` or a `figure`"):
        Claim.model_validate({"says": "s", "place": "p", "tests": [{"kind": "order", "rows": ["a", "b"], **about}]})


def test_the_claims_of_the_figures_name_points_that_there_are(catalogue):
    shapes = all_shapes(catalogue)
    claims = read_claims(PAPERS)
    about = {name for name, (_, claim) in claims.items() if any(getattr(test, "figure", "") for test in claim.tests)}
    assert about == {
        *("C18", "C37", "C48", "C70", "C71", "C112", "C120", "C121", "C123"),
        *("C113", "C114", "C115", "C116", "C117"),
    }
    assert {name for name in about if claims[name][0] == "encore"} == {"C113", "C114", "C115", "C116", "C117"}
    assert all("ours" in claims[name][1].place for name in about if claims[name][0] == "encore")
    assert shapes.keys() == catalogue.tables.keys() | DRAWN | {"corpus_growth"}


def judged(tmp_path, claim, points, *, proxy_data=False):
    """The line of a claim on made-up points of a figure with the lines a, b and c, at x and y."""
    shape = {
        "rows": [{"id": line, "setting": "p"} for line in "abc"],
        "columns": [{"id": place, "source": "measure"} for place in "xy"],
    }
    content = {"name": "claims", "claims": {"C1": {"paper": "q", "claim": claim}}, "shapes": {"q/f": shape}}
    content |= {"tables": {}, "figures": {"q/f": points}, "proxy_data": proxy_data}
    given = run_claims.ClaimsSlice.model_validate(json.loads(json.dumps(content)))
    run_claims.write_run_claims(tmp_path, given, tmp_path)
    with (tmp_path / "claims.csv").open(newline="", encoding="utf-8") as file:
        (line,) = csv.DictReader(file)
    return line


def claim(**test):
    return {"says": "s", "place": "p", "tests": [{"figure": "q/f", **test}]}


ABOVE = {"kind": "above", "rows": ["a"], "than": ["b"]}
GAINS = {"kind": "gains", "row": "a", "than": "b", "columns": ["x"], "other_columns": ["y"]}
TRUTHS = {("a", "x"): 0.6, ("a", "y"): 0.6, ("b", "x"): 0.3, ("b", "y"): 0.5}


@pytest.mark.parametrize(
    ("test", "proxy_data", "verdict"),
    [
        (ABOVE, False, "reproduced"),
        (ABOVE, True, "holds here"),
        ({**ABOVE, "rows": ["b"], "than": ["a"]}, False, "contradicted"),
        (GAINS, False, "reproduced"),
        ({**GAINS, "columns": ["y"], "other_columns": ["x"]}, False, "contradicted"),
        ({**ABOVE, "columns": ["y"], "by": 0.2}, False, "contradicted"),
        ({**ABOVE, "columns": ["y"], "by": 0.2}, True, "not testable here"),
        ({**ABOVE, "than": ["c"]}, False, "not testable here"),
    ],
)
def test_points_are_judged_as_cells_are(tmp_path, test, proxy_data, verdict):
    line = judged(tmp_path, claim(**test), small_claims.measured(tmp_path, TRUTHS), proxy_data=proxy_data)
    assert line["verdict"] == verdict
    if verdict == "reproduced":
        assert line["seeds"] == "5"
        truth = {"above": 0.1, "gains": 0.2}[test["kind"]]  # the weakest comparison
        assert float(line["estimate"]) == pytest.approx(truth, abs=0.02)
        assert float(line["interval_low"]) < truth < float(line["interval_high"])


def test_few_seeds_decide_nothing(tmp_path):
    points = small_claims.measured(tmp_path, TRUTHS, seeds=[0])
    assert judged(tmp_path, claim(**ABOVE), points)["verdict"] == "too few seeds"


def test_samples_of_queries_are_averaged(tmp_path):
    one = small_claims.measured(tmp_path / "one", {("a", "x"): 0.6, ("b", "x"): 0.5}, samples=1)
    other = small_claims.measured(tmp_path / "other", {("a", "x"): 0.8, ("b", "x"): 0.5}, samples=1)
    both = [{**mine, "parts": mine["parts"] + theirs["parts"]} for mine, theirs in zip(one, other, strict=True)]
    line = judged(tmp_path, claim(**ABOVE, columns=["x"]), both)
    assert float(line["estimate"]) == pytest.approx(0.2, abs=0.03)


def test_shares_that_a_probe_found_are_tested_over_seeds(tmp_path):
    points = []
    for line, share in (("a", 0.5), ("b", 0.3)):
        inspections = []
        for seed in range(5):
            folder = tmp_path / f"{line}{seed}"
            folder.mkdir()
            values = [{"k": k, "of_text": share + 0.01 * seed * (line == "a"), "of_top": 0.0} for k in (10, 20)]
            write_json(folder / "inspection.json", {"values": values})
            inspections.append({"seed": seed, "folder": str(folder)})
        points += [
            {"panel": "p", "line": line, "place": place, "parts": [{"value": "of_text", "reads": inspections}]}
            for place in ("10", "20")
        ]
    shape = {"rows": [{"id": line, "setting": "p"} for line in "ab"], "columns": []}
    shape["columns"] = [{"id": place, "source": "measure"} for place in ("10", "20")]
    content = {"name": "claims", "claims": {"C1": {"paper": "q", "claim": claim(**ABOVE)}}, "shapes": {"q/f": shape}}
    content |= {"tables": {}, "figures": {"q/f": points}, "proxy_data": False}
    given = run_claims.ClaimsSlice.model_validate(json.loads(json.dumps(content)))
    assert set(given.reads().values()) == {("inspection.json",)}
    run_claims.write_run_claims(tmp_path, given, tmp_path)
    with (tmp_path / "claims.csv").open(newline="", encoding="utf-8") as file:
        (line,) = csv.DictReader(file)
    assert (line["verdict"], line["inequalities"], line["seeds"]) == ("reproduced", "2", "5")
    assert float(line["estimate"]) == pytest.approx(0.22)
