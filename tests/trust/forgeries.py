"""Forgeries: what was changed agrees with its own manifest, or with every digest above it."""

import csv
import dataclasses
import io
import random
from pathlib import Path

import numpy as np
from changes import Expected, any_file, flipped, of_consumers
from finished_run import MANIFEST, FinishedRun, Json

from encore.evaluation import scores
from encore.storage import manifest

PAGE, PAGE_MANIFEST = "results/report/index.html", f"results/report/{MANIFEST}"


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


def left_to_another_run(run: FinishedRun, places: list[str], chance: random.Random) -> None:
    """As ``results/plan/index.json`` says of these products, which nothing seals."""
    name = chance.choice(["config/small.yaml", "config/nowhere.yaml", ""])
    run.edit("results/plan/index.json", lambda index: index["products"].update(dict.fromkeys(places, name)))


def a_page_left_to_another_run(run: FinishedRun, chance: random.Random) -> Expected:
    """A forged page, with its digest or without."""
    page = (run.root / PAGE).read_text()
    expected = Expected({PAGE_MANIFEST})
    if chance.random() < 0.5:
        expected = a_forged_page(run, chance)
    else:
        run.write(PAGE, page.replace("<title>", "<title>Reproduced: ", 1))
    left_to_another_run(run, [PAGE_MANIFEST], chance)
    return expected


def a_number_left_to_another_run(run: FinishedRun, chance: random.Random) -> Expected:
    expected = a_forged_number(run, chance)
    left_to_another_run(run, [*expected.places, PAGE_MANIFEST], chance)
    return expected


def forge_throughout(run: FinishedRun, chance: random.Random) -> None:
    """A byte of an artifact, and every digest that rests on it, up to products and the page: nothing contradicts it."""
    a_forged_artifact(run, chance)
    redo_digests(run)


def redo_digests(run: FinishedRun) -> None:
    """Every digest above what was changed says so, as whoever forges it would have them."""
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
