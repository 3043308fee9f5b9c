"""Build a product: a table, a figure, the claims or the report, from its slice of the plan and what that names."""

import argparse
from pathlib import Path

from encore.storage.program import json_object, run

from encore.products.record import make_product


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", help="the kind of product, by its rule: table, figure, draw, ...")
    parser.add_argument("--plan", required=True, type=Path, help="its slice of the plan, results/plan/NAME.json")
    parser.add_argument("--spec", type=json_object, help="digest of the plan; refused if it was rewritten since")
    parser.add_argument("--output", required=True, type=Path, nargs="+", help="its files, the manifest last")
    args = parser.parse_args()
    print(make_product(args.stage, args.plan, args.spec, args.output))


if __name__ == "__main__":
    run(main)
