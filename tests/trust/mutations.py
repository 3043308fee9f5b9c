"""Changes behind Snakemake's back, by class: each changes one thing, and says who must be found and what it affects."""

import random
from collections.abc import Callable
from pathlib import Path

from changes import (
    ODD_JSON,
    Change,
    Expected,
    a_broken_link,
    a_folder_instead,
    a_lost_folder,
    a_pipe_instead,
    an_added_file,
    an_added_link,
    another_digest,
    drop,
    flipped,
    lost,
    of_artifact,
    of_bytes,
    of_consumers,
    of_manifest,
    swapped_files,
    swapped_folders,
    text_of_manifest,
)
from finished_run import MANIFEST, FinishedRun, Json
from forgeries import (
    PAGE,
    PAGE_MANIFEST,
    a_file_struck_out,
    a_forged_artifact,
    a_forged_file,
    a_forged_number,
    a_forged_number_and_the_report_of_it,
    a_forged_number_of_other_code,
    a_forged_number_without_a_report,
    a_forged_page,
    a_number_left_to_another_run,
    a_page_left_to_another_run,
    forged_scores,
)


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


def a_file_among_products(run: FinishedRun, chance: random.Random) -> Expected:
    """A page, a table or a picture next to the others, or under a name that continues one of theirs."""
    place = chance.choice([*run.products, PAGE_MANIFEST])
    longer = Path(place).name.removesuffix(MANIFEST) + "new.html"
    names = ["evil.html", ".hidden", longer, *(["costa/figure9.png"] if place.count("/") > 1 else [])]
    added = f"{Path(place).parent}/{chance.choice(names)}"
    run.write(added, "evil")
    return Expected({added})


def a_changed_page(run: FinishedRun, chance: random.Random) -> Expected:
    run.write(PAGE, flipped((run.root / PAGE).read_bytes(), chance))
    return Expected({PAGE_MANIFEST})


MUTATIONS: dict[str, Change] = {
    "a bit flipped": of_bytes(flipped),
    "a file cut short": of_bytes(lambda data, chance: data[: chance.randrange(len(data))]),
    "a file emptied": of_bytes(lambda *_: b""),
    "a file with more behind it": of_bytes(lambda data, chance: data + chance.randbytes(chance.randint(1, 50))),
    "a file lost": lost,
    "a folder in a file's place": a_folder_instead,
    "a broken link in a file's place": a_broken_link,
    "a pipe in a file's place": a_pipe_instead,
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
    "manifest: another stage": of_manifest(lambda record, _: record.update(stage="tokens.of.nothing"), of_artifact),
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
    "forged: the page, and whose it is": a_page_left_to_another_run,
    "forged: a number, and whose it is": a_number_left_to_another_run,
    "a product's file struck out": a_file_struck_out,
    "a file added among products": a_file_among_products,
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
