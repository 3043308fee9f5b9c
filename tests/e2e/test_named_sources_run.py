"""From entries of sources.yaml to trained models: titles, official triples of both kinds, scores, hard negatives."""

import gzip
import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import yaml

from tests.support.clones import NANO, Clone

QUERIES, PASSAGES = range(1000, 1060), range(300)
RUN = ("--profile", "local", "--configfile", "config/published.yaml")
LINEAGES = ["bert-base+marco-bm25", "bert-base-tct+colbert", "bert-base-tct+colbert+kd-t2", "bert-base+bow-beir"]


def text(number: int) -> str:
    return f"passage number {number} is about list, sort and the {number * 7}th file"


def collection(folder: Path) -> dict[str, Any]:
    """A collection in BEIR's layout with MS MARCO's kind of ids; query 1000 + i asks for passage i."""
    (folder / "qrels").mkdir(parents=True)
    passages = [json.dumps({"_id": str(i), "title": "", "text": text(i)}) for i in PASSAGES]
    queries = [json.dumps({"_id": str(i), "text": f"what is in passage {i - 1000}"}) for i in QUERIES]
    (folder / "corpus.jsonl").write_text("\n".join(passages) + "\n")
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n")
    for split, part in (("train", QUERIES[:40]), ("valid", QUERIES[40:50]), ("test", QUERIES[50:])):
        lines = "".join(f"{query}\t{query - 1000}\t1\n" for query in part)
        (folder / f"qrels/{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    measures = {"RR@10": "RR@10", "R@100": "R@100", "R@1000": "R@1000"}
    splits = {"train": {"role": "train"}, "valid": {"role": "valid", "measures": {"RR@10": "RR@10"}}}
    splits["test"] = {"role": "test", "measures": measures}
    return {"kind": "beir", "path": str(folder), "splits": splits, "absent": {"graded": "no grades"}}


def sources(folder: Path) -> dict[str, list[tuple[str, bytes, str]]]:
    """Files as they are published: (name, content, how it is packed) for each source."""
    triples = [(q, q - 1000, p) for q in QUERIES[:40] for p in range(100, 130)]
    titles = "".join(f"{i}\tpage {i // 3}\n" for i in PASSAGES).encode()
    with io.BytesIO() as packed:
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            member = tarfile.TarInfo("marco/para.title.txt")
            member.size = len(titles)
            tar.addfile(member, io.BytesIO(titles))
        archive = packed.getvalue()
    texts = "".join(f"what is in passage {p}\t{text(p)}\t{text(n)}\n" for _, p, n in triples)
    by_ids = gzip.compress("".join(f"{q}\t{p}\t{n}\r\n" for q, p, n in triples).encode())
    scores = "".join(f"{9 + p / 100}\t{-(n % 7)}\t{q}\t{p}\t{n}\n" for q, p, n in triples)
    hard = [{"qid": q, "pos": [q - 1000], "neg": {"bm25": [200, 201], "tas_b": [201, 202]}} for q in QUERIES[:40]]
    pairs = {q: {q - 1000: 9.0, 200: 1.0, 201: 2.0, 202: 8.0} for q in QUERIES[:40]}
    return {
        "msmarco-titles": [("marco.tar.gz", archive, "tar")],
        "msmarco-triples-full": [("qidpidtriples.train.full.2.tsv.gz", by_ids, "none")],
        "msmarco-triples-small": [("triples.train.small.tsv", texts.encode(), "none")],
        "msmarco-teacher-t2": [("bert_cat_ensemble_msmarcopassage_train_scores_ids.tsv", scores.encode(), "none")],
        "msmarco-hard-negatives": [
            ("msmarco-hard-negatives.jsonl.gz", gzip.compress("\n".join(map(json.dumps, hard)).encode()), "none"),
            ("cross-encoder-scores.pkl.gz", gzip.compress(pickle.dumps(pairs)), "none"),
        ],
    }


def publish(clone: Clone, folder: Path) -> None:
    """Let sources.yaml name files of this machine."""
    path = clone.root / "config/sources.yaml"
    known = yaml.safe_load(path.read_text())
    folder.mkdir()
    for name, files in sources(folder).items():
        known[name]["files"] = []
        for file, content, unpack in files:
            (folder / file).write_bytes(content)
            known[name]["files"].append({"url": (folder / file).as_uri(), "unpack": unpack})
    path.write_text(yaml.safe_dump(known))


def test_models_are_trained_on_what_sources_publish(clone: Clone, tmp_path: Path) -> None:
    publish(clone, tmp_path / "published")
    run = yaml.safe_load((clone.root / NANO[-1]).read_text())
    scale, own = run["scale"], collection(tmp_path / "own")
    splits = own["splits"]
    run["datasets"] = {
        "own": own,
        "own-titled": {"kind": "with-titles", "of": "own", "titles": "msmarco-titles", "splits": splits},
    }
    scale["datasets"] |= {"msmarco-passage": "own", "msmarco-passage-titles": "own-titled"}
    scale["finetune"] = {**{k: v for k, v in scale["finetune"].items() if k != "triples"}, "queries": None}
    del scale["steps"]["{kd-t2,margin-mse}"]  # the published scores, as the catalogue has it
    scale["steps"]["bow-beir"] = {"epochs": 1, "steps_per_epoch": 5, "least_negatives": 2}
    run |= {"tables": {}, "lineages": []}
    (clone.root / RUN[-1]).write_text(yaml.safe_dump(run))

    asked = [clone.encore("targets", lineage, "--config", RUN[-1]).succeeded().split() for lineage in LINEAGES]
    models = [path for paths in asked for path in paths if path.startswith("results/models/")]
    assert len(models) == len(LINEAGES)
    clone.snakemake(*models, *RUN).succeeded()
    found = {
        path.parent.name[:-9] + " " + path.parents[1].name.partition("-")[0]: json.loads(path.read_text())
        for path in (clone.root / "results/negatives").glob("*/*/statistics.json")
    }
    counts = {name: (each["queries"], each["kept"], each["unknown"]) for name, each in found.items()}
    assert counts == {
        "own-titled.train triples": (40, 200, 0),
        "own.train triples": (40, 200, 0),
        "own.train systems": (40, 80, 0),
    }
    (teacher_outputs,) = (clone.root / "results/teachers/published").iterdir()
    assert json.loads((teacher_outputs / "manifest.json").read_text())["results"] == {
        "files": 1,
        "triples": 1200,
        "pairs": 1240,
    }
    assert "Nothing to be done" in clone.snakemake(*models, *RUN).succeeded()
