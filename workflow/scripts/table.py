"""Make a table: tidy CSV, Markdown, LaTeX and HTML, from the scores that its plan names."""

from encore.storage.program import run

from encore.plan.tables.layout import Layout, read
from encore.reporting import products
from encore.reporting.tables import cells, html, latex, markdown, reproduction, tidy
from encore.reporting.tables.sheet import make_sheet
from encore.storage.files import write_text


def main() -> None:
    args = products.command_line(__doc__)
    compared = args.output / f"{read(args.plan, Layout).name}.{reproduction.FILE}"
    beside = [compared] if read(args.plan, Layout).references else []
    endings = ["csv", "md", "tex", "html"]
    with products.recorded(
        args.plan, args.spec, args.output, Layout, stage="table", endings=endings, also_read=beside
    ) as layout:
        grid = cells.compute_grid(layout)
        shown = make_sheet(grid, reproduction.reproduction_notes(compared, layout))
        tidy.write_tidy(args.output / f"{layout.name}.csv", grid)
        write_text(args.output / f"{layout.name}.md", markdown.render_markdown(shown))
        write_text(args.output / f"{layout.name}.tex", latex.render_latex(shown))
        write_text(args.output / f"{layout.name}.html", html.render_html(shown))
    print(f"table {layout.name}: {len(grid.cells)} cells in {args.output}")


if __name__ == "__main__":
    run(main)
