"""Draw a figure of the catalogue as PNG and SVG, with the data beside as CSV."""

from encore.cli_support import run

from encore.reporting import products


def main() -> None:
    args = products.command_line(__doc__)
    from encore.reporting import drawings

    kind, draw = drawings.KINDS[drawings.kind_of(args.plan)]
    with products.recorded(
        args.plan, args.spec, args.output, kind, stage="draw", endings=["png", "svg", "csv"]
    ) as drawn:
        draw(args.output, drawn)
    print(f"figure {drawn.name}: {args.output / drawn.name}.png")


if __name__ == "__main__":
    run(main)
