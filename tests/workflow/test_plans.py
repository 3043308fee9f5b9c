"""What Snakemake plans in a fresh clone: by the commands that users type, for each configuration that is shipped."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from encore.storage.files import write_json
from tests.support.clones import REPOSITORY, Clone, exact_jobs, jobs
from tests.support.quick_first import quick_first

TABLE1 = "results/tables/table1.csv"
COPIED = "results/tables/cpdae/table1.csv"  # of a row that its paper copied
TEXTS = Counter({"collection": 1, "tokenizer": 1, "tokens": 1, "lucene_index": 1, "lucene_search": 2})
OF_TABLE1 = TEXTS + Counter(
    {"start": 3, "pretrain": 8, "negatives": 11, "finetune": 20, "encode": 20, "search": 30, "evaluate": 21, "table": 1}
)
# What each further table of config.yaml adds to those before it, and the figure of the growing collection to them all.
OF_OBJECTIVES = Counter({"prepare": 3, "pretrain": 12, "finetune": 12, "encode": 12, "search": 12, "evaluate": 12})
OF_OBJECTIVES += Counter(attend=1, table=1)
OF_REPRESENTATIONS = Counter(inspect_model=21, table=1)
# Two of the ten models, ColBERT and the cross-encoder, only score pairs; ColBERT after its hard negatives only teaches.
OF_TABLE2 = Counter(
    {"start": 1, "finetune": 10, "teacher_scores": 4, "negatives": 1, "encode": 7, "lucene_search": 2, "search": 10}
)
OF_TABLE2 += Counter({"build_index": 3, "search_index": 3, "tune_fusion": 1, "fuse": 1, "rerank": 2})
OF_TABLE2 += Counter({"measure_latency": 14, "evaluate": 13, "table": 1})
OF_DOCUMENTS = Counter({"collection": 1, "tokens": 1, "lucene_index": 1, "lucene_search": 1, "negatives": 4})
OF_DOCUMENTS += Counter({"finetune": 4, "encode": 7, "search": 11, "evaluate": 8, "table": 1})
# Seven packages, and the standard library that five models learn from before they meet them.
OF_BEIR = Counter({"collection": 8, "tokens": 8, "lucene_index": 8, "lucene_search": 8, "negatives": 1, "finetune": 5})
OF_BEIR += Counter({"encode": 35, "search": 35, "evaluate": 42, "table": 1})
# Both tables of questions have one collection and one set of pre-trained models.
OF_REQA = Counter({"collection": 1, "tokens": 1, "lucene_index": 1, "lucene_search": 2, "start": 2, "pretrain": 4})
OF_REQA += Counter({"finetune": 12, "encode": 12, "search": 12, "evaluate": 14, "table": 2})
OF_GROWING = Counter({"lucene_search": 1, "nested_corpora": 1, "search": 20, "evaluate": 40, "draw": 1})
OF_GROWING += Counter({"teacher_scores": 1, "finetune": 1, "encode": 1})  # KD-T2, which no table of the run has
PAGES = Counter(report=1)  # of every run
SHIPPED = {
    "config": OF_TABLE1
    + OF_OBJECTIVES
    + OF_REPRESENTATIONS
    + OF_TABLE2
    + OF_DOCUMENTS
    + OF_BEIR
    + OF_REQA
    + OF_GROWING
    + Counter({"figure": 2, "curves": 1})
    + PAGES,
    "nano": TEXTS
    + Counter({"start": 1, "pretrain": 1, "negatives": 3, "finetune": 5, "encode": 5, "search": 7, "evaluate": 6})
    + Counter({"table": 1, "figure": 1, "curves": 1})
    + PAGES,
}


LARGER = ("small", "paper")  # scales with the same tables
BROUGHT = ("labels", "real")  # runs whose texts `make real-data` brings


def by_rule(planned: set[str]) -> Counter[str]:
    return Counter(job.split()[0] for job in planned)


def job_statistics(output: str) -> Counter[str]:
    """Snakemake's own counts, from its table."""
    return Counter({rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)})


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which nothing is ever built."""
    return Clone.fresh(tmp_path_factory.mktemp("pristine") / "a clone")


@pytest.fixture(scope="module")
def nano(pristine: Clone) -> str:
    """What a dry run of nano prints."""
    return pristine.nano("-n").succeeded()


@pytest.mark.parametrize("profile", quick_first(["local", "slurm"]))
def test_the_command_that_users_type_plans_table_1(pristine: Clone, profile: str) -> None:
    planned = jobs(pristine.snakemake(TABLE1, "--profile", profile, "-n").succeeded())
    assert by_rule(planned) == OF_TABLE1
    assert "table table1" in planned


@pytest.mark.slow
def test_what_a_run_in_progress_reads_stays(tmp_path: Path) -> None:
    """Whatever is asked for at the same time: a dry run, or a run that its lock turns away."""
    clone = Clone.fresh(tmp_path / "a clone")
    plan = clone.root / "results/plan/table1.json"
    plan.parent.mkdir(parents=True)
    plan.write_text('{"of": "the run in progress"}')
    in_progress(clone, reads=["results/plan/table1.json"], makes=[TABLE1])
    assert "table table1" in jobs(clone.snakemake(TABLE1, "--profile", "local", "-n").succeeded())
    refused = clone.snakemake(TABLE1, "--profile", "local")
    assert refused.code != 0
    assert "cannot be locked" in refused.output
    assert json.loads(plan.read_text()) == {"of": "the run in progress"}


@pytest.mark.slow
def test_a_run_beside_another_makes_what_the_other_does_not(tmp_path: Path) -> None:
    """And leaves in the plan what the other is still to make, for the jobs that a cluster starts later."""
    clone = Clone.fresh(tmp_path / "a clone")
    awaited, given_up = "results/models/micro-bert-s0-01234567", "results/models/micro-bert-s0-76543210"
    entry = {"stage": "start", "spec": {}, "inputs": {}, "targets": [TABLE1]}
    index = clone.root / "results/plan/index.json"
    index.parent.mkdir(parents=True)
    artifacts = {awaited: entry, given_up: entry}
    index.write_text(json.dumps({"run": "config/nano.yaml", "patterns": {}, "artifacts": artifacts}))
    in_progress(clone, reads=["results/plan/table1.json"], makes=[f"{awaited}/manifest.json", TABLE1])
    with_a_copied_row(clone)
    clone.nano(COPIED).succeeded()
    assert (clone.root / "results/plan/cpdae/table1.json").is_file()
    kept = json.loads(index.read_text())["artifacts"]
    assert kept[awaited] == entry
    assert given_up not in kept


@pytest.mark.slow
def test_a_product_is_another_run_s_until_this_run_has_made_it(tmp_path: Path) -> None:
    """A run that only began was noted as its maker, and an audit for that run pruned the other's table."""
    clone = Clone.fresh(tmp_path / "a clone")
    with_a_copied_row(clone)
    table, copied = "results/tables/table1.manifest.json", COPIED.replace(".csv", ".manifest.json")
    for record in (table, copied):
        write_json(clone.root / record, {"spec": {"of": "another plan"}})
    index = clone.root / "results/plan/index.json"
    write_json(index, {"patterns": {}, "artifacts": {}, "products": dict.fromkeys((table, copied), "config/own.yaml")})
    program = clone.root / "workflow/scripts/make.py"
    works = program.read_text()
    program.write_text("raise SystemExit(1)\n")
    assert clone.nano(TABLE1).code != 0
    assert json.loads(index.read_text())["products"] == dict.fromkeys((table, copied), "config/own.yaml")
    assert clone.nano(TABLE1, COPIED, "--keep-going").code != 0
    made = json.loads(index.read_text())["products"]
    assert (made[table], made[copied]) == ("config/own.yaml", "config/nano.yaml")
    program.write_text(works)
    write_json(clone.root / copied, {"spec": {"of": "another plan"}})
    write_json(index, {"patterns": {}, "artifacts": {}, "products": {copied: "config/own.yaml"}})
    clone.nano(COPIED, "--force").succeeded()
    assert json.loads(index.read_text())["products"][copied] == "config/nano.yaml"


def with_a_copied_row(clone: Clone) -> None:
    """Let nano have a table that is made of nothing."""
    clone.replace("config/nano.yaml", "tables: {table1:", "tables: {cpdae/table1: [trec], table1:")


def in_progress(clone: Clone, reads: list[str], makes: list[str]) -> None:
    """Snakemake's locks of a run at work."""
    locks = clone.root / ".snakemake/locks"
    locks.mkdir(parents=True)
    for kind, names in (("input", reads), ("output", makes)):
        (locks / f"0.{kind}.lock").write_text("".join(f"{name}\n" for name in names))


def test_jobs_of_the_shipped_configurations(pristine: Clone, nano: str) -> None:
    for name, output in (("nano", nano), ("config", pristine.snakemake("--profile", "local", "-n").succeeded())):
        assert by_rule(exact_jobs(output)) == SHIPPED[name]
        assert by_rule(exact_jobs(output)) + Counter(all=1) == job_statistics(output) - Counter(total=1000)


def test_every_shipped_configuration_is_counted_here() -> None:
    """But those that are others with more seeds, fewer tables or another precision."""
    found = {path.stem: yaml.safe_load(path.read_text()) for path in (REPOSITORY / "config").glob("*.yaml")}
    runs = {name for name, content in found.items() if "seeds" in content and "extends" not in content}
    assert runs - {*LARGER, *BROUGHT} == set(SHIPPED)


@pytest.mark.slow
def test_seeds_multiply_what_chance_is_in(pristine: Clone) -> None:
    """Five times everything of config.yaml that has a seed: its rows are config.yaml's.

    BM25 is searched without a seed, and scored so on each of its four test splits and on seven packages; the common
    start is made once, by one training, for either pooling, and so are preparations from it and a look at its vectors;
    and the time of each system is taken with the first seed's model.
    """
    seeds = yaml.safe_load((pristine.root / "config/five-seeds.yaml").read_text())["seeds"]
    output = pristine.snakemake("--profile", "local", "--configfile", "config/five-seeds.yaml", "-n").succeeded()
    fixed = {"collection", "tokenizer", "tokens", "lucene_index", "lucene_search", "nested_corpora", "measure_latency"}
    fixed |= {"table", "figure", "curves", "draw", *PAGES}
    once = Counter({rule: count for rule, count in SHIPPED["config"].items() if rule in fixed})
    chance = SHIPPED["config"] - once
    without = Counter(evaluate=11, attend=1, prepare=3, start=3, pretrain=1, inspect_model=1)
    expected = once + without + Counter({rule: count * len(seeds) for rule, count in (chance - without).items()})
    expected += Counter(lucene_search=2 * (len(seeds) - 1))  # over each seed's own sample of training queries
    assert by_rule(exact_jobs(output)) == expected


@pytest.mark.parametrize("name", LARGER)
@pytest.mark.slow
def test_a_larger_scale_has_the_same_trainings_and_tables(pristine: Clone, name: str) -> None:
    """Data and models are other ones, and nothing of them has to be there yet."""
    run = ("--profile", "slurm", "--configfile", f"config/{name}.yaml", "-n", "--cores", "64")
    output = pristine.snakemake(*run).succeeded()
    counted = by_rule(exact_jobs(output))
    same = ("pretrain", "attend", "prepare", "finetune", "build_index", "tune_fusion", "measure_latency")
    for rule in (*same, "nested_corpora", "table", "figure", "curves", "draw", *PAGES):
        # These scales fetch the start that replaces BERT, and their graded queries are others than the test ones.
        more = {"pretrain": -1, "nested_corpora": 1}.get(rule, 0)
        assert counted[rule] == SHIPPED["config"][rule] + more, rule
    assert counted["fetch_ir_datasets"] > 2
    assert counted["fetch_checkpoint"] > 0
    assert not (pristine.root / "data").exists()
    wanted = {int(amount) for amount in re.findall(r"gres=gpu:(\d+)", output)}
    most = yaml.safe_load((pristine.root / f"config/{name}.yaml").read_text())["execution"].get("processes", 1)
    assert {1, most} <= wanted <= set(range(1, most + 1))  # small batches have fewer


def test_nano_is_small() -> None:
    assert SHIPPED["nano"].total() + 1 <= 40


@pytest.mark.slow
def test_nano_has_every_table_and_figure_of_the_catalogue_in_few_jobs(pristine: Clone, nano: str) -> None:
    """All but those on real files that lie in no installation; what nano.yaml makes is made in the same folders."""
    run = yaml.safe_load((pristine.root / "config/nano-papers.yaml").read_text())
    named = {}
    for kind in ("tables", "figures"):
        named[kind] = {
            name if path.parent.name == "encore" else f"{path.parent.name}/{name}"
            for path in (pristine.root / "config/papers").glob(f"*/{kind}.yaml")
            for name in yaml.safe_load(path.read_text())
            if path.parent.name != "real"
        }
        assert set(run[kind]) == named[kind]
    output = pristine.snakemake("--profile", "local", "--configfile", "config/nano-papers.yaml", "-n").succeeded()
    planned = exact_jobs(output)
    made = by_rule(planned)
    assert (made["table"], made["draw"]) == (len(named["tables"]), len(named["figures"]))
    assert len(planned) < 600  # rivals of the tables among them
    products = {"table", "figure", "curves", "report"}
    shared = {job for job in exact_jobs(nano) if job.split()[0] not in products}
    assert {job for job in shared if "marco-hn" not in job} <= planned


@pytest.mark.slow
def test_a_dump_that_is_not_there_is_planned_with_and_stops_a_run_before_its_first_job(clone: Clone) -> None:
    run = (clone.root / "config/nano.yaml").read_text().replace("{wikipedia: pydocs-stdlib, ", "{")
    (clone.root / "config/dump.yaml").write_text(run)
    arguments = (TABLE1, "--profile", "local", "--configfile", "config/dump.yaml")
    planned = jobs(clone.snakemake(*arguments, "-n").succeeded())
    assert {"collection wikipedia", "tokens wikipedia", "tokenizer wordpiece-8192"} <= planned
    refused = clone.snakemake(*arguments)
    assert refused.code != 0
    assert "data/wikipedia/enwiki-pages-articles-multistream.xml.bz2" in refused.output
    assert not list((clone.root / "results").glob("collections/*"))


def test_the_parser_sees_a_change(nano: str) -> None:
    """Were wildcards or rules overlooked, no test of a plan would mean anything."""
    text = nano
    assert "pretrain tiny+ict-s0" in jobs(text)
    assert "encode tiny+ict+marco-bm25-s0 pydocs-stdlib 000-of-001" in jobs(text)
    changed = text.replace("wildcards: pretrained=tiny+ict-s0", "wildcards: pretrained=tiny+bow-s0")
    assert jobs(changed) - jobs(text) == {"pretrain tiny+bow-s0"}
    assert jobs(text.replace("rule table:", "rule graph:")) ^ jobs(text) == {"table table1", "graph table1"}
    assert len(exact_jobs(text)) == len(jobs(text)), "digests only tell versions of one job apart"


def test_a_target_on_the_way_is_planned_alone(pristine: Clone, nano: str) -> None:
    (folder,) = re.findall(r"results/tokens/[^/]+/manifest.json", nano)[:1]
    assert by_rule(pristine.planned(folder)) == Counter(["collection", "tokenizer", "tokens"])


def test_an_undeclared_lineage_is_a_target(pristine: Clone) -> None:
    """``encore targets`` prints what to ask for."""
    lineage = "tiny+ict~temperature=0.1+marco-bm25"
    model, scores = pristine.encore("targets", lineage, "--config", "config/nano.yaml").succeeded().splitlines()
    planned = pristine.planned(model, scores)
    assert by_rule(planned)["finetune"] == 1
    assert f"pretrain {lineage.removesuffix('+marco-bm25')}-s0" in planned


@pytest.mark.slow
def test_reranking_asks_for_a_model_and_a_first_stage_and_for_no_vectors(pristine: Clone) -> None:
    """A model that only scores pairs is trained like any other, and nothing is encoded with it."""
    (scores,) = pristine.encore("targets", "bm25-colbert", "--config", "config/nano.yaml").succeeded().splitlines()
    planned = pristine.planned(scores)
    counted = by_rule(planned)
    assert (counted["finetune"], counted["rerank"], counted["evaluate"]) == (1, 1, 1)
    assert counted["encode"] == counted["search"] == 0
    assert counted["lucene_search"] == 2, "the run that is ranked again, and the one that negatives come from"
    (model,) = (
        pristine.encore("targets", "bert-base-tct+colbert", "--config", "config/nano.yaml").succeeded().splitlines()
    )
    assert by_rule(pristine.planned(model))["rerank"] == 0


@pytest.mark.slow
def test_an_undeclared_system_is_a_target(pristine: Clone) -> None:
    """With all that it is made of, which nothing else of the configuration makes."""
    (scores,) = pristine.encore("targets", "hybrid-doct5", "--config", "config/nano.yaml").succeeded().split()
    rules = {"collection": 1, "tokenizer": 1, "tokens": 1, "start": 1, "negatives": 1, "finetune": 1, "encode": 1}
    rules |= {"lucene_index": 2, "lucene_search": 4, "search": 3, "train_doc2query": 1, "predict_queries": 1}
    assert by_rule(pristine.planned(scores)) == Counter(rules | {"tune_fusion": 1, "fuse": 1, "evaluate": 1})


def test_no_tracked_file_is_a_rule_s_output(pristine: Clone) -> None:
    tracked = subprocess.run(["git", "ls-files", "results"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert tracked.stdout.split() == ["results/.gitignore"]
