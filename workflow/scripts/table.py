"""Make a table: tidy CSV, Markdown, LaTeX and HTML, from the scores that its plan names."""

from encore.storage.program import run

from encore.plan.tables.layout import Layout, read
from encore.reporting import products
from encore.reporting.tables import cells, html, latex, markdown, reproduction, tidy
from encore.reporting.tables.sheet import sheet
from encore.storage.files import write_text


def main() -> None:
    args = products.command_line(__doc__)
    compared = args.output / f"{read(args.plan, Layout).name}.{reproduction.FILE}"
    beside = [compared] if read(args.plan, Layout).references else []
    endings = ["csv", "md", "tex", "html"]
    with products.recorded(
        args.plan, args.spec, args.output, Layout, stage="table", endings=endings, beside=beside
    ) as layout:
        grid = cells.grid(layout)
        shown = sheet(grid, reproduction.notes(compared, layout))
        tidy.write(args.output / f"{layout.name}.csv", grid)
        write_text(args.output / f"{layout.name}.md", markdown.render(shown))
        write_text(args.output / f"{layout.name}.tex", latex.render(shown))
        write_text(args.output / f"{layout.name}.html", html.render(shown))
    print(f"table {layout.name}: {len(grid.cells)} cells in {args.output}")


if __name__ == "__main__":
    run(main)
