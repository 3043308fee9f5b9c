"""The figure of the pre-training steps: which are drawn, what is read and said of them, and what must not happen."""

import csv
import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from encore.config.run import RunConfig
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products import slices
from encore.products.declared import declared, write_plan
from encore.products.figures import learning
from encore.products.figures.base import StepsSlice
from encore.products.figures.plan import curves_plan
from encore.products.tables.entries import Table
from encore.products.tables.sources.pretraining import HELD_OUT
from encore.products.targets import check_target, everything_declared
from encore.storage import manifest
from encore.storage.files import write_json
from tests.support import inside
from tests.support.shipped import run_file

ROOT = Path(__file__).parents[4]
NANO = run_file("nano")
FIGURE = "results/figures/pretraining.png"
MLM = {"mlm": [9.0, 6.0, 4.5]}
CPDAE = {"mlm": [8.0, 7.0, 6.0], "rec": [400.0, 300.0, 100.0], "contrast": [4.8, 4.7, 4.6]}


# Which steps


@pytest.fixture
def make(catalogue, monkeypatch):
    """A plan of nano over the catalogue with other tables: their rows as (label, system)."""
    monkeypatch.chdir(ROOT)

    def plan(tables, seeds=(0,)):
        named = {
            name: {
                "title": name,
                "rows": [{"id": str(n), "label": label, "system": system} for n, (label, system) in enumerate(rows)],
                "columns": [{"id": "a", "label": "a", "dataset": "pydocs-stdlib", "split": "test", "measure": "RR@10"}],
            }
            for name, rows in tables.items()
        }
        kept = deepcopy(catalogue)
        kept.tables.update({name: Table.model_validate(table) for name, table in named.items()})
        content = NANO | {"tables": dict.fromkeys(named, "all"), "seeds": list(seeds)}
        return Plan(RunConfig.model_validate(content), kept)

    return plan


def test_steps_are_those_of_the_rows_in_their_order_each_once(make):
    rows = [("BM25", "bm25"), ("BFS", "bert-base+bfs+marco-bm25"), ("ICT", "bert-base+ict+marco-bm25")]
    plan = make({"a": rows, "b": [("ICT", "bert-base+ict+marco-bm25+marco-hn"), ("MLM", "bert-base+mlm+marco-bm25")]})
    steps = curves_plan(plan).dumped()["rows"]
    assert [step["label"] for step in steps] == ["BFS", "ICT", "MLM"]
    assert (steps[0]["step"], steps[0]["lineage"]) == ("bfs", "tiny+bfs")
    (model,) = steps[1]["seeds"]
    assert model == {"seed": 0, "model": plan.model(plan.resolve.lineage("bert-base+ict"), 0).folder}


def test_every_pre_training_step_of_a_lineage_is_drawn_and_rows_name_the_last(make):
    plan = make({"a": [("COSTA", "bert-base+mlm+costa+marco-bm25")]}, seeds=(3, 5))
    steps = curves_plan(plan).dumped()["rows"]
    assert [(step["label"], step["lineage"]) for step in steps] == [("mlm", "tiny+mlm"), ("COSTA", "tiny+mlm+costa")]
    assert [seed["seed"] for seed in steps[1]["seeds"]] == [3, 5]
    models = [plan.find(seed["model"]) for row in curves_plan(plan).dumped()["rows"] for seed in row["seeds"]]
    assert [model.stage for model in models] == ["pretrain.mlm"] * 2 + ["pretrain.costa"] * 2


def test_rows_that_disagree_leave_the_step_s_name_and_equal_titles_the_lineage(make):
    system = "bert-base+ict+marco-bm25"
    (step,) = curves_plan(make({"a": [("ICT", system), ("Inverse cloze", system)]})).dumped()["rows"]
    assert step["label"] == "ict"
    both = [("MLM", "bert-base+mlm+marco-bm25"), ("MLM", "bert-base-random+mlm+marco-bm25")]
    assert [step["label"] for step in curves_plan(make({"a": both})).dumped()["rows"]] == [
        "tiny+mlm",
        "tiny-random+mlm",
    ]


def test_a_run_without_pre_training_declares_no_figure(make, tmp_path, monkeypatch):
    plan = make({"a": [("BM25", "bm25"), ("None", "bert-base+marco-bm25")]})
    monkeypatch.chdir(tmp_path)  # where nobody has made a product, as `make demo` does in a clone
    assert FIGURE not in everything_declared(plan)
    assert set(declared(plan)) == {"a"}
    with pytest.raises(EncoreError, match="no pre-training step"):
        check_target(plan, FIGURE)
    for name, content in declared(plan).items():
        write_plan(name, content)
    assert [path.name for path in tmp_path.rglob("*.json")] == ["a.json"]


def test_a_run_with_pre_training_declares_the_figure_and_writes_its_plan(make, tmp_path, monkeypatch):
    plan = make({"a": [("ICT", "bert-base+ict+marco-bm25")]})
    assert FIGURE in everything_declared(plan)
    for ending in ("png", "svg", "csv", "manifest.json"):
        check_target(plan, f"results/figures/pretraining.{ending}")
    with pytest.raises(EncoreError, match="are written as"):
        check_target(plan, "results/figures/pretraining.pdf")
    monkeypatch.chdir(tmp_path)
    for name, content in declared(plan).items():
        write_plan(name, content)
    assert slices.read(Path("results/plan/pretraining.json"), StepsSlice.model_validate)[0].rows[0].label == "ICT"


def test_no_table_may_have_the_figure_s_name(make):
    with pytest.raises(EncoreError, match=r"tables\.pretraining: .* rename the table"):
        declared(make({"pretraining": [("ICT", "bert-base+ict+marco-bm25")]}))


# What is read


def write_model(folder, terms, at=(0, 5, 10)):
    """A model folder with the curve of these terms, and their sum."""
    rows = [[*at], [sum(values) for values in zip(*terms.values(), strict=True)], *terms.values()]
    lines = [["step", "loss", *terms], *([f"{cell:.6g}" for cell in line] for line in zip(*rows, strict=True))]
    folder.mkdir(parents=True)
    (folder / HELD_OUT).write_text("".join("\t".join(line) + "\n" for line in lines))
    record(folder)
    return str(folder)


def record(folder):
    outputs = {HELD_OUT: manifest.describe(folder / HELD_OUT)}
    write_json(folder / manifest.MANIFEST, {"spec": {}, "results": {}, "inputs": {}, "outputs": outputs})


def steps_of(folder, terms, seeds=1, **changes):
    """The plan of the figure over made-up models: every seed has 1.1 times the numbers of the one before."""
    rows = [
        {
            "label": name.upper(),
            "step": name,
            "lineage": f"tiny+{name}",
            "seeds": [
                {
                    "seed": seed,
                    "model": write_model(
                        folder / f"{name}-s{seed}",
                        {term: [1.1**seed * value for value in values] for term, values in each.items()},
                    ),
                }
                for seed in range(seeds)
            ],
        }
        for name, each in terms.items()
    ]
    return StepsSlice.model_validate({"name": "pretraining", "rows": rows, "proxy_data": True, **changes})


def texts(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def caption_of(figure):
    return figure.texts[-1].get_text().replace("\n", " ")


def drawn(steps):
    """The figure itself, to be asked what it says."""
    return learning._figure(steps, [learning.read_loss_curves(step) for step in steps.rows])


def test_curves_hold_what_the_files_say(tmp_path):
    (one,) = map(learning.read_loss_curves, steps_of(tmp_path, {"cpdae": CPDAE}, seeds=2).rows)
    assert one.at.tolist() == [0, 5, 10]
    assert [term.name for term in one.terms] == ["loss", "mlm", "rec", "contrast"]
    assert [term.name for term in one.drawn()] == ["mlm", "rec", "contrast"]
    np.testing.assert_allclose(one.terms[2].values, [[400, 300, 100], [440, 330, 110]])
    np.testing.assert_allclose(one.terms[2].mean, [420, 315, 105])


def test_the_data_beside_the_figure_are_every_number(tmp_path):
    steps = steps_of(tmp_path, {"mlm": MLM, "ict": {"contrast": [4, 2, 1], "accuracy": [0, 0.5, 1]}}, 2)
    learning.draw_learning(tmp_path, steps, tmp_path)
    with (tmp_path / "pretraining.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * 2 + 2 * 3 * 3
    assert rows[0] == {"step": "mlm", "lineage": "tiny+mlm", "seed": "0", "training_step": "0"} | {
        "term": "loss",
        "value": "9.0",
    }
    found = {(row["step"], row["seed"], row["training_step"], row["term"]): float(row["value"]) for row in rows}
    assert found["mlm", "1", "10", "mlm"] == pytest.approx(4.95)
    assert found["ict", "0", "5", "accuracy"] == 0.5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "is missing: nothing says what the model learned"),
        ("step\tloss\n0\tnan\n", "no table of the losses"),
        ("step\tloss\n0\thigh\n", "no table of the losses"),
        ("step\tloss\tmlm\n0\t9\n", "no table of the losses"),
        ("query\tscore\n0\t9\n", "no table of the losses"),
        ("", "no table of the losses"),
        ("step\tloss\tmlm\n0\t9\t9\n7\t8\t8\n10\t7\t7\n", "other columns or steps than"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, text, says):
    steps = steps_of(tmp_path, {"mlm": MLM}, seeds=2)
    path = tmp_path / "mlm-s1" / HELD_OUT
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(EncoreError, match=says) as refused:
        learning.draw_learning(tmp_path, steps, tmp_path)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)
    assert not (tmp_path / "pretraining.png").exists()


# What is drawn


@pytest.mark.parametrize("seeds", [1, 3])
def test_equal_numbers_give_equal_bytes(tmp_path, seeds):
    steps = steps_of(tmp_path, {"mlm": MLM, "cpdae": CPDAE}, seeds)
    for folder in ("a", "b"):
        learning.draw_learning(tmp_path / folder, steps, tmp_path)
    for ending in ("png", "svg", "csv"):
        first, second = ((tmp_path / folder / f"pretraining.{ending}").read_bytes() for folder in ("a", "b"))
        assert first == second


def test_a_panel_says_how_far_each_term_fell(tmp_path):
    figure = drawn(steps_of(tmp_path, {"cpdae": CPDAE}))
    assert texts(figure)[0] == "CPDAE"
    assert texts(figure)[1:] == (
        ["mlm", "8.00 → 6.00", "−25 %", "rec", "400 → 100", "−75 %", "contrast", "4.80 → 4.60", "−4 %"]
    )


def test_lines_are_shares_of_the_start_thin_for_seeds_and_thick_for_their_mean(tmp_path):
    steps = steps_of(tmp_path, {"mlm": MLM}, seeds=2)
    other = write_model(tmp_path / "other", {"mlm": [10.0, 8.0, 7.5]})
    steps.rows[0].seeds[1] = steps.rows[0].seeds[1].model_copy(update={"model": other})
    (axis,) = drawn(steps).axes
    lines = {line.get_linewidth(): line.get_ydata() for line in axis.lines if len(line.get_xdata()) == 3}
    np.testing.assert_allclose(lines[2], np.array([9.5, 7.0, 6.0]) / 9.5)
    thin = [line.get_ydata() for line in axis.lines if line.get_linewidth() == 0.7]
    np.testing.assert_allclose(thin, [[1, 6 / 9, 0.5], [1, 0.8, 0.75]])
    alone = drawn(steps_of(tmp_path / "alone", {"mlm": MLM})).axes[0]
    assert [line.get_linewidth() for line in alone.lines if len(line.get_xdata()) == 3] == [2]


def test_accuracies_and_the_sum_have_no_line_unless_the_sum_is_all(tmp_path):
    figure = drawn(steps_of(tmp_path, {"ict": {"contrast": [4, 2, 1], "accuracy": [0.0, 0.5, 1]}}))
    assert texts(figure) == ["ICT", "contrast", "4.00 → 1.00", "−75 %"]
    steps = steps_of(tmp_path / "b", {"mlm": MLM})
    (tmp_path / "b/mlm-s0" / HELD_OUT).write_text("step\tloss\n0\t4\n10\t5\n")
    assert texts(drawn(steps)) == ["MLM", "loss", "4.00 → 5.00", "+25 %"]


def test_a_term_that_starts_at_zero_has_numbers_but_no_line(tmp_path):
    figure = drawn(steps_of(tmp_path, {"a": {"mlm": [4, 2, 1], "extra": [0.0, 0.25, 0.5]}}))
    assert texts(figure)[-3:] == ["extra", "0.000 → 0.500", "+0.500"]
    assert len([line for line in figure.axes[0].lines if len(line.get_xdata()) == 3]) == 1
    assert "A term that starts at 0 has no line." in caption_of(figure)


def test_a_step_with_too_few_texts_says_so(tmp_path):
    steps = steps_of(tmp_path, {"mlm": MLM, "ict": MLM})
    (tmp_path / "ict-s0" / HELD_OUT).write_text("step\n")
    assert texts(drawn(steps))[-2:] == ["ICT", "too few texts to hold any out"]


def test_the_caption_says_seeds_and_stand_in(tmp_path):
    caption = caption_of(drawn(steps_of(tmp_path, {"mlm": MLM})))
    assert "one seed" in caption
    assert "it does not confirm a paper" in caption
    assert "bounded" not in caption
    caption = caption_of(drawn(steps_of(tmp_path / "b", {"cpdae": CPDAE}, 2, proxy_data=False)))
    assert "thick, the mean" in caption
    assert "confirm" not in caption
    assert "A contrast of bounded similarities" in caption


def test_panels_stand_in_rows_of_four_in_the_order_of_the_plan(tmp_path):
    names = [f"step{number}" for number in range(6)]
    figure = drawn(steps_of(tmp_path, dict.fromkeys(names, MLM)))
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.texts[0].get_text() for axis in shown] == [name.upper() for name in names]
    assert len(figure.axes) == 8
    assert [bool(axis.get_xlabel()) for axis in shown] == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("value", "like", "says"),
    [(0.5, 4, "0.50"), (-0.25, 0, "−0.25"), (12345.6, 12345, "12,346"), (0.00123, 0.01, "0.0012")],
)
def test_numbers_have_three_digits(value, like, says):
    assert learning.brief(value, like) == says


@pytest.mark.parametrize(
    ("share", "says"), [(-0.31, "−31 %"), (0.25, "+25 %"), (-0.0042, "−0.4 %"), (0, "0 %"), (-1e-6, "0 %")]
)
def test_changes_are_percents(share, says):
    assert learning.percent(share) == says


# The program


def test_the_program_writes_files_and_a_manifest_and_checks_its_inputs(tmp_path):
    path = tmp_path / "pretraining.json"
    path.write_text(steps_of(tmp_path, {"mlm": MLM, "cpdae": CPDAE}).model_dump_json())
    (tmp_path / "mlm-s0" / "model.safetensors").write_text("not read, so not verified")
    assert inside.product("curves", path, tmp_path / "out").returncode == 0
    written = json.loads((tmp_path / "out/pretraining.manifest.json").read_text())
    assert (written["stage"], written["spec"]) == ("curves", json.loads(path.read_text()))
    assert set(written["outputs"]) == {f"pretraining.{ending}" for ending in ("csv", "png", "svg")}
    assert set(written["inputs"]) == {str(tmp_path / f"{name}-s0/manifest.json") for name in ("mlm", "cpdae")}

    with (tmp_path / "cpdae-s0" / HELD_OUT).open("a") as file:
        file.write("\n")
    done = inside.product("curves", path, tmp_path / "again")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "cpdae-s0/held_out.tsv has" in done.stderr
    assert not (tmp_path / "again").exists()


def test_a_model_without_the_file_is_one_line(tmp_path):
    steps = steps_of(tmp_path, {"mlm": MLM})
    write_json(
        tmp_path / "mlm-s0/manifest.json",
        {"stage": "pretrain.mlm", "spec": {}, "results": {}, "inputs": {}, "outputs": {}},
    )
    with pytest.raises(EncoreError, match=r"mlm-s0/manifest\.json lists no held_out\.tsv; run"):
        manifest.verify(*next(iter(steps.reads().items())))
