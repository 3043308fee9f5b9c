"""Changes behind Snakemake's back, by class: each changes one thing, and says who must be found and what it affects."""

import csv
import dataclasses
import io
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from finished_run import MANIFEST, FinishedRun, Json

from encore.evaluation import scores
from encore.storage import manifest

ODD_JSON = [
    "[]",
    "null",
    "7",
    '"text"',
    "{",
    "",
    '{"a": 1}',
    '{"spec": {}, "results": {}, "inputs": {}, "outputs": {}}',
]
ODD_JSON += [
    '{"stage": [], "spec": 1, "results": 2, "inputs": {"a": []}, "outputs": {"b": {}}}',
    "[" * 100_000,
    "NaN",
    "\0",
]
STRAYS = ("segments_2", "_0_1.liv", ".hidden", "001-of-002/index", "docid.npy", "model.bin", "a b/é", "run.trec")


@dataclass(frozen=True)
class Expected:
    """What an audit must say of a change: a finding at one of these places, and all of these rows and no other."""

    places: set[str]
    rows: set[str] = field(default_factory=set)


Change = Callable[[FinishedRun, random.Random], Expected]


def of_artifact(run: FinishedRun, folder: str) -> Expected:
    return Expected({folder}, run.rows(folder))


def of_consumers(run: FinishedRun, folder: str) -> Expected:
    """Of an artifact that agrees with its own manifest: who reads it tells."""
    readers = run.consumers(folder)
    return Expected(readers, set().union(*(run.rows(reader) for reader in readers)))


def of_both(run: FinishedRun, one: str, other: str) -> Expected:
    return Expected({one}, run.rows(one) | run.rows(other))


# One file of an artifact


def any_file(run: FinishedRun, chance: random.Random) -> tuple[str, str]:
    """An artifact's folder and one of its listed files that is not empty, its kind drawn first: models are few."""
    kinds = sorted({folder.split("/")[1] for folder in run.manifests})
    kind = chance.choice(kinds)
    folder = chance.choice([folder for folder in run.manifests if folder.split("/")[1] == kind])
    files = [name for name, about in run.manifests[folder]["outputs"].items() if about["bytes"]]
    return folder, f"{folder}/{chance.choice(files)}"


def of_bytes(change: Callable[[bytes, random.Random], bytes]) -> Change:
    def changed(run: FinishedRun, chance: random.Random) -> Expected:
        folder, place = any_file(run, chance)
        run.write(place, change((run.root / place).read_bytes(), chance))
        return of_artifact(run, folder)

    return changed


def flipped(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]


def lost(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    (run.root / place).unlink()
    return of_artifact(run, folder)


def a_folder_instead(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    (run.root / place).unlink()
    (run.root / place).mkdir()
    return of_artifact(run, folder)


def a_broken_link(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    (run.root / place).unlink()
    (run.root / place).symlink_to("nowhere")
    return of_artifact(run, folder)


def swapped_files(run: FinishedRun, chance: random.Random) -> Expected:
    """Two files of one name, of two artifacts of one kind."""
    pairs = [
        (f"{one}/{name}", f"{other}/{name}")
        for one in run.manifests
        for other in run.manifests
        if one < other and one.split("/")[1] == other.split("/")[1]
        for name, about in run.manifests[one]["outputs"].items()
        if "/" not in name
        if run.manifests[other]["outputs"].get(name, about) != about
    ]
    first, second = chance.choice(pairs)
    contents = [(run.root / place).read_bytes() for place in (second, first)]
    for place, content in zip((first, second), contents, strict=True):
        run.write(place, content)
    return of_both(run, *(str(Path(place).parent) for place in (first, second)))


def swapped_folders(run: FinishedRun, chance: random.Random) -> Expected:
    """Two artifacts of one kind under each other's names."""
    folders = [(one, other) for one in run.manifests for other in run.manifests if one < other]
    first, second = chance.choice([(one, other) for one, other in folders if one.split("/")[1] == other.split("/")[1]])
    kept = run.root / "results/swapped"
    (run.root / first).rename(kept)
    (run.root / second).rename(run.root / first)
    kept.rename(run.root / second)
    return of_both(run, first, second)


def a_lost_folder(run: FinishedRun, chance: random.Random) -> Expected:
    folder = chance.choice([*run.manifests])
    shutil.rmtree(run.root / folder)
    return of_artifact(run, folder)


def an_added_file(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    beside = str(Path(place).parent if chance.random() < 0.7 else folder)
    run.write(f"{beside}/{chance.choice(STRAYS)}", chance.choice([b"", b"more", (run.root / place).read_bytes()]))
    return of_artifact(run, folder)


def an_added_link(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    target = chance.choice([place, "/etc", "nowhere", folder])
    (run.root / folder / chance.choice(STRAYS[:3])).symlink_to(run.root / target)
    return of_artifact(run, folder)


# The manifest of an artifact


def of_manifest(change: Callable[[Json, random.Random], None], found: Callable[..., Expected]) -> Change:
    def changed(run: FinishedRun, chance: random.Random) -> Expected:
        folder = chance.choice([folder for folder, record in run.manifests.items() if record["inputs"]])
        run.edit(f"{folder}/{MANIFEST}", lambda record: change(record, chance))
        return found(run, folder)

    return changed


def another_digest(described: Json) -> None:
    described["sha256"] = described["sha256"][::-1]


def drop(content: Json, chance: random.Random) -> None:
    del content[chance.choice([*content])]


def text_of_manifest(texts: Callable[[str, random.Random], str | bytes | None]) -> Change:
    def changed(run: FinishedRun, chance: random.Random) -> Expected:
        folder = chance.choice([*run.manifests])
        place = run.root / folder / MANIFEST
        content = texts(place.read_text(), chance)
        place.unlink() if content is None else run.write(f"{folder}/{MANIFEST}", content)
        return of_artifact(run, folder)

    return changed


# Forgeries: what was changed agrees with its own manifest


def a_forged_artifact(run: FinishedRun, chance: random.Random) -> Expected:
    folder, place = any_file(run, chance)
    run.write(place, flipped((run.root / place).read_bytes(), chance))
    name = place.removeprefix(f"{folder}/")
    described = manifest.describe(run.root / place)
    run.edit(f"{folder}/{MANIFEST}", lambda record: record["outputs"].update({name: described}))
    return of_consumers(run, folder)


def forge_product(run: FinishedRun, place: str, name: str, content: bytes | str) -> Expected:
    """Another content of a product's file, and its digest in the product's manifest."""
    file = f"{Path(place).parent}/{name}"
    run.write(file, content)
    described = manifest.describe(run.root / file)
    run.edit(place, lambda record: record["outputs"].update({name: described}))
    return Expected({place})


def forged_number(run: FinishedRun, place: str, chance: random.Random) -> Expected:
    """Another number in the CSV of a product, with its manifest."""
    name = chance.choice([name for name in run.products[place]["outputs"] if name.endswith(".csv")])
    text = (run.root / place).with_name(name).read_text()
    lines = list(csv.reader(io.StringIO(text)))
    cells = [(line, column) for line in lines[1:] for column, value in enumerate(line) if is_number(value)]
    line, column = chance.choice(cells)
    line[column] = str(round(float(line[column]) + chance.choice([-1, 1]) * chance.random(), 4))
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(lines)
    return forge_product(run, place, name, written.getvalue())


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def a_forged_number(run: FinishedRun, chance: random.Random) -> Expected:
    return forged_number(run, chance.choice([*run.products]), chance)


def a_forged_number_and_the_report_of_it(run: FinishedRun, chance: random.Random) -> Expected:
    """As the documented repair leaves it: the report was made again from the forged table."""
    place = chance.choice([*run.products])
    expected = forged_number(run, place, chance)
    described = manifest.describe(run.root / place)
    run.edit(f"results/report/{MANIFEST}", lambda record: record["inputs"].update({place: described}))
    return expected


def a_forged_number_of_other_code(run: FinishedRun, chance: random.Random) -> Expected:
    """As if another version of Encore had made it."""
    expected = a_forged_number(run, chance)
    for place in expected.places:
        run.edit(place, lambda record: record.update(code=record["code"][::-1]))
    return expected


def a_forged_number_without_a_report(run: FinishedRun, chance: random.Random) -> Expected:
    for path in (run.results / "report").iterdir():
        path.unlink()
    return a_forged_number(run, chance)


def a_forged_file(run: FinishedRun, chance: random.Random) -> Expected:
    """Any byte of any file of a product, with its manifest."""
    place = chance.choice([*run.products])
    name = chance.choice([*run.products[place]["outputs"]])
    return forge_product(run, place, name, flipped((run.root / place).with_name(name).read_bytes(), chance))


def a_file_struck_out(run: FinishedRun, chance: random.Random) -> Expected:
    """A product's file that was altered and is no longer listed."""
    place = chance.choice([*run.products])
    name = chance.choice([*run.products[place]["outputs"]])
    path = (run.root / place).with_name(name)
    run.write(str(path.relative_to(run.root)), flipped(path.read_bytes(), chance))
    run.edit(place, lambda record: record["outputs"].pop(name))
    return Expected({place})


def forged_scores(run: FinishedRun, chance: random.Random) -> Expected:
    """Scores that were raised with their manifest, and struck from the inputs of what shows them."""
    folder = chance.choice([folder for folder in run.manifests if folder.startswith("results/scores/")])
    raise_scores(run.root / folder)
    described = manifest.describe(run.root / folder / "scores.parquet")
    run.edit(f"{folder}/{MANIFEST}", lambda record: record["outputs"].update({"scores.parquet": described}))
    readers = [place for place in run.consumers(folder) if place in run.products]
    for place in readers:
        run.edit(place, lambda record: record["inputs"].pop(f"{folder}/{MANIFEST}"))
    return Expected(set(readers))


def raise_scores(folder: Path) -> None:
    """Each query's first measure to its best."""
    forged = {}
    for key, scored in scores.read_scores(folder).items():
        best = np.ones_like(scored.values)
        forged[key] = dataclasses.replace(scored, values=best, low=best, high=best)
    scores.write_scores(folder, forged)  # in the place of a link, by renaming


# Products and the page


def a_changed_product(run: FinishedRun, chance: random.Random) -> Expected:
    place = chance.choice([*run.products])
    path = (run.root / place).with_name(chance.choice([*run.products[place]["outputs"]]))
    change = chance.choice(
        [flipped, lambda data, _: data[: len(data) // 2], lambda *_: b"", lambda data, _: data + b" "]
    )
    run.write(str(path.relative_to(run.root)), change(path.read_bytes(), chance))
    return Expected({place})


def a_lost_file_of_a_product(run: FinishedRun, chance: random.Random) -> Expected:
    place = chance.choice([*run.products])
    (run.root / place).with_name(chance.choice([*run.products[place]["outputs"]])).unlink()
    return Expected({place})


def a_lost_manifest_of_a_product(run: FinishedRun, chance: random.Random) -> Expected:
    place = chance.choice([*run.products])
    (run.root / place).unlink()
    return Expected({place})


def of_product_manifest(change: Callable[[Json, random.Random], object]) -> Change:
    def changed(run: FinishedRun, chance: random.Random) -> Expected:
        place = chance.choice([place for place, record in run.products.items() if record["inputs"]])
        run.edit(place, lambda record: change(record, chance))
        return Expected({place})

    return changed


def an_odd_manifest_of_a_product(run: FinishedRun, chance: random.Random) -> Expected:
    place = chance.choice([*run.products, f"results/report/{MANIFEST}"])
    run.write(place, chance.choice(ODD_JSON))
    return Expected({place})


PAGE, PAGE_MANIFEST = "results/report/index.html", f"results/report/{MANIFEST}"


def a_changed_page(run: FinishedRun, chance: random.Random) -> Expected:
    run.write(PAGE, flipped((run.root / PAGE).read_bytes(), chance))
    return Expected({PAGE_MANIFEST})


def a_forged_page(run: FinishedRun, chance: random.Random) -> Expected:
    """A number, the title, the program or the style of the page, with its digest."""
    page = (run.root / PAGE).read_text()
    numbers = sorted({part.split("<")[0] for part in page.split("<dd>")[1:] if is_number(part.split("<")[0])})
    old, new = chance.choice(
        [
            *((f"<dd>{number}<", "<dd>0.98765<") for number in chance.sample(numbers, 3)),
            ("</script>", ";document.body.hidden=true</script>"),
            ("</style>", "td{visibility:hidden}</style>"),
            ("<title>", "<title>Reproduced: "),
            ("</body>", "<table><caption>Training</caption><tr><td>0.999</table></body>"),
        ]
    )
    assert old in page
    return forge_product(run, PAGE_MANIFEST, "index.html", page.replace(old, new, 1))


def forge_throughout(run: FinishedRun, chance: random.Random) -> None:
    """A byte of an artifact, and every digest that rests on it, up to products and the page: nothing contradicts it."""
    a_forged_artifact(run, chance)
    named = {**{f"{folder}/{MANIFEST}": record for folder, record in run.manifests.items()}, **run.products}
    waiting = [place for place in named if not (run.root / place).samefile(run.pristine.parent / place)]
    while waiting:
        changed = waiting.pop()
        described = manifest.describe(run.root / changed)
        readers = [place for place, record in named.items() if changed in record["inputs"]]
        for place in readers:
            redescribe(run, place, changed, described)
        waiting += readers
    for place in run.products:
        redescribe(run, PAGE_MANIFEST, place, manifest.describe(run.root / place))


def redescribe(run: FinishedRun, place: str, read: str, described: Json) -> None:
    """Another digest of an input in a manifest."""
    run.edit(place, lambda record: record["inputs"].update({read: described}))


MUTATIONS: dict[str, Change] = {
    "a bit flipped": of_bytes(flipped),
    "a file cut short": of_bytes(lambda data, chance: data[: chance.randrange(len(data))]),
    "a file emptied": of_bytes(lambda *_: b""),
    "a file with more behind it": of_bytes(lambda data, chance: data + chance.randbytes(chance.randint(1, 50))),
    "a file lost": lost,
    "a folder in a file's place": a_folder_instead,
    "a broken link in a file's place": a_broken_link,
    "files of two artifacts swapped": swapped_files,
    "two artifacts swapped": swapped_folders,
    "an artifact lost": a_lost_folder,
    "a file added": an_added_file,
    "a link added": an_added_link,
    "manifest: another spec": of_manifest(lambda record, _: record["spec"].update(impl=99), of_artifact),
    "manifest: other facts": of_manifest(lambda record, _: record["results"].update(queries=-1), of_consumers),
    "manifest: another input": of_manifest(lambda record, _: record["inputs"].update({"results/x": {}}), of_artifact),
    "manifest: an input's digest": of_manifest(
        lambda record, chance: another_digest(record["inputs"][chance.choice([*record["inputs"]])]), of_artifact
    ),
    "manifest: an input struck out": of_manifest(lambda record, chance: drop(record["inputs"], chance), of_artifact),
    "manifest: a file's digest": of_manifest(
        lambda record, chance: another_digest(record["outputs"][chance.choice([*record["outputs"]])]), of_artifact
    ),
    "manifest: a file struck out": of_manifest(lambda record, chance: drop(record["outputs"], chance), of_artifact),
    "manifest: another stage": of_manifest(lambda record, _: record.update(stage="tokens.of.nothing"), of_consumers),
    "manifest: a part missing": of_manifest(drop, of_artifact),
    "manifest: cut short": text_of_manifest(lambda text, chance: text[: chance.randrange(len(text) - 2)]),
    "manifest: lost": text_of_manifest(lambda *_: None),
    "manifest: other JSON or none": text_of_manifest(lambda _, chance: chance.choice(ODD_JSON)),
    "manifest: other bytes": text_of_manifest(lambda _, chance: b"\xff" + chance.randbytes(100)),
    "forged: an artifact": a_forged_artifact,
    "forged: scores, struck from the inputs": forged_scores,
    "forged: a number of a table or figure": a_forged_number,
    "forged: a number, and the report made again": a_forged_number_and_the_report_of_it,
    "forged: a number, and the code that made it": a_forged_number_of_other_code,
    "forged: a number, without a report": a_forged_number_without_a_report,
    "forged: any byte of a product": a_forged_file,
    "forged: the page": a_forged_page,
    "a product's file struck out": a_file_struck_out,
    "a product's file changed": a_changed_product,
    "a product's file lost": a_lost_file_of_a_product,
    "a product's manifest lost": a_lost_manifest_of_a_product,
    "a product's manifest: another plan": of_product_manifest(lambda record, _: record.update(spec={"rows": []})),
    "a product's manifest: an input struck out": of_product_manifest(
        lambda record, chance: drop(record["inputs"], chance)
    ),
    "a product's manifest: an input's digest": of_product_manifest(
        lambda record, chance: another_digest(record["inputs"][chance.choice([*record["inputs"]])])
    ),
    "a product's manifest: other JSON or none": an_odd_manifest_of_a_product,
    "the page changed": a_changed_page,
}
