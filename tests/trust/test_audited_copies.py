"""A copy that says of itself what is not so, under digests that were redone: its words decide nothing."""

import shutil
from collections.abc import Callable

import pytest
from finished_run import CONFIG, FinishedRun
from forgeries import redo_digests

from encore.commands.audit import copies
from encore.products.catalogue import load_plan
from tests.support import inside

TABLE = "results/tables/table1.manifest.json"
Forgery = Callable[[FinishedRun], object]


def the_scores_of_bm25(run: FinishedRun) -> None:
    """The table shows under ICT what BM25 reaches."""

    def change(record: dict) -> None:
        rows = {row["id"]: row for row in record["spec"]["rows"] if row["setting"] == "BM25 negatives"}
        others = {row["id"]: row for row in record["spec"]["rows"]}
        for column, cell in rows["ict"]["cells"].items():
            cell["reads"] = others["bm25"]["cells"][column]["reads"]

    run.edit(TABLE, change)


def printed_in_results(run: FinishedRun) -> None:
    run.write("results/logs/printed.csv", "row_label,dataset,metric,value\nBM25,MS MARCO,MRR@10,.286\n")
    run.edit(TABLE, lambda record: record["spec"].update(reported="results/logs/printed.csv"))


def another_stage(run: FinishedRun, kind: str, stage: str) -> str:
    folder = next(folder for folder in run.manifests if folder.startswith(f"results/{kind}/tiny"))
    run.edit(f"{folder}/manifest.json", lambda record: record.update(stage=stage))
    redo_digests(run)
    return folder


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (the_scores_of_bm25, "'tiny+ict+marco-bm25', and results/scores/bm25-"),
        (printed_in_results, "takes numbers from 'results/logs/printed.csv', which is no file of this checkout"),
        (lambda run: run.edit(TABLE, lambda record: record["spec"].update(proxy_data=False)), "is the embedded text"),
        (
            lambda run: run.edit(
                TABLE, lambda record: record["spec"]["dataset_labels"].update({"msmarco-passage-titles": "MS MARCO"})
            ),
            "'MS MARCO', and results/scores/",
        ),
        (
            lambda run: another_stage(run, "scores", "judge"),
            "is of stage 'judge', which makes nothing in results/scores",
        ),
        (lambda run: another_stage(run, "runs", "tokens"), "is of stage 'tokens', which makes nothing in results/runs"),
        (
            lambda run: run.edit(
                next(iter(run.manifests)) + "/manifest.json", lambda record: record["spec"].update(impl=99)
            ),
            "has another spec than the one that its folder is named by",
        ),
    ],
)
def test_what_a_copy_says_of_itself_is_compared(
    run: FinishedRun, forge: Forgery, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products are made again from what a copy says, which finds none of these."""
    for name in ("remake_products", "remake_page"):
        monkeypatch.setattr(copies, name, lambda report: None)
    try:
        assert copies.audit_copy(run.root, None)[0].findings == []
        forge(run)
        found = [str(finding) for finding in copies.audit_copy(run.root, None)[0].findings]
        assert [each for each in found if says in each], found
    finally:
        run.restore()


def test_scores_that_call_themselves_otherwise_are_bad_in_ones_own_results_too(run: FinishedRun) -> None:
    """``audit --deep`` passed forged scores whose manifest had another stage."""
    from encore.commands.audit import audit

    folder = another_stage(run, "scores", "judge")
    findings = audit.audit(load_plan(CONFIG), str(CONFIG)).findings
    run.restore()
    assert [each.reason for each in findings if each.place == folder] == [
        f"{folder}/manifest.json has another stage than the plan"
    ]


def test_a_crates_files_agree_with_its_list(run: FinishedRun) -> None:
    """Seeds, workflow and metadata were edited, and the audit did not say that it had not looked."""
    crate = run.root.parent / "crate"
    assert inside.encore("crate", str(crate), "--config", str(CONFIG), cwd=run.root).returncode == 0
    for name in (str(CONFIG), "workflow/Snakefile"):
        text = (crate / name).read_text()
        (crate / name).unlink()
        (crate / name).write_text(text + "# edited\n")
    (crate / "workflow/more.py").write_text("")
    done = inside.encore("audit", str(crate), cwd=run.root)
    shutil.rmtree(crate)
    metadata = "ro-crate-metadata.json"
    assert done.returncode == 1
    assert f"bad: {crate}/{CONFIG} is not the file that {metadata} lists" in done.stdout
    assert f"bad: {crate}/workflow/Snakefile is not the file that {metadata} lists" in done.stdout
    assert f"bad: {crate}/workflow/more.py was added: {metadata} does not list it" in done.stdout
    assert "of its run's file, workflow and metadata only that they agree: no root covers them" in done.stdout
