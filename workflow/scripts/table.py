"""Make a table: tidy CSV, Markdown, LaTeX and HTML, from the scores that its plan names."""

from encore.storage.program import run

from encore.plan.tables.layout import Layout, read
from encore.reporting import products
from encore.reporting.tables import html, latex, markdown, reproduction, tidy
from encore.reporting.tables.compute import compute_table
from encore.reporting.tables.sheet import make_sheet
from encore.reporting.tables.table import write_table
from encore.storage.files import write_text


def main() -> None:
    args = products.command_line(__doc__)
    compared = args.output / f"{read(args.plan, Layout).name}.{reproduction.FILE}"
    beside = [compared] if read(args.plan, Layout).references else []
    endings = ["csv", "json", "md", "tex", "html"]
    with products.recorded(
        args.plan, args.spec, args.output, Layout, stage="table", endings=endings, also_read=beside
    ) as layout:
        table = compute_table(layout, reproduction.reproduction_notes(compared, layout))
        shown = make_sheet(table)
        write_table(args.output / f"{layout.name}.json", table)
        tidy.write_tidy(args.output / f"{layout.name}.csv", table)
        write_text(args.output / f"{layout.name}.md", markdown.render_markdown(shown))
        write_text(args.output / f"{layout.name}.tex", latex.render_latex(shown))
        write_text(args.output / f"{layout.name}.html", html.render_html(shown))
    print(f"table {layout.name}: {len(table.rows) * len(table.columns)} cells in {args.output}")


if __name__ == "__main__":
    run(main)
