"""Draw a table's forest plot as PNG and SVG, with its data beside as CSV."""

from encore.storage.program import run

from encore.products import record as products
from encore.products.figures import forest
from encore.products.tables.compute import compute_table
from encore.products.tables.layout import Layout


def main() -> None:
    args = products.command_line(__doc__)
    with products.recorded(
        args.plan, args.spec, args.output, Layout, stage="figure", endings=["png", "svg", "csv"]
    ) as layout:
        forest.draw_forest(args.output, compute_table(layout))
    print(f"figure {layout.name}: {args.output / layout.name}.png")


if __name__ == "__main__":
    run(main)
