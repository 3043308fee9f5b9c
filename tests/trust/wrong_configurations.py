"""Mistakes in a run's file, in the catalogue and in targets, by class; each is refused whatever is drawn."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.support.clones import NANO

RUN = Path(NANO[-1])
Mistake = Callable[[random.Random], str | None]  # writes files of the working folder, and gives a target or a lineage
NUMBERS = {
    "depth": (),
    "batch": ("scale", "pretrain"),
    "steps": ("scale", "pretrain"),
    "length": ("scale", "finetune"),
    "per_query": ("scale", "finetune"),
    "learning_rate": ("scale", "finetune"),
    "temperature": ("scale", "finetune"),
    "shards": ("execution",),
    "java_memory_mb": ("execution",),
    "threads": ("numerics",),
}
SYNTAX = ["title: [1\n", "title: {a: 1\n", "\ttitle: a\n", "title: a\0b\n", 'title: "a\\0b"\n', "title: *nowhere\n"]
SYNTAX += ["title: !!python/none x\n", "title: 'a\n", "title: a: b\n", "- a\n", "title: " + "[" * 5000 + "\n"]
SYNTAX += ["%YAML 9\n", "title: 2026-13-45\n"]
ODD_NAMES = ["my set", "données", "{x}", "a\nb", "../../evil", "x; touch y", "..", "-rf", "a+b", "a@b", "a=b"]
ODD_NAMES += ["n" * 99, ""]
TARGETS = ["results/tables/{}.csv", "results/figures/{}.png", "results/tables/table1.{}", "results/{}"]
TARGETS += ["results/models/{}-s0-01234567/manifest.json", "results/runs/{}-01234567/a.b-01234567/run.trec.gz"]
LINEAGES = ["bert-base+{}+marco-bm25", "{}+ict", "bert-base+ict~{}=1", "bert-base+ict~temperature={}"]
LINEAGES += ["bert-base+ict@{}", "../../etc+{}", "/etc/passwd+ict", "bert-base+../ict", "bert-base+ict;id"]
LINEAGES += ["bert-base+ict\nx", "$(id)", "bert-base++ict", "+ict", "bert-base+", "bert-base+ict~"]
LINEAGES += ["bert-base+ict~batch=1", "bert-base+ICT", "bert base", "bert-base+ict~batch=8~batch=9"]
LINEAGES += ["bert-base+ict~length=64~batch=8", "bert-base+ict~batch=08", "", "@hnsw"]
LINEAGES += [f"bert-base+ict~{wrong}" for wrong in ("length=1", "length=-5", "temperature=0", "steps=0")]
OWN = {"kind": "beir", "path": "data/mine", "splits": {"test": {"role": "test", "measures": {"RR@10": "RR@10"}}}}


def misspelt(name: str, chance: random.Random) -> str:
    """Another name: a letter more, less, twice or in another place."""
    place = chance.randrange(len(name))
    found = chance.choice(
        [
            name[:place] + name[place + 1 :],
            name[:place] + "q" + name[place:],
            name[:place] + name[place] * 2 + name[place:],
        ]
    )
    return found if found and found != name else f"{name}q"


def edited(change: Callable[[dict[str, Any], random.Random], object]) -> Mistake:
    """A mistake in what the run's file says."""

    def made(chance: random.Random) -> None:
        content = yaml.safe_load(RUN.read_text())
        change(content, chance)
        RUN.unlink()
        RUN.write_text(yaml.safe_dump(content, sort_keys=False))

    return made


def rename(mapping: dict[str, Any], chance: random.Random) -> None:
    key = chance.choice([*mapping])
    mapping[misspelt(key, chance)] = mapping.pop(key)


def a_misspelt_key(content: dict[str, Any], chance: random.Random) -> None:
    rename(chance.choice([content, content["scale"], content["execution"], content["numerics"]]), chance)


def a_misspelt_field(content: dict[str, Any], chance: random.Random) -> None:
    steps = content["scale"]["steps"]
    fields = chance.choice([steps["ict"], steps["control"], content["scale"]["finetune"], content["scale"]["pretrain"]])
    rename(fields, chance)


def another_type(content: dict[str, Any], chance: random.Random) -> None:
    key = chance.choice([*content])
    content[key] = chance.choice([[{}], {"a": []}, [[1]], {"": None}])


def a_number_beyond_reason(content: dict[str, Any], chance: random.Random) -> None:
    name = chance.choice([*NUMBERS])
    fields = content
    for part in NUMBERS[name]:
        fields = fields[part]
    fields[name] = chance.choice([0, -1, 10**30, -(10**30), float("nan"), float("inf"), 1j.imag - 5, "many", [1], True])


def an_unknown_name(content: dict[str, Any], chance: random.Random) -> None:
    scale = content["scale"]
    place = chance.choice(["row", "table", "dataset", "backbone", "step", "system", "index", "figure", "drawn"])
    if place == "row":
        content["tables"]["table1"][0] = misspelt("bm25", chance)
    elif place == "table":
        content["tables"][misspelt("table1", chance)] = ["bm25"]
    elif place in ("dataset", "backbone"):
        mapping = scale[f"{place}s"]
        key = chance.choice([*mapping])
        mapping[key] = misspelt(mapping[key], chance)
    elif place == "drawn":
        content["figures"] = [misspelt("bow/figure2", chance)]
    elif place == "step" and chance.random() < 0.2:
        scale["steps"]["{a,b}" * 30] = {}
    else:
        mapping = scale[f"{place}s" if place != "index" else "indexes"]
        plain = [key for key in mapping if not re.search(r"[*{]", key)] or ["bow/figure9"]
        key = chance.choice(plain)
        mapping[misspelt(key, chance)] = mapping.pop(key, {})


def seeds(content: dict[str, Any], chance: random.Random) -> None:
    content["seeds"] = chance.choice([[], [True], [-1], [0, 0], [2**32], ["a"], 0, None, [0.5], [[0]], {"a": 1}])


def a_dataset_of_ones_own(content: dict[str, Any], chance: random.Random) -> None:
    own = yaml.safe_load(yaml.safe_dump(OWN))
    split = own["splits"]["test"]
    chance.choice(
        [
            lambda: own.pop("kind"),
            lambda: own.update(kind=misspelt("beir", chance)),
            lambda: own.pop("path"),
            lambda: own.pop("splits"),
            lambda: own.update(splits=[]),
            lambda: own.update({misspelt("path", chance): "x"}),
            lambda: split.update(role="tset"),
            lambda: split.update(measures={}),
            lambda: split.update(measures={"RR@10": chance.choice(["RRR@10", "", "R", "RR@", "__import__('os')", 5])}),
        ]
    )()
    content["datasets"] = {"mine": own}


def an_odd_name(content: dict[str, Any], chance: random.Random) -> None:
    content["datasets"] = {chance.choice(ODD_NAMES): OWN}


def a_lineage(content: dict[str, Any], chance: random.Random) -> None:
    content["lineages"] = [chance.choice(LINEAGES).format(misspelt("costa", chance))]


def an_extension(content: dict[str, Any], chance: random.Random) -> None:
    content["extends"] = chance.choice(
        [
            misspelt("config/config.yaml", chance),
            "config",
            str(RUN),
            ["config/config.yaml"],
            "",
            5,
            "config/seeds.yaml",
            "/",
            "n" * 300,
        ]
    )


def runs_of_others(content: dict[str, Any], chance: random.Random) -> None:
    wrong = chance.choice([{"kind": "rnu"}, {"path": None}, {"url": "ftp://x/y"}, {"sha256": "abc"}, {"pth": "x"}])
    content["systems"] = {"theirs": {"kind": "run", "path": "data/none.run"} | wrong}


def a_claim(content: dict[str, Any], chance: random.Random) -> None:
    content["claims"] = [chance.choice(["C999", "c1", ""])]


def of_syntax(chance: random.Random) -> None:
    lines = RUN.read_text().splitlines(keepends=True)
    lines.insert(
        chance.choice([place for place, line in enumerate(lines) if not line.startswith(" ")]), chance.choice(SYNTAX)
    )
    RUN.unlink()
    RUN.write_text("".join(lines))


def a_key_twice(chance: random.Random) -> None:
    lines = [line for line in RUN.read_text().splitlines() if re.match(r"[a-z_]+: [^#]", line)]
    text = RUN.read_text()
    RUN.unlink()
    RUN.write_text(f"{text}\n{chance.choice(lines)}\n")


def other_bytes(chance: random.Random) -> None:
    text = RUN.read_text()
    RUN.unlink()
    RUN.write_bytes(
        chance.choice([text.encode("utf-16"), text.encode() + b"# \xe9\n", b"", b"\xff" * 9, b"- a\n", b"7\n"])
    )


def no_file(chance: random.Random) -> None:
    RUN.unlink()
    if chance.random() < 0.5:
        RUN.mkdir()


def of_the_catalogue(chance: random.Random) -> None:
    """A misspelt field, a key twice, or no YAML, in a file of the catalogue."""
    fields = {
        "systems.yaml": ("k1: 0.9", ["kl: 0.9", "k1: -1", "k1: many", "k1: 0.9, k1: 0.9"]),
        "backbones.yaml": ("pooling: mean", ["poling: mean", "pooling: maen", "pooling: [mean", "pooling: 5"]),
        "steps.yaml": (
            "objective: costa",
            ["objektive: costa", "objective: costta", "objective: [costa", "objective: 7"],
        ),
        "indexes.yaml": ("nlist:", ["nlst:", "nlist: -1 #", "nlist: [", "nlist: x #"]),
    }
    name = chance.choice([*fields])
    old, new = fields[name]
    path = Path("config") / name
    text = path.read_text()
    assert old in text, name
    path.unlink()
    path.write_text(text.replace(old, chance.choice(new), 1))


def a_target(chance: random.Random) -> str:
    name = misspelt(chance.choice(["table1", "costa", "bm25", "csv"]), chance)
    return chance.choice(TARGETS).format(name)


MISTAKES: dict[str, Mistake] = {
    "a misspelt key": edited(a_misspelt_key),
    "a misspelt field": edited(a_misspelt_field),
    "another type": edited(another_type),
    "a number beyond reason": edited(a_number_beyond_reason),
    "an unknown name": edited(an_unknown_name),
    "seeds": edited(seeds),
    "a dataset of one's own": edited(a_dataset_of_ones_own),
    "a dataset's name": edited(an_odd_name),
    "a lineage": edited(a_lineage),
    "what is extended": edited(an_extension),
    "runs of others": edited(runs_of_others),
    "a claim": edited(a_claim),
    "no YAML": of_syntax,
    "a key twice": a_key_twice,
    "other bytes": other_bytes,
    "no file": no_file,
    "the catalogue": of_the_catalogue,
    "a target": a_target,
}
