"""Drawings say what was measured, are the same bytes twice, and name what is missing."""

import csv
from itertools import product

import numpy as np
import pytest

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.products.figures import curve, heat, style
from encore.products.figures import kinds as drawings
from encore.products.figures.curve import round_places
from encore.products.figures.curves import CurvesSlice
from encore.products.report import figures
from encore.storage.files import write_json
from encore.storage.manifest import MANIFEST
from tests.support import small_claims

COMMON = {"title": "A figure", "dataset": "made-up", "notes": ["A note."], "proxy_data": True}
ENDINGS = ("png", "svg", "csv")
# By the line's role: the value at 100 and at 1,000 queries. ICT is ahead of `none` by 0.2, then behind by 0.1.
VALUES = {"none": (0.1, 0.5), "control": (0.4, 0.45), "objective": (0.3, 0.4)}


def drawn(folder, content):
    """Draw a slice twice; the lines of its CSV."""
    kind = drawings.KINDS[content["kind"]]
    figure = kind.slice.model_validate(content)
    for name in ("one", "two"):
        kind.write(folder / name, figure)
    name = content["name"]
    for ending in ENDINGS:
        first, second = ((folder / each / f"{name}.{ending}").read_bytes() for each in ("one", "two"))
        assert first == second
        assert first
    with (folder / f"one/{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def inspections(folder, **found):
    """Rows of a figure with what an inspection found for each."""
    rows = []
    for label, told in found.items():
        write_json(folder / label / "inspection.json", told)
        rows.append(
            {"label": label, "system": f"tiny+{label}", "inspections": [{"seed": 0, "folder": str(folder / label)}]}
        )
    return rows


def points(folder, role, seeds):
    """A line's points at two sizes, under some seeds."""
    write_json(folder / "collection/statistics.json", {"splits": {"train": {"queries": 1000}}})
    found = []
    for seed, (size, value) in product(seeds, enumerate(VALUES[role])):
        own = folder / f"{role}-{seed}-{size}"
        values = np.full(2, value + 0.01 * seed)
        scored = small_claims.scored(["a", "b"], values)
        scores.write_scores(own, {("test", "RR@10"): scored})
        write_json(own / MANIFEST, {"spec": {}, "results": {"flops": 1e9 * 10**size}, "inputs": {}, "outputs": {}})
        about = {"measured": 0, "seed": seed, "sample": 0, "size": size, "scores": str(own), "models": [str(own)]}
        about |= {"queries": (100, None)[size], "train_split": "train", "collection": str(folder / "collection")}
        found.append(about)
    return found


def curves(folder, seeds=(0, 1, 2, 3, 4)):
    panel = {"label": "RR@10", "split": "test", "measure": "RR@10", "measured": 0}
    rows = [
        {"id": role, "label": role.title(), "system": "tiny", "role": role, "points": points(folder, role, seeds)}
        for role in VALUES
    ]
    level = rows[0]["points"][0] | {"seed": None, "models": [], "collection": None}
    rows.append({"id": "bm25", "label": "BM25", "system": "bm25", "points": [level]})
    about = {"panels": [panel | {"over": over} for over in ("queries", "operations")], "crossover": ["none", "control"]}
    return {"name": "label_efficiency", "kind": "labels", "rows": rows, **about, **COMMON}


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (1.7e10, 4.6e10, [2e10, 3e10, 4e10]),
        (0.9e9, 1.2e10, [1e9, 1e10]),
        (1e3, 3e9, [1e3, 1e5, 1e7, 1e9]),
        (2.1e10, 2.4e10, [2.1e10, 2.4e10]),
    ],
)
def test_places_on_a_logarithmic_axis_are_round_few_and_different(low, high, found):
    assert round_places(low, high) == pytest.approx(found)


@pytest.mark.slow
def test_a_level_that_a_panel_lacks_is_drawn_and_named_where_it_is(tmp_path):
    about = curves(tmp_path, seeds=(0, 1))
    about["panels"].insert(0, about["panels"][0] | {"measured": 1, "label": "without BM25"})
    for row in about["rows"][:-1]:
        row["points"] += [point | {"measured": 1} for point in row["points"]]
    lines = drawn(tmp_path, about)
    assert {line["panel"] for line in lines if line["label"] == "BM25"} == {"RR@10"}
    assert {line["panel"] for line in lines if line["label"] == "None"} == {"RR@10", "without BM25"}
    assert "BM25" in (tmp_path / "one/label_efficiency.svg").read_text()


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    """The lines of the figure of training queries, and its caption."""
    captions, page, folder = [], style.page, tmp_path_factory.mktemp("labels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "page", lambda *given, **fields: captions.append(given[3]) or page(*given, **fields))
        return drawn(folder, curves(folder)), captions[0]


def test_curves_lie_where_queries_and_operations_say_and_end_where_they_meet(labels):
    lines, _ = labels
    places = {(line["over"], line["x"]) for line in lines if line["what"] == "value" and line["label"] != "BM25"}
    expected = {("queries", "100.0"), ("queries", "1000.0")}
    assert places == expected | {("operations", "1000000000.0"), ("operations", "10000000000.0")}
    ends = {(line["over"], line["against"]): line for line in lines if line["what"] == "crossover"}
    # Ahead by 0.2, then behind by 0.1: two thirds of the way over the logarithm.
    assert float(ends["queries", "None"]["x"]) == pytest.approx(10 ** (2 + 2 / 3), rel=1e-9)
    assert float(ends["operations", "None"]["x"]) == pytest.approx(10 ** (9 + 2 / 3), rel=1e-9)
    assert ends["queries", "None"]["low"] == ends["queries", "None"]["high"] != ""  # seeds differ alike in both
    assert ends["queries", "Control"]["x"] == "-inf"


def test_an_end_lies_below_the_point_where_the_curves_meet(tmp_path):
    _, page = curve.draw(CurvesSlice.model_validate(curves(tmp_path)))
    page.canvas.draw()
    above, below = page.axes[0], page.axes[2]
    ahead_until = [line.get_xdata()[0] for line in below.lines if line.get_marker() == "o"]
    assert ahead_until == [pytest.approx(10 ** (2 + 2 / 3), rel=1e-9)]
    across = [
        axis.transAxes.inverted().transform(axis.transData.transform((ahead_until[0], 0)))[0] for axis in (above, below)
    ]
    assert across[0] == pytest.approx(across[1])
    assert below.get_xlim() == above.get_xlim()


def test_where_an_advantage_ends_is_told_in_the_caption_and_on_the_report_page(labels):
    lines, caption = labels
    told = "By training queries, the lead over None ends at 464 (Objective)."
    assert told in caption
    assert "By operations of fine-tuning, the lead over Control is nowhere for Objective." in caption
    assert "Bars and brackets: 95 %" in caption
    shown = figures.ShownFigure("label_efficiency", [], lines).sentences
    assert told in shown
    assert sum("the lead over" in sentence for sentence in shown) == 4


@pytest.mark.slow
def test_few_seeds_have_no_interval(tmp_path):
    lines = drawn(tmp_path, curves(tmp_path, seeds=(0,)))
    assert {line["low"] for line in lines if line["what"] == "crossover"} == {""}
    assert "An interval needs 5 seeds" not in lines  # it is in the caption, as paths


def test_a_growing_collection_lies_over_what_was_searched(tmp_path):
    content = curves(tmp_path, seeds=(0,))
    for passages, point in zip((10, 50), content["rows"][0]["points"], strict=True):
        record = {"spec": {}, "results": {"passages": passages}, "inputs": {}, "outputs": {}}
        write_json(tmp_path / f"run{passages}" / MANIFEST, record)
        point |= {"run": str(tmp_path / f"run{passages}"), "models": [], "collection": None}
    panel = content["panels"][0] | {"over": "passages"}
    content |= {"kind": "growth", "name": "figure2", "rows": content["rows"][:1], "panels": [panel], "crossover": []}
    lines = drawn(tmp_path, content)
    assert [(line["x"], line["value"]) for line in lines] == [("10.0", "0.1"), ("50.0", "0.5")]


def test_coverage(tmp_path):
    values = [{"k": k, "of_text": k / 100, "of_top": 0.5, "error": 0.01} for k in (10, 20)]
    rows = inspections(tmp_path, BERT={"texts": 5, "pieces": 7.5, "head": "embeddings", "values": values})
    lines = drawn(tmp_path, {"name": "figure2", "kind": "coverage", "ks": [10, 20], "rows": rows, **COMMON})
    assert [(line["k"], line["of_text"], line["head"]) for line in lines] == [
        ("10", "0.1", "embeddings"),
        ("20", "0.2", "embeddings"),
    ]


def test_words(tmp_path):
    pieces = [
        {"piece": "list", "hit": True, "logit": 2.5},
        {"piece": "$$_{long^piece}_of_text", "hit": False, "logit": 1.0},
    ]
    rows = inspections(tmp_path, BoW={"text": "a list of $ things", "head": "head", "pieces": pieces})
    lines = drawn(tmp_path, {"name": "figure3", "kind": "words", "top": 2, "rows": rows, **COMMON})
    assert [(line["place"], line["piece"], line["hit"]) for line in lines] == [
        ("1", "list", "1"),
        ("2", "$$_{long^piece}_of_text", "0"),
    ]


def test_heat_is_relative_to_the_highest_word(tmp_path):
    words = [{"word": word, "probability": p} for word, p in (("the", 0.01), ("sorted", 0.2), ("list", 0.04))]
    lines = drawn(
        tmp_path, {"name": "table4", "kind": "heat", "rows": inspections(tmp_path, CPDAE={"words": words}), **COMMON}
    )
    assert [float(line["relative"]) for line in lines] == pytest.approx([0.05, 1.0, 0.2])
    assert [line["bin"] for line in lines] == ["0", "5", "2"]


def test_bins_are_the_paper_s():
    assert [heat.binned(value) for value in (0.0, 0.0999, 0.1, 0.3, 0.49, 0.5, 0.51, 1.0)] == [0, 0, 1, 3, 4, 5, 5, 5]


def test_a_map(tmp_path):
    points = [{"name": "q", "kind": "query", "rank": None, "x": 0.0, "y": 0.0}]
    points += [{"name": "d1", "kind": "candidate", "rank": 1, "x": 1.0, "y": 0.5}]
    points += [{"name": "d2", "kind": "relevant", "rank": 2, "x": 2.0, "y": 0.5}]
    rows = inspections(tmp_path, COSTA={"query": "q", "text": "what is a list", "points": points})
    content = {"name": "figure3", "kind": "map", "split": "test", "perplexity": 30, "rows": rows, **COMMON}
    assert [line["kind"] for line in drawn(tmp_path, content)] == ["query", "candidate", "relevant"]


@pytest.mark.parametrize("kind", drawings.KINDS)
def test_nothing_to_draw_is_said(tmp_path, kind):
    content = {"name": "x", "kind": kind, "rows": [], "ks": [1], "panels": [], "top": 1, "split": "t", "perplexity": 1}
    known = drawings.KINDS[kind]
    with pytest.raises(EncoreError, match="none of its systems can be had"):
        known.write(tmp_path, known.slice.model_validate(content | COMMON))


def test_of_an_inspection_the_one_file_that_is_read_is_verified(tmp_path):
    content = {"name": "table4", "kind": "heat", "rows": inspections(tmp_path, CPDAE={}), **COMMON}
    assert drawings.KINDS["heat"].slice.model_validate(content).reads() == {tmp_path / "CPDAE": ("inspection.json",)}
