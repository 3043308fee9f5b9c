"""Make a table: its data as JSON, tidy CSV, Markdown, LaTeX and HTML, from the scores that its plan names."""

from encore.storage.program import run

from encore.products import record as products
from encore.products.slices import read
from encore.products.tables import formats, reproduction
from encore.products.tables.layout import Layout
from encore.products.tables.table import FORMATS


def main() -> None:
    args = products.command_line(__doc__)
    planned = read(args.plan, Layout)
    released = args.output / f"{planned.name}.{reproduction.FILE}"
    beside = [released] if planned.references else []
    with products.recorded(
        args.plan, args.spec, args.output, Layout, stage="table", endings=FORMATS, also_read=beside
    ) as layout:
        table = formats.write_formats(args.output, layout, released)
    print(f"table {layout.name}: {len(table.rows) * len(table.columns)} cells in {args.output}")


if __name__ == "__main__":
    run(main)
