"""`encore new --checkpoint`: a published encoder becomes a backbone and rows of the table."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from encore.commands.show_config import config_text
from encore.config import checkpoints
from encore.errors import EncoreError
from encore.plan.lineage import StepName
from encore.products.tables.plan import table_plan
from encore.storage.files import sha256
from tests.support import inside
from tests.support.own_folder import encoder, folder, judged, new, planned, refused
from tests.support.small_adapters import adapter
from tests.support.small_hub import COMMIT, Hub
from tests.support.small_published import of_sentence_transformers

ROOT = Path(__file__).parents[3]


def test_a_published_encoder_can_stand_in_the_place_of_a_pre_training(bare: Path) -> None:
    """The lines that docs/own-collection.md adds under `scale:`."""
    folder({"test": judged(0, 100)})
    new("own", "--beir", "data/own", "--zero-shot")
    page = (ROOT / "docs/own-collection.md").read_text()
    (added,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, re.S) if "replace_prefix" in block)
    text = Path("config/own.yaml").read_text()
    Path("config/own.yaml").write_text(text.replace("scale:\n", added))
    plan, jobs = planned("config/own.yaml")
    assert jobs["fetch_checkpoint"] == 1
    (model,) = (name for name in plan.made if name.startswith("results/models/costa-released+marco-bm25-"))
    assert plan.made[model].inputs["weights"].name.startswith("costa-released-s0-")


def test_a_published_encoder_is_a_row_beside_bm25_and_nothing_is_trained(bare: Path) -> None:
    folder({"test": judged(0, 100)})
    place = encoder()
    printed = new("own", "--beir", "data/own", "--zero-shot", "--checkpoint", "models/theirs")
    assert "2 layers of 16, pooling mean, similarity cosine, length 128, prompt 'query: '." in printed
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert run["tables"] == {"published": ["As it is: bm25", "As it is: as-it-is"]}
    assert run["backbones"]["own-encoder"].keys() == {"start", "checkpoint", "sha256"}
    assert run["backbones"]["own-encoder"]["checkpoint"] == "./models/theirs"
    plan, jobs = planned("config/own.yaml")
    assert (jobs["start"], jobs["encode"], jobs["evaluate"]) == (1, 1, 2)
    assert not {"pretrain", "finetune", "fetch_checkpoint"} & jobs.keys()
    (start,) = (made for made in plan.made.values() if made.stage == "start")
    assert (start.source, start.spec["backbone"]["pooling"]) == ("models/theirs", "mean")
    (place / "tokenizer.json").write_text('{"changed": 1}')
    with pytest.raises(EncoreError, match=r"tokenizer\.json has the sha256"):
        planned("config/own.yaml")


@pytest.mark.parametrize("named", [False, True])
def test_a_similarity_that_the_encoder_does_not_name_is_said_everywhere(named: bool, bare: Path) -> None:
    folder({"test": judged(0, 100)})
    of_sentence_transformers(encoder(), normalize=False, length=128)
    printed = new("own", "--beir", "data/own", "--zero-shot", "--checkpoint", "models/theirs")
    assert "similarity cosine, length 128; it names no similarity, so cosine as in sentence-transformers" in printed
    path = Path("config/own.yaml")
    if named:
        path.write_text(path.read_text().replace("    start: checkpoint", "    start: checkpoint\n    similarity: dot"))
    plan, _ = planned("config/own.yaml")
    (line,) = (line for line in config_text(plan, "own-encoder").splitlines() if line.startswith("  similarity"))
    notes = [note for note in table_plan(plan, "published").notes if "names no similarity" in note]
    if named:
        assert (line.split()[1:3], notes) == (["dot", "config/own.yaml:"], [])
    else:
        assert "cosine" in line
        assert "modules.json (no similarity is named, and sentence-transformers' default is cosine)" in line
        assert notes[0].startswith("own-encoder: the published encoder names no similarity; its vectors are compared")


def test_the_help_tells_of_an_encoder_with_and_without_training() -> None:
    told = " ".join(inside.encore("new", "--help").stdout.split())
    assert "--zero-shot only test: --checkpoint as it is, or models that the other run trains" in told
    assert "a published encoder to test as it is and, without --zero-shot, to fine-tune and pre-train from" in told


def test_an_archive_becomes_a_source_with_its_digest_and_needs_no_members(bare: Path) -> None:
    folder({"test": judged(0, 100)})
    encoder()
    archive = Path(shutil.make_archive("theirs", "zip", "models"))
    said = ["own", "--beir", "data/own", "--zero-shot", "--checkpoint", "theirs.zip", "--sha256"]
    assert "theirs.zip has the sha256:" in refused(*said, "0" * 64)
    new(*said, sha256(archive))
    run = yaml.safe_load(Path("config/own.yaml").read_text())
    assert run["sources"]["own-encoder"]["files"][0]["digest"] == f"sha256:{sha256(archive)}"
    fields = run["backbones"]["own-encoder"]
    assert (fields["checkpoint"], fields["hidden"], fields["query_marker"]) == ("own-encoder", 16, "query: ")
    plan, jobs = planned("config/own.yaml")
    assert jobs["fetch_source"] == 1
    (fetched,) = (made for made in plan.made.values() if made.stage == "fetch_source")
    inside.made(fetched.stage, fetched.spec, {}, fetched.folder, details=fetched.details)
    assert checkpoints.inside(Path(fetched.folder)).name == "theirs"


@pytest.mark.parametrize("mine", [False, True])
def test_a_commit_of_the_hub_is_pinned_and_its_files_come_once(
    mine: bool, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files that the user has put there nobody knows the commit."""
    folder({"test": judged(0, 100)})
    place = encoder()
    Path("theirs").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copy(place / name, "theirs")
    hub = Hub(Path("theirs"))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    if mine:
        shutil.copytree("theirs", "data/checkpoints/someone--theirs")
    new("own", "--beir", "data/own", "--zero-shot", "--checkpoint", "someone/theirs")
    fields = yaml.safe_load(Path("config/own.yaml").read_text())["backbones"]["own-encoder"]
    assert fields.get("revision") == (None if mine else COMMIT)
    plan, _ = planned("config/own.yaml")
    (fetched,) = (made for made in plan.made.values() if made.stage == "fetch_checkpoint")
    asked = len(hub.requests)
    inside.made(fetched.stage, fetched.spec, {}, fetched.folder)
    assert len(hub.requests) == asked
    hub.close()


@pytest.mark.parametrize("fetched", [False, True])
def test_an_adapter_is_a_row_with_its_base_and_both_are_pinned(
    fetched: bool, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own, of a base that is a folder too or that is fetched."""
    folder({"test": judged(0, 100)})
    place = encoder("models/base")
    hub = Hub(Path("theirs"))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    Path("theirs").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copy(place / name, "theirs")
    adapter(Path("models/own"), "someone/base" if fetched else "models/base", {"query": (16, 16)})
    new("own", "--beir", "data/own", "--zero-shot", "--checkpoint", "models/own")
    hub.close()
    fields = yaml.safe_load(Path("config/own.yaml").read_text())["backbones"]["own-encoder"]
    assert (fields["checkpoint"], fields["hidden"]) == ("./models/own", 16)
    assert fields.get("pooling") == (None if fetched else "mean"), "which modules.json says"
    weights = {"model.safetensors": place, "encore-adapter/adapter_model.safetensors": Path("models/own")}
    digests = {name: sha256(each / Path(name).name) for name, each in weights.items()}
    assert digests.items() <= fields["sha256"].items()
    plan, jobs = planned("config/own.yaml")
    assert jobs["fetch_checkpoint"] == fetched
    (note,) = (note for note in table_plan(plan, "published").notes if note.startswith("The encoder is own"))
    assert all(digest in note for digest in digests.values())


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (None, ["bm25", "as-it-is", "none", "control", "mlm", "ict", "bow", "costa"]),
        ("roberta", ["bm25", "as-it-is", "none"]),
    ],
)
def test_rows_are_trained_from_it_with_rates_that_validation_chooses(
    bare: Path, kind: str | None, rows: list[str]
) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    encoder(kind=kind)
    new("own", "--beir", "data/own", "--checkpoint", "models/theirs")
    assert yaml.safe_load(Path("config/own.yaml").read_text())["tables"] == {"published": rows}
    plan, jobs = planned("config/own.yaml")
    assert jobs["finetune"] >= 1
    step = plan.resolve.step(StepName("marco-bm25"))
    assert (step.length, step.query_length) == (128, 128)
    assert step.learning_rates == (1e-5, 3e-5, 1e-4)
    assert plan.resolve.step(StepName("marco-hn")).learning_rates == ()


@pytest.mark.parametrize("packed", [False, True])
def test_what_was_encoded_zero_shot_is_not_encoded_again(bare: Path, packed: bool) -> None:
    """A collection is its texts and all judgments that are there, whatever of them a run uses, and under any name."""
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    encoder()
    given = shutil.make_archive("theirs", "zip", "models") if packed else "models/theirs"
    said = new("first", "--beir", "data/own", "--checkpoint", given, "--zero-shot")
    assert "100 to test with" in said
    assert "Not used here: 270 queries to train on and 30 to validate with; without --zero-shot they are." in said
    said = new("second", "--beir", "data/own", "--checkpoint", given, "--rows", "none,mlm")
    assert "config/first.yaml has the same texts and encoder: what is made of them is used by both." in said
    first, _ = planned("config/first.yaml")
    second, _ = planned("config/second.yaml")
    assert first.made.keys() < second.made.keys(), "the model as it is, its vectors, runs and scores"
    assert {Path(each).name for each in second.made if "/indexes/" in each} > {"000-of-001"}
    assert yaml.safe_load(Path("config/second.yaml").read_text())["tables"] == {
        "published": ["bm25", "as-it-is", "none", "mlm"]
    }
    assert "--rows are trained, and --zero-shot with" in refused(
        "third", "--beir", "data/own", "--checkpoint", given, "--zero-shot", "--rows", "none"
    )


def test_training_queries_that_cannot_train_are_told_and_the_others_test(bare: Path) -> None:
    folder({"train": judged(0, 60), "test": judged(300, 400)})
    encoder()
    said = new("own", "--beir", "data/own", "--checkpoint", "models/theirs", "--zero-shot")
    assert "Its training queries could not train: 60 training queries are too few" in said
    splits = yaml.safe_load(Path("config/own.yaml").read_text())["datasets"]["own"]["splits"]
    assert splits.keys() == {"test"}


def test_on_your_own_collection_the_encoder_has_its_name_and_no_paper_is_named(bare: Path) -> None:
    folder({"train": judged(0, 300), "test": judged(300, 400)})
    place = encoder()
    new("own", "--beir", "data/own", "--zero-shot", "--checkpoint", "models/theirs")
    plan, _ = planned("config/own.yaml")
    layout = table_plan(plan, "published")
    assert [row.label for row in layout.rows] == ["BM25", "theirs"]
    assert [column.label for column in layout.columns] == ["nDCG@10", "RR@10", "R@100", "R@1000"]
    digest = sha256(place / "model.safetensors")
    assert f"The encoder is theirs (backbone own-encoder, sha256:{digest})." in layout.notes
    assert (layout.proxy_data, layout.untrained) == ("own", True)
    assert layout.texts[0].ignore_copies is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--checkpoint", "models/nothing/here"), "there is no models/nothing/here"),
        (("--checkpoint", "data/own/corpus.jsonl.gz"), "is damaged"),
        (("--checkpoint", "models/theirs", "--sha256", "0" * 64), "the sha256 of its weights is"),
        (("--checkpoint", ""), "--language, --checkpoint or --sha256 is empty; give it a value, or leave it out"),
        (("--language", ""), "--language, --checkpoint or --sha256 is empty"),
        (("--checkpoint", "models/theirs", "--sha256", "A" * 64), f"not {'a' * 64}"),
        (("--sha256", "0" * 64), "--sha256 is of a --checkpoint"),
    ],
)
def test_what_is_no_encoder_is_refused(bare: Path, words: tuple[str, ...], message: str) -> None:
    folder({"test": judged(0, 100)})
    encoder()
    assert message in refused("own", "--beir", "data/own", "--zero-shot", *words)
