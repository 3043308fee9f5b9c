"""Draw a table's forest plot as PNG and SVG, with its data beside as CSV."""

import argparse
from pathlib import Path

from encore.cli_support import json_object, run
from encore.reporting import cells, forest
from encore.reporting.products import recorded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--plan", required=True, type=Path, help="the table's slice of the plan, results/plan/NAME.json"
    )
    parser.add_argument("--spec", type=json_object, help="what the plan must say; refused when it was rewritten since")
    parser.add_argument("--output", required=True, type=Path, help="folder of the figure's files")
    args = parser.parse_args()
    with recorded(args.plan, args.spec, args.output, stage="figure", endings=["png", "svg", "csv"]) as layout:
        forest.draw(args.output, cells.grid(layout))
    print(f"figure {layout.name}: {args.output / layout.name}.png")


if __name__ == "__main__":
    run(main)
