"""What every rule must have, read from the rules as Snakemake understands them."""

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yte
from snakemake.api import SnakemakeApi
from snakemake.io import is_flagged
from snakemake.settings.types import ConfigSettings, OutputSettings, ResourceSettings
from snakemake_executor_plugin_slurm.utils import set_gres_string

from encore import stages
from tests.support.clones import REPOSITORY, Clone

ASKING = {"all", "audit", "fetch", "preflight"}
LARGE_PAGES = 'GLIBC_TUNABLES="${{GLIBC_TUNABLES:+$GLIBC_TUNABLES:}}glibc.malloc.hugetlb=1" '  # before build_index
PRODUCTS = {"table", "figure", "curves", "draw", "claims", "checks", "report"}
RESUMED = {"pretrain", "finetune", "attend", "predict_queries"}
FED = {
    "encode",
    "search",
    "rerank",
    "teacher_scores",
    "masked_loss",
    "inspect_model",
    "train_doc2query",
}  # GPUs, by one core
SCORING = {"evaluate", "negatives", "merged_negatives"}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone.fresh(tmp_path_factory.mktemp("rules") / "clone")


@pytest.fixture(scope="module")
def workflow(clone: Clone) -> Any:
    return parsed(clone)


def parsed(clone: Clone, snakefile: str = "Snakefile", **given: Any) -> Any:
    """The workflow of the nano configuration as Snakemake has parsed it, with what a profile gives to rules."""
    with SnakemakeApi(OutputSettings()) as api:
        return api.workflow(
            ResourceSettings(cores=1, overwrite_resources=given),
            ConfigSettings(configfiles=[clone.root / "config/nano.yaml"]),
            snakefile=clone.root / snakefile,
            workdir=clone.root,
        )._workflow


@pytest.fixture(scope="module")
def rules(workflow: Any) -> dict[str, Any]:
    found = {rule.name: rule for rule in workflow.rules}
    assert {"collection", "pretrain", "finetune", "encode", "search", "evaluate", "table"} <= set(found)
    return found


def test_the_snakefile_at_the_top_has_the_rules_of_the_one_that_modules_name(clone: Clone, workflow: Any) -> None:
    other = parsed(clone, "workflow/Snakefile")
    assert [rule.name for rule in other.rules] == [rule.name for rule in workflow.rules]
    assert other.default_target == workflow.default_target == "all"
    assert other.globals["LIBRARY"] == workflow.globals["LIBRARY"] == clone.root / "src"


def declared_reads_of(plan: Any) -> None:
    """Plan all that the configuration declares."""
    from encore.products.targets import needed_by

    with contextlib.chdir(REPOSITORY):
        needed_by(plan, [])


def made_by(rules: dict[str, Any]) -> dict[str, Any]:
    return {name: rule for name, rule in rules.items() if name not in ASKING}


def test_every_rule_has_a_docstring_and_a_log(rules: dict[str, Any]) -> None:
    assert not [name for name, rule in rules.items() if not (rule.docstring or "").strip().endswith(".")]
    assert not [name for name, rule in rules.items() if len(rule.log) != 1 and name not in ("all", "fetch")]


def test_every_rule_that_makes_something_has_one_spec_and_no_benchmark(rules: dict[str, Any]) -> None:
    """The spec is a file that a person can read, named as the folder is; of a product the digest of its slice.

    Snakemake compares params without their names, and tracks a function only where it takes wildcards alone.
    """
    for name, rule in made_by(rules).items():
        assert list(rule.params.keys()) == ["spec"], name
        assert not rule.benchmark, f"{name}: of a fork it measures the process that waits"
        spec = rule.params["spec"]
        if name in PRODUCTS:
            assert spec.__code__.co_varnames[: spec.__code__.co_argcount] == ("wildcards",), name
        else:
            manifest = re.sub(r"\{(\w+),[^/]*\}", r"{\1}", str(rule.output.manifest))
            folder = manifest.removeprefix("results/").removesuffix("/manifest.json")
            assert spec == f"results/plan/specs/{folder}.json", name


def test_every_rule_makes_a_manifest(rules: dict[str, Any]) -> None:
    for name, rule in made_by(rules).items():
        assert "manifest" in rule.output.keys(), name  # noqa: SIM118  # Snakemake's Namedlist is no mapping


@pytest.mark.parametrize("shard", ["000-of-003", "999-of-1000", "1000-of-1001"])
def test_every_shard_that_the_library_names_is_a_shard_of_the_rules(rules: dict[str, Any], shard: str) -> None:
    folder = f"results/indexes/bert-base-s0-01234567/squad-01234567/{shard}"
    assert rules["encode"].output.manifest.match(f"{folder}/manifest.json").group("shard") == shard


@pytest.mark.parametrize("name", ["bm25+mined", "triples", "systems", "published"])
def test_a_backbone_may_be_called_as_negatives_are(rules: dict[str, Any], name: str) -> None:
    """Its runs had no rule; what is made for negatives alone still has its own."""
    record = "results/negatives/{}/squad-01234567/manifest.json"
    made = rules["negatives"].output.manifest
    assert not made.match(record.format(f"{name}-01234567"))
    assert made.match(record.format(f"{name}-base+ict-s0-01234567"))
    assert made.match(record.format(f"{name}-s0-01234567"))
    assert rules["evaluate"].output.manifest.match(f"results/scores/{name}-s0-01234567/squad.test/manifest.json")


def test_logs_say_which_job_they_are_of(rules: dict[str, Any]) -> None:
    for name, rule in made_by(rules).items():
        (log,) = rule.log
        assert str(log).startswith(f"results/logs/{name}/"), name


def test_retries_are_the_profile_s(rules: dict[str, Any]) -> None:
    """Those of a rule would also count inside a cluster's job, with the memory that was too small."""
    assert not [name for name, rule in rules.items() if rule._restart_times]


def test_memory_and_time_grow_with_attempts(workflow: Any, rules: dict[str, Any]) -> None:
    """But for the time of a job that goes on from its checkpoint."""
    plan = workflow.globals["PLAN"]
    declared_reads_of(plan)
    sized = set()
    for name, rule in made_by(rules).items():
        found = (rule.output.manifest.match(made.manifest) for made in plan.made.values())
        wildcards = next((match.groupdict() for match in found if match), None)
        for resource in ("mem_mb", "runtime"):
            amount = rule.resources[resource]._value
            if amount.__qualname__.startswith("by_attempt"):
                assert amount(None, attempt=2) == 2 * amount(None, attempt=1), (name, resource)
            elif wildcards and (name, resource) in {(each, "runtime") for each in RESUMED}:
                assert 0 < amount(wildcards) <= 24 * 60, name
            elif wildcards:
                sized.add(name)
                assert amount(wildcards, attempt=2) == 2 * amount(wildcards, attempt=1) > 0, (name, resource)
    assert {"collection", "tokens", "encode", "search", "lucene_index", "finetune"} <= sized


class Fields(dict[str, Any]):
    """Resources of a job, which are looked up by key and by name."""

    __getattr__ = dict.__getitem__


def profile(name: str, **lines: str) -> dict[str, Any]:
    """A profile as Snakemake reads it, with other values in some of its first lines."""
    text = (REPOSITORY / f"profiles/{name}/config.yaml").read_text()
    for key, value in lines.items():
        text, changed = re.subn(rf"^  {key}: .*$", f"  {key}: {value}", text, flags=re.M)
        assert changed == 1
    return yte.process_yaml(text, require_use_yte=True)


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("gres=gpu", ["--gres=gpu:2", "--gres=gpu:1"]),
        ("gres=gpu:a100", ["--gres=gpu:a100:2", "--gres=gpu:a100:1"]),
        ("gpus", ["--gpus=2", "--gpus=1"]),
        ("gpus=a100", ["--gpus=a100:2", "--gpus=a100:1"]),
    ],
)
def test_one_line_says_how_slurm_is_asked_for_gpus(line: str, flags: list[str]) -> None:
    """The request of a training with two processes, of a search and of BM25's latency, by SLURM's plugin."""
    asked = profile("slurm", gpu=line, gpu_partition="a-gpu", partition="cpus")["set-resources"]
    known = {
        "threads": 2,
        "input": SimpleNamespace(model=[], doc2query_model=[], shards=["index"]),
        "wildcards": SimpleNamespace(teacher="x", indexed="y"),
    }
    found = {name: {key: eval(str(value), dict(known)) for key, value in asked[name].items()} for name in asked}
    jobs = {name: SimpleNamespace(resources=Fields(fields)) for name, fields in found.items()}
    assert [set_gres_string(jobs[name]).strip() for name in ("pretrain", "search")] == flags
    assert set_gres_string(jobs["measure_latency"]) == ""
    assert (found["search"]["slurm_partition"], found["measure_latency"]["slurm_partition"]) == ("a-gpu", "cpus")


@pytest.mark.parametrize("line", ["gpu:a100", "gres", "--gpus"])
def test_another_form_of_that_line_is_refused_with_the_forms_that_there_are(line: str) -> None:
    with pytest.raises(Exception, match=r"must be gres=gpu, gres=gpu:TYPE, gpus, gpus=TYPE or none; correct it"):
        profile("slurm", gpu=repr(line))


@pytest.mark.parametrize("line", ["none", "null"])
def test_without_gpus_all_jobs_are_submitted_as_those_of_processors(line: str) -> None:
    """No rule requests a GPU, so that threads are those of the run; Snakemake refuses a profile without any request."""
    asked = profile("slurm", gpu=line, gpu_partition="a-gpu", partition="cpus")["set-resources"]
    assert {name: {"slurm_partition": "'cpus'"} for name in computing("one GPU", "GPUs")} == asked


def computing(*devices: str) -> set[str]:
    """The stages that compute on such devices."""
    return {name for name in stages.names() if stages.load(name).devices in devices}


def test_what_needs_a_gpu_is_the_same_with_slurm_and_without() -> None:
    slurm, local, generic = map(profile, ("slurm", "gpu", "cluster-generic"))
    with_gpu = {name for name, fields in slurm["set-resources"].items() if "gpu:" in fields.get("gres", "")}
    assert set(local["set-resources"]) == with_gpu == computing("one GPU", "GPUs")
    assert set(generic["set-resources"]) == with_gpu
    several = {name for name, fields in local["set-resources"].items() if str(fields["gpu"]).startswith("threads")}
    assert several == computing("GPUs")
    for name, fields in local["set-resources"].items():
        count, _, condition = str(fields["gpu"]).removesuffix(" else 0").partition(" if ")
        asked = {"slurm_partition": "'gpu'", "gres": f"'gpu:%d' % {count}"}
        if condition:
            asked = {
                "slurm_partition": f"'gpu' if {condition} else 'main'",
                "gres": f"{asked['gres']} if {condition} else ''",
            }
        assert slurm["set-resources"][name] == asked


@pytest.mark.parametrize(("named", "count"), [(None, 1), ("", 1), ("3", 1), ("0,2,5", 3)])
def test_without_slurm_as_many_jobs_have_gpus_as_there_are(
    named: str | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    elif list(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("this machine has GPUs")
    assert profile("gpu")["resources"] == [f"gpu={count}"]


def test_jobs_of_the_machine_that_plans_take_gpus_that_no_other_has(workflow: Any) -> None:
    assert " ENCORE_LEASE_GPUS=1;" in workflow.globals["prefix"]


def test_the_threads_of_a_training_are_those_of_its_processes(clone: Clone) -> None:
    """On GPUs, which compute, one each, as of other jobs that run a model; batches are made by one worker at least."""
    text = (clone.root / "config/nano.yaml").read_text()
    old = re.search("(numerics: .*\n)?execution: {", text)[0]  # type: ignore[index]
    try:
        on_gpus = profile("gpu")["set-resources"] | {"pretrain": {"gres": "'gpu:%d' % threads"}}
        for given, workers, threads, cores in (({}, 4, 6, 14), (on_gpus, 0, 2, 4)):
            new = f"numerics: {{precision: fp32, threads: 3}}\nexecution: {{processes: 2, workers: {workers}, "
            (clone.root / "config/nano.yaml").write_text(text.replace(old, new))
            workflow = parsed(clone, **given)
            (rule,) = (rule for rule in workflow.rules if rule.name == "pretrain")
            plan = workflow.globals["PLAN"]
            declared_reads_of(plan)
            made = next(made for made in plan.made.values() if made.stage.startswith("pretrain"))
            wildcards = rule.output.manifest.match(made.manifest).groupdict()
            found = rule.resources["_cores"]._value(wildcards)
            assert (found, rule.resources["cpus_per_task"]._value(wildcards, found)) == (threads, cores)
            assert rule.resources["processes"]._value(wildcards) == 2
            others = {rule.name: rule.resources["_cores"]._value for rule in workflow.rules}
            assert {others[name] for name in FED} == {threads // 2}
            assert others["measure_latency"] == (threads // 2 if given else 3) + 1
            assert (others["predict_queries"], others["search_index"]) == (threads, 3)  # FAISS searches on processors
    finally:
        (clone.root / "config/nano.yaml").write_text(text)


def test_tables_and_questions_run_beside_snakemake(workflow: Any) -> None:
    assert workflow._localrules >= ASKING | PRODUCTS


def test_scores_and_negatives_are_jobs_of_the_cluster_where_the_run_says_so(clone: Clone, workflow: Any) -> None:
    assert workflow._localrules >= SCORING
    clone.replace("config/nano.yaml", "execution: {", "execution: {local_scores: false, ")
    assert not parsed(clone)._localrules & SCORING


def test_the_rules_are_shell_commands_of_the_repository_s_programs(rules: dict[str, Any]) -> None:
    for name, rule in made_by(rules).items():
        command = rule.shellcmd.removeprefix(LARGE_PAGES)
        program, words = "workflow/scripts/make.py", f"workflow/scripts/make.py {name}"
        if name in PRODUCTS:
            program = words = "workflow/scripts/make_product.py"
            assert rule.input.program == program
            assert rule.resources["product"]._value == name
            command = command.replace("{input.program:q} {resources.product}", program)
        assert command.startswith(f"python workflow/job.py {words} "), name
        assert Path(REPOSITORY, program).is_file()


def test_every_stage_has_a_rule_of_its_name_with_its_inputs(
    rules: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    making = {name: rule for name, rule in rules.items() if "/make.py " in (rule.shellcmd or "")}
    assert sorted(making) == stages.names()
    for name, rule in making.items():
        inputs = set(unpacked_inputs(rule, monkeypatch)) | set(rule.input.keys())
        roles = {each for each in inputs if not each.endswith("_file")}
        assert roles == set(stages.load(name).roles.model_fields), name


def unpacked_inputs(rule: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of inputs that functions of a rule give."""
    functions = [item._file.callable for item in rule.input if is_flagged(item, "unpack")]
    for each in functions:
        monkeypatch.setitem(each.__globals__, "artifact_in", lambda *_: SimpleNamespace(inputs={}))
    return [name for each in functions for name in each(None)]


def test_shell_commands_name_only_what_their_rule_has(rules: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake itself says so only when the job runs."""
    for name, rule in rules.items():
        known = {kind: set(getattr(rule, kind).keys()) for kind in ("input", "output", "params", "log", "resources")}
        known["wildcards"] = set(rule.wildcard_names)
        known["input"].update(unpacked_inputs(rule, monkeypatch))
        for kind, field in re.findall(r"\{(\w+)\.(\w+)", rule.shellcmd or ""):
            assert kind == "EXECUTION" or field in known[kind], (name, kind, field)


def test_only_rules_of_fetching_touch_the_network(workflow: Any, rules: dict[str, Any]) -> None:
    """Their stages alone download, and they run where Snakemake runs: on a cluster, its login node."""
    fetching = {name for name in made_by(rules) if name.startswith("fetch_")}
    assert fetching == {"fetch_source", "fetch_ir_datasets", "fetch_checkpoint"}
    assert workflow._localrules >= fetching
    texts = {path.stem: path.read_text() for path in Path(REPOSITORY, "src/encore/stages").glob("*.py")}
    downloading = {
        name for name, text in texts.items() if "encore.datasets.download." in text and " import fetch" in text
    }
    assert downloading == fetching
