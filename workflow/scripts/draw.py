"""Draw a figure of the catalogue as PNG and SVG, with the data beside as CSV."""

from encore.storage.program import run

from encore.products import record as products


def main() -> None:
    args = products.command_line(__doc__)
    from encore.products.figures import kinds

    kind = kinds.kind_of(args.plan)
    with products.recorded(
        args.plan, args.spec, args.output, kind.slice, stage="draw", endings=["png", "svg", "csv"]
    ) as drawn:
        kind.write(args.output, drawn)
    print(f"figure {drawn.name}: {args.output / drawn.name}.png")


if __name__ == "__main__":
    run(main)
