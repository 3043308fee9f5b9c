"""A table as LaTeX, for ``\\input`` into a paper that loads booktabs."""

from collections.abc import Iterable

from encore.reporting.tables.sheet import Sheet, SheetEntry

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "`": r"\textasciigrave{}",
    **{character: f"${character}$" for character in "<>|"},
    "[": "{[}",  # after a line's end it would be read as its space
    "±": r"$\pm$",
    "−": "$-$",
    "≠": r"$\neq$",
    **{raised: rf"\textsuperscript{{{plain}}}" for raised, plain in zip("¹²³⁴⁵", "12345", strict=True)},
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\to$",
    "Δ": r"$\Delta$",
    "–": "--",
    "—": "---",
    "’": "'",
    "“": "``",
    "”": "''",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
    "‖": r"$\|$",
}


def render_latex(sheet: Sheet) -> str:
    """A ``table*`` environment with caption, tabular and notes."""
    columns = len(sheet.header)
    lines = [_row(SheetEntry(title) for title in sheet.header)]
    for block in sheet.blocks:
        heading = rf"\multicolumn{{{columns}}}{{l}}{{\emph{{{escape(block.title)}}}}} \\"
        lines += [r"\midrule", heading] if block.title else [r"\midrule"]
        lines += [_row(line) for line in block.lines]
    notes = [rf"\par {escape(note)}" for note in sheet.notes]
    return "\n".join(
        [
            r"% Needs \usepackage{booktabs} and, before LaTeX 2018, \usepackage[utf8]{inputenc}.",
            r"\begin{table*}",
            r"\centering",
            rf"\caption{{{escape(sheet.title)}}}",
            rf"\label{{tab:{sheet.name}}}",
            rf"\begin{{tabular}}{{l{'r' * (columns - 1)}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\begin{minipage}{\linewidth}\footnotesize",
            *notes,
            r"\end{minipage}",
            r"\end{table*}",
            "",
        ]
    )


def escape(text: str) -> str:
    """Text with every character that LaTeX would read as a command, or that its fonts may lack, written out."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def _row(entries: Iterable[SheetEntry]) -> str:
    return " & ".join(_entry(entry) for entry in entries) + r" \\"


def _entry(entry: SheetEntry) -> str:
    text = escape(entry.text)
    bold = rf"\textbf{{{text}}}" if entry.bold and text else text
    return bold + (rf"\textsuperscript{{{escape(entry.marker)}}}" if entry.marker else "")
