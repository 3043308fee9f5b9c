"""An audit of a whole table over made-up passages: BM25 and an encoder, from raw text to scores; see README.md."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from encore.storage.program import run

from harness import figures, machine, record, usage

from encore.storage.files import open_text
from encore.storage.manifest import MANIFEST, read_manifest

ROOT = Path(__file__).parents[1]
LINKED = ("workflow", "profiles", "local", "src", "tools")
RUN, TABLE = "config/made-up.yaml", "results/tables/published.csv"
WIDTH, DIMENSION, PIECES, LEARNED_FROM = 64, 768, 30_522, 100_000
COMMANDS = (["audit"], ["audit", "--deep"])


def main() -> None:
    options = _options()
    before = machine.load()
    folder = options.work.resolve()
    if not (folder / TABLE).exists():
        make_table(folder, options.passages)
    rows = [audited(folder, words) for words in COMMANDS]
    contents = {"setting": {"passages": options.passages, "dimension": DIMENSION}, "rows": rows}
    record.write(options.output, options.name, contents, before)
    print("\n".join(record.table(rows)))


def make_table(folder: Path, passages: int) -> None:
    """Make all that a table of BM25 and a published encoder needs, as a user would: two commands."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in LINKED:
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "config", folder / "config", dirs_exist_ok=True)
    python, texts = [sys.executable, "-m"], folder / "texts"
    if not (texts / "qrels/dev.tsv").exists():
        written = ["tools.synthetic_msmarco", "texts", "--passages", str(passages)]
        usage.measured([*python, *written], folder, folder / "texts.log")
    write_encoder(folder / "models/tiny", texts)
    new = ["new", "made-up", "--beir", "texts", "--zero-shot", "--checkpoint", "./models/tiny"]
    usage.measured([*python, "encore.commands", *new], folder, folder / "new.log")
    made = ["snakemake", TABLE, "--profile", "local", "--configfile", RUN]
    usage.measured([*python, *made], folder, folder / "snakemake.log")


def write_encoder(place: Path, texts: Path) -> None:
    """A BERT of one narrow layer, drawn at random, whose head makes its vectors as wide as BERT-base's."""
    import torch
    from safetensors.torch import save_file
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel

    (place / "1_Pooling").mkdir(parents=True, exist_ok=True)
    (place / "2_Dense").mkdir(exist_ok=True)
    tokenizer = BertWordPieceTokenizer()
    tokenizer.train_from_iterator(_first(texts, LEARNED_FROM), vocab_size=PIECES)
    tokenizer.save_model(str(place))
    tokenizer.save(str(place / "tokenizer.json"))
    torch.manual_seed(0)
    shape = {"hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_attention_heads": 1, "num_hidden_layers": 1}
    BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size(), **shape)).save_pretrained(place)
    save_file({"linear.weight": torch.randn(DIMENSION, WIDTH) / WIDTH**0.5}, place / "2_Dense/model.safetensors")
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense")]
    written: dict[str, Any] = {
        "modules.json": [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for number, (kind, path) in enumerate(modules)
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True},
        "2_Dense/config.json": {
            "in_features": WIDTH,
            "out_features": DIMENSION,
            "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity",
        },
        "sentence_bert_config.json": {"max_seq_length": 128, "do_lower_case": True},
        "config_sentence_transformers.json": {"similarity_fn_name": "dot", "prompts": {}},
        "tokenizer_config.json": {"do_lower_case": True, "model_max_length": 512, "tokenizer_class": "BertTokenizer"},
    }
    for name, content in written.items():
        (place / name).write_text(json.dumps(content))


def audited(folder: Path, words: list[str]) -> dict[str, Any]:
    """What ``encore audit`` takes, and what it says of its time before it reads, if that is long."""
    log = folder / f"{'-'.join(words).replace('---', '-')}.log"
    took = usage.measured([sys.executable, "-m", "encore.commands", *words, "--config", RUN], folder, log)
    said = [line.partition(": ")[2] for line in log.read_text().splitlines() if " are read; " in line]
    size = {"command": " ".join(["encore", *words]), "gigabytes": figures.rounded(kept(folder) / 1e9)}
    return {**size, **took, "says_before": said[0] if said else ""}


def kept(folder: Path) -> int:
    """Bytes of all artifacts by their manifests."""
    manifests = (folder / "results").rglob(f"*/{MANIFEST}")
    return sum(each["bytes"] for path in manifests for each in read_manifest(path.parent)["outputs"].values())


def _first(texts: Path, count: int) -> Iterator[str]:
    with open_text(texts / "corpus.jsonl.gz") as file:
        yield from (json.loads(line)["text"] for line in islice(file, count))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=3000)
    parser.add_argument("--work", type=Path, required=True, help="folder, kept: 4 KB a passage; a table there is used")
    record.add_flags(parser, "audit")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)
