"""The typed configuration of a run: data, scale, numerics, execution, limits.

These are the models; reading files and explaining mistakes is ``run_file.py``. Nothing here imports torch, since the
workflow is parsed twice for every SLURM job.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from encore.config.validation import DATASET, Positive, Strict, refuse_odd_name
from encore.errors import EncoreError
from encore.storage.typed import DEFAULT_RUN, called

LARGEST_SEED = 2**32 - 1  # that every generator of random numbers takes
ProxyData = bool | Literal["own"]
MOST_SHARDS = 10_000  # each is a job
DEEPEST = 1_000_000  # ranks


class KnownNumber(Strict):
    """A published score. Of a run's ``checks``."""

    system: str = Field(description="a system (`bm25`), or a lineage, such as a published model as it is")
    dataset: str
    split: str = "test"
    measure: str = Field(description="by the name that the split gives it")
    published: float = Field(description="the score, as a share of 1")
    within: float = Field(gt=0, description="how far ours may be from it, above or below")
    source: str = Field(description="where it is published")


class Numerics(Strict):
    """Arithmetic that can change a result: part of every model's identity."""

    precision: Literal["fp32", "tf32", "bf16"] = Field(
        "fp32",
        description="What models compute in: tf32 and bf16 are faster on GPUs from A100 on; tf32 rounds the factors of "
        "products in fp32 to 10 bits. Exact search multiplies in fp32 all the same.",
    )
    deterministic: bool = Field(
        False,
        description="Whether a training on a GPU that is repeated there ends with the same bytes, in more time; on "
        "processors it does anyway.",
    )
    compiled: bool = Field(
        False,
        description="Whether torch compiles a model's layers in trainings of 2,000 steps and more; last bits differ. "
        "It takes a minute first, and a C compiler on the machine that trains. Its gain is not measured.",
    )
    threads: Positive = Field(
        1, description="The CPU threads of a process; with one, results have equal bytes on processors of one kind."
    )
    micro_batch: Positive | None = Field(
        None,
        description="The examples that go through the models at once, where memory is short; without it, "
        "the whole batch.",
    )
    vectors: Literal["fp32", "fp16"] = Field(
        "fp32",
        description="How the vectors of passages are stored; fp16 takes half the disk, and products are in fp32.",
    )


class Scale(Strict):
    """How the papers' experiments are scaled to this run; empty at the papers' own scale.

    Keys of ``absent`` and of single entries may match several names (``groups.py``).
    """

    backbones: dict[str, str] = Field(
        {}, description="Backbones of the papers, each with the backbone that replaces it in this run."
    )
    datasets: dict[str, str] = Field(
        {}, description="Datasets of the papers, each with the dataset that replaces it in this run."
    )
    absent: dict[str, str] = Field(
        {},
        description="Datasets and backbones of the papers that nothing replaces, with the reason; their "
        "columns, or the cells of what starts from them, stay empty. So do those of a dataset that is to be obtained "
        "and that a scale with `datasets` does not name.",
    )
    doc2query: dict[str, str] = Field(
        {}, description="Document expansions of the papers, each with the one that replaces it in this run."
    )
    vocabulary: Positive | None = Field(
        None,
        description="Pieces of every new vocabulary, whatever its backbone says: some languages have more characters.",
    )
    replace_prefix: dict[str, str] = Field(
        {},
        description="Prefixes of lineages, each with the prefix that replaces it, such as a released "
        "encoder instead of pre-training.",
    )
    pretrain: dict[str, Any] = Field({}, description="Fields that replace those of every pre-training step.")
    finetune: dict[str, Any] = Field({}, description="Fields that replace those of every fine-tuning step.")
    steps: dict[str, dict[str, Any]] = Field(
        {},
        description="Fields that replace those of single steps, after those of its kind, by step or by several of "
        "them: `{ae,ar}`, `costa-no-*`.",
    )
    systems: dict[str, dict[str, Any]] = Field(
        {}, description="Fields that replace those of single systems, by system."
    )
    indexes: dict[str, dict[str, Any]] = Field(
        {}, description="Fields that replace those of single index types, by type, for a smaller collection."
    )
    figures: dict[str, dict[str, Any]] = Field(
        {}, description="Fields that replace those of single figures, by figure."
    )


class Latency(Strict):
    """How the time of single queries is measured; part of the digests of measurements only."""

    queries: Positive = Field(200, description="The queries of a split that are timed, one after another.")
    warm_up: Positive = Field(100, description="The queries that are answered before the first one is timed.")


class Execution(Strict):
    """How a run is carried out; never part of a name or a digest."""

    shards: Positive | dict[str, Positive] = Field(
        1,
        description="The number of shards that a collection is encoded in: one number for all, or by "
        "dataset, with one shard for the others.",
    )
    search_by_shard: bool = Field(
        False,
        description="Whether an exact search of several shards is a job for each of them and one that merges what they "
        "found, to the same bytes; otherwise one job reads all shards.",
    )
    processes: Positive = Field(
        1,
        description="The most processes of a training, one per GPU, started by torchrun; also of a job that predicts "
        "queries or reads attention.",
    )
    min_examples_per_process: Positive = Field(
        1,
        description="The fewest examples of a batch for each of them: a small batch, which many GPUs "
        "would share for little, gets fewer.",
    )
    workers: int = Field(
        0,
        ge=0,
        le=64,
        description="The processes that make batches for each process of a training, at least one for each GPU; with "
        "0 a training on processors makes them itself.",
    )
    preprocessing_cores: Positive = Field(
        2,
        description="The cores of a job that parses a dump, tokenises or draws word sets, one for each process "
        "that shares the texts.",
    )
    keep_vectors: bool = Field(
        True,
        description="Whether passages' vectors stay on the disk when all runs that are planned of them are made; "
        "otherwise a later run encodes them again.",
    )
    checkpoint_seconds: Positive = Field(120, description="The seconds between two checkpoints of a training.")
    java_memory_mb: Positive = Field(1024, description="The heap of Lucene's Java process in megabytes.")
    local_scores: bool = Field(
        True,
        description="Whether scores and negatives are made where Snakemake runs; otherwise they are jobs of the "
        "cluster, since those of a large collection take gigabytes.",
    )
    fork_jobs: bool = Field(
        True, description="Whether jobs of a run on one machine are forks of a process that has imported torch."
    )
    data_root: str = Field(
        "data", min_length=1, description="The folder of downloaded files, which may also be put there by hand."
    )

    @field_validator("shards")
    @classmethod
    def _can_be_planned(cls, shards: int | dict[str, int]) -> int | dict[str, int]:
        if max([shards] if isinstance(shards, int) else [0, *shards.values()]) > MOST_SHARDS:
            raise ValueError(f"more than {MOST_SHARDS} parts, each of which is a job, cannot be planned; take fewer")
        return shards

    def processes_of(self, batch: int) -> int:
        """Processes of a training with batches of so many examples."""
        return max(1, min(self.processes, batch // self.min_examples_per_process))

    def shards_of(self, dataset: str) -> int:
        """Parts that the collection of a dataset is encoded in."""
        return self.shards.get(dataset, 1) if isinstance(self.shards, dict) else self.shards


class Limits(Strict):
    """Upper limits of what a run may need: `encore preflight` refuses a run that needs more; part of no digest."""

    download_gb: float | None = Field(None, gt=0, description="The most gigabytes to download.")
    disk_gb: float | None = Field(
        None, gt=0, description="The most gigabytes of disk at the peak, beyond what is in use already."
    )
    gpu_hours: float | None = Field(None, gt=0, description="The most hours of all jobs on GPUs together.")
    gpu_memory_gb: float | None = Field(
        None, gt=0, description="The most gigabytes of GPU memory of one job, on each GPU."
    )
    ram_gb: float | None = Field(None, gt=0, description="The most gigabytes of main memory of one job.")


def _need_what_is_not_inherited(schema: dict[str, Any]) -> None:
    """Tell editors that a run's file has all keys that are required, or extends another one."""
    schema["anyOf"] = [{"required": ["extends"]}, {"required": schema.pop("required")}]


class RunConfig(Strict):
    """The configuration of a run: complete in one file, or a few keys over one that it extends (``run_file.py``)."""

    model_config = ConfigDict(json_schema_extra=_need_what_is_not_inherited)

    extends: None = Field(
        None,
        exclude=True,
        json_schema_extra={"type": "string"},
        description="Another run's file, from the repository's root, whose keys this file replaces whole, those of "
        "`scale` one by one; with `tables` it names its own figures and lineages too. That one extends none itself.",
    )
    schema_version: Literal[1] = Field(description="The version of this schema.")
    title: str = Field(description="The title of the run, shown in its report.")
    seeds: list[int] = Field(
        min_length=1, description="The seeds that every model is trained under: different, and not negative."
    )
    tables: dict[str, list[str] | Literal["all"]] = Field(
        description="The tables to build, each with the ids of its rows or `all`."
    )
    proxy_data: ProxyData = Field(
        description="Whether the data replace the papers' own; verdicts then say `holds here`, never `reproduced`. "
        "`own`: they are yours, and no paper is about them."
    )
    depth: Positive = Field(1000, description="The ranks of every reported run.")
    scale: Scale = Scale()
    datasets: dict[str, dict[str, Any]] = Field({}, description="Datasets of your own, in the form of datasets.yaml.")
    backbones: dict[str, dict[str, Any]] = Field(
        {}, description="Backbones of your own, in the form of backbones.yaml."
    )
    sources: dict[str, dict[str, Any]] = Field(
        {}, description="Files of your own to fetch, in the form of sources.yaml."
    )
    systems: dict[str, dict[str, Any]] = Field(
        {},
        description="Systems of your own, in the form of systems.yaml, such as a run that others made (`kind: run`); "
        "`tables` may name them as rows.",
    )
    lineages: list[str] = Field([], description="Lineages to train and evaluate in addition to those of the tables.")
    latency: Latency = Latency()
    records: dict[str, str] = Field(
        {
            "pretraining": "benchmarks/results/cpu-2core-base-512.json",
            "distillation": "benchmarks/results/distillation-cpu-2core.json",
        },
        description="Records of costs that benchmarks/ measured and columns of tables show, by name; they "
        "are part of no digest.",
    )
    checks: list[KnownNumber] = Field(
        [], description="Published scores that systems of this run have to reach; `snakemake checks` compares them."
    )
    figures: list[str] = Field(
        [], description="Figures of the papers and of our own to draw in addition to those of the tables."
    )
    claims: Literal["all"] | list[str] = Field(
        "all",
        description="The claims that `results/claims.csv` judges on runs: all but those of a paper whose "
        "`paper.yaml` says `claims: named`, or those with these ids, for which only the cells and points are made "
        "that they are about.",
    )
    numerics: Numerics = Numerics()
    execution: Execution = Execution()
    limits: Limits = Limits()
    _file: str = PrivateAttr("")  # that it was read from, for messages

    @property
    def file(self) -> Path:
        """The file that it was read from, or the default run's."""
        return Path(self._file) if self._file else DEFAULT_RUN

    @property
    def called(self) -> str:
        """The file as commands name it; empty for the default run's."""
        return called(self.file)

    def at(self, place: str) -> str:
        """A place in the run, behind its file."""
        return f"{self._file}: {place}" if self._file else place

    @field_validator("tables")
    @classmethod
    def _name_rows(cls, tables: dict[str, list[str] | Literal["all"]]) -> dict[str, list[str] | Literal["all"]]:
        if empty := [name for name, rows in tables.items() if not rows]:
            raise ValueError(f"{empty[0]} has no rows; name some, write `all`, or leave the table out")
        return tables

    @field_validator("datasets")
    @classmethod
    def _name_what_can_be_a_folder(cls, datasets: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name in datasets:
            try:
                refuse_odd_name(name, "a dataset", DATASET)
            except EncoreError as error:
                raise ValueError(str(error)) from error
        return datasets

    @model_validator(mode="after")
    def _name_each_seed_once(self) -> "RunConfig":
        if len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0 or max(self.seeds) > LARGEST_SEED:
            raise ValueError(f"seeds must be different, not negative, and {LARGEST_SEED} at most")
        if self.depth > DEEPEST:
            raise ValueError(f"depth: {self.depth} ranks are more than {DEEPEST}; take fewer")
        return self
