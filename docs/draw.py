"""Draw the pictures of the documents anew: the rules as Snakemake draws them, the rooms of the library by its contract.

Each is a mermaid block between two markers, ``<!-- picture: NAME -->`` and ``<!-- end of picture -->``.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURES = {
    "table1": ("docs/design.md", ["results/tables/table1.csv", "results/figures/table1.png"]),
    "rooms": ("docs/design.md", []),
}  # name: the page that shows it, and of rules the targets
IN_A_ROW = 6


def rules(targets: list[str]) -> str:
    """Snakemake's graph of the rules behind targets, without its title and colours, in a stable order."""
    command = [sys.executable, "-m", "snakemake", *targets, "--configfile", "config/config.yaml", "--rulegraph"]
    drawn = subprocess.run([*command, "mermaid-js"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = dict(re.findall(r"(id\d+)\[(\w+)\]", drawn))
    edges = {(names[a], names[b]) for a, b in re.findall(r"(id\d+) --> (id\d+)", drawn)}
    return "\n".join(["flowchart TB", *(f"    {a} --> {b}" for a, b in sorted(edges))])


def rooms() -> str:
    """The rooms of the library in rows, each before those that it may import; what pyproject.toml's contract says."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    rows = [" --> ".join(layers[start : start + IN_A_ROW]) for start in range(0, len(layers), IN_A_ROW)]
    parts = [f'    subgraph row{n} [" "]\n        direction LR\n        {row}\n    end' for n, row in enumerate(rows)]
    return "\n".join(["flowchart TB", *parts, "    " + " --> ".join(f"row{n}" for n in range(len(rows)))])


def with_picture(page: str, name: str, picture: str) -> str:
    """A page with a picture between its markers."""
    begin, end = f"<!-- picture: {name} -->", "<!-- end of picture -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n```mermaid\n{picture}\n```\n\n{end}{rest.split(end, 1)[1]}"


def drawn_anew(name: str) -> str:
    """The text of the page that shows a picture, with that picture as it is now."""
    page, targets = PICTURES[name]
    return with_picture((ROOT / page).read_text(), name, rules(targets) if targets else rooms())


if __name__ == "__main__":
    for each in PICTURES:
        (ROOT / PICTURES[each][0]).write_text(drawn_anew(each))
