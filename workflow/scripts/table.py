"""Make a table: tidy CSV, Markdown, LaTeX and HTML, from the scores that its plan names."""

import argparse
from pathlib import Path

from encore.cli_support import json_object, run
from encore.reporting import cells, html, latex, markdown, tidy
from encore.reporting.products import recorded
from encore.reporting.sheet import sheet
from encore.storage import write_text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--plan", required=True, type=Path, help="the table's slice of the plan, results/plan/NAME.json"
    )
    parser.add_argument("--spec", type=json_object, help="what the plan must say; refused when it was rewritten since")
    parser.add_argument("--output", required=True, type=Path, help="folder of the table's files")
    args = parser.parse_args()
    with recorded(args.plan, args.spec, args.output, stage="table", endings=["csv", "md", "tex", "html"]) as layout:
        grid = cells.grid(layout)
        shown = sheet(grid)
        tidy.write(args.output / f"{layout.name}.csv", grid)
        write_text(args.output / f"{layout.name}.md", markdown.render(shown))
        write_text(args.output / f"{layout.name}.tex", latex.render(shown))
        write_text(args.output / f"{layout.name}.html", html.render(shown))
    print(f"table {layout.name}: {len(grid.cells)} cells in {args.output}")


if __name__ == "__main__":
    run(main)
