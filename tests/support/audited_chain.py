"""Two rows over a chain of four artifacts, finished: what the audit's tests damage."""

import json
import os
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

from encore.commands.audit import audit
from encore.plan.artifact import Artifact
from encore.products.kinds import BY_RULE
from encore.storage import manifest
from encore.storage.files import digest, write_json, write_text


def named(stage, stem, spec, inputs):
    """As plans name folders."""
    return Artifact(stage, f"results/{stem}-{digest(spec)}", spec, inputs)


A = named("tokens", "tokens/a", {"impl": 1}, {})
B = named("start", "models/b-s0", {"impl": 1, "tokens": "a"}, {"tokens": A})
C = named("encode", "indexes/c", {"impl": 1}, {"model": B})
OTHER = named("start", "models/other-s0", {"impl": 1}, {"tokens": A})
ROWS = [("BoW", C), ("MLM", OTHER)]


class FakePlan:
    """Two rows over four artifacts."""

    config = SimpleNamespace(
        tables={"table1": "all"}, figures=[], claims="all", execution=SimpleNamespace(keep_vectors=True)
    )

    @property
    def made(self):
        return {artifact.folder: artifact for artifact in (A, B, C, OTHER)}

    def find(self, folder):
        return self.made[folder]


def declared(plan):
    cells = [(label, {"rr": {"reads": [{"folder": artifact.folder}]}}) for label, artifact in ROWS]
    rows = [{"id": label, "label": label, "setting": "s", "cells": found} for label, found in cells]
    about = {
        "name": "table1",
        "paper": "encore",
        "title": "A table",
        "columns": [{"id": "rr", "label": "RR", "source": "pairs"}],
    }
    return {"table1": about | {"rows": rows}}


def finish():
    """The fake plan, with its run finished in this folder, table included."""
    for artifact in (A, B, C, OTHER):
        with manifest.record(
            Path(artifact.folder),
            stage=artifact.stage,
            spec=artifact.spec,
            inputs=[Path(i.folder) for i in artifact.inputs.values()],
        ):
            write_text(Path(artifact.folder) / "file", artifact.folder)
    write_product(Path("results/tables/table1"), "table", declared(None)["table1"], [each for _, each in ROWS])
    return FakePlan()


def write_product(stem, rule, content, read):
    """A product's files with a manifest, as its rule writes them."""
    for ending in BY_RULE[rule].endings:
        write_text(stem.with_suffix(f".{ending}"), json.dumps(["cells", 0.5, {"text": "x"}]))
    files = [stem.with_suffix(f".{ending}") for ending in BY_RULE[rule].endings]
    record = {
        "stage": rule,
        "code": BY_RULE[rule].code,
        "spec": content,
        "results": {"matplotlib": version("matplotlib")} if "svg" in BY_RULE[rule].endings else {},
        "inputs": {each.manifest: manifest.describe(Path(each.manifest)) for each in read},
        "outputs": {path.name: manifest.describe(path) for path in files},
    }
    write_json(stem.with_suffix(".manifest.json"), record)


def tamper(path):
    """Change a byte, keep size and time of modification."""
    path, stat = Path(path), Path(path).stat()
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def pruned(plan, run=""):
    """What pruning removes."""
    places = audit.to_prune(plan, audit.audit(plan, run))
    audit.prune(places)
    return places
