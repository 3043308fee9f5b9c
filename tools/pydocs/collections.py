"""Which collections are shipped, and how each is made of the docstrings or of another one."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from encore.data.collection import Collection
from tools.pydocs import sources
from tools.pydocs.build import select, write_pydocs
from tools.pydocs.documents import write_documents
from tools.pydocs.objects import Object, read_objects
from tools.pydocs.packages import write_packages
from tools.pydocs.questions import write_questions

STANDARD_LIBRARY = "python"
DISTRIBUTIONS = ("matplotlib", "networkx", "numpy", "pandas", "scikit-learn", "scipy", "sympy")

# The distributions that each is made of, besides the standard library.
PYDOCS: dict[str, tuple[str, ...]] = {"pydocs": DISTRIBUTIONS, "pydocs-stdlib": (), "two-packages": ("networkx",)}
UNSHIPPED = ("two-packages",)  # read by others alone
DOCUMENTS = {"pydocs-documents": "pydocs", "stdlib-documents": "pydocs-stdlib"}
# What it is made of, import names of packages, and splits.
ALL, TEST = ["train", "valid", "test"], ["test"]
PACKAGES = {
    "pydocs-python": ("pydocs", [STANDARD_LIBRARY], ALL),
    "pydocs-numpy": ("pydocs", ["numpy"], TEST),
    "pydocs-networkx": ("pydocs", ["networkx"], TEST),
    "pydocs-matplotlib": ("pydocs", ["matplotlib", "mpl_toolkits"], TEST),
    "pydocs-sklearn": ("pydocs", ["sklearn"], TEST),
    "pydocs-pandas": ("pydocs", ["pandas"], TEST),
    "pydocs-scipy": ("pydocs", ["scipy"], TEST),
    "pydocs-sympy": ("pydocs", ["sympy", "isympy"], TEST),
    "one-package": ("two-packages", [STANDARD_LIBRARY], ALL),
    "other-package": ("two-packages", ["networkx"], TEST),
}
QUESTIONS = {
    "pydocs-reqa-a": ("pydocs", ["sklearn", "pandas", "matplotlib", "mpl_toolkits"]),
    "pydocs-reqa-b": ("pydocs", ["numpy", "scipy", "networkx", "sympy"]),
    "stdlib-reqa": (
        "pydocs-stdlib",
        ["cgi", "configparser", "filecmp", "ftplib", "idlelib", "nntplib", "optparse", "smtplib", "tkinter"],
    ),
}


def write_collections(folder: Path, processes: int) -> Iterator[str]:
    """Write every collection into a folder of its name; yields the names of those that are shipped, once written."""
    objects = {STANDARD_LIBRARY: read_objects(sources.standard_library(), processes)}
    objects |= {name: read_objects(sources.package(name), processes) for name in DISTRIBUTIONS}
    for name, distributions in PYDOCS.items():
        _write_pydocs(folder / name, {origin: objects[origin] for origin in (STANDARD_LIBRARY, *distributions)})
        if name not in UNSHIPPED:
            yield name
    for name, base in DOCUMENTS.items():
        write_documents(folder / name, Collection(folder / base))
        yield name
    for name, (base, packages, splits) in PACKAGES.items():
        write_packages(folder / name, Collection(folder / base), packages, splits)
        yield name
    for name, (base, packages) in QUESTIONS.items():
        write_questions(folder / name, Collection(folder / base), packages)
        yield name


def _write_pydocs(folder: Path, objects: dict[str, list[Object]]) -> None:
    material = select([each for part in objects.values() for each in part])
    origin = {each.id: name for name, part in objects.items() for each in part}
    found = Counter(origin[each.id] for each in material.objects)
    write_pydocs(folder, material, {"passages_by_source": dict(sorted(found.items()))})
