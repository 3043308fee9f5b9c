"""Draw how a model's retrieval falls as the collection grows, as PNG and SVG, with the data beside as CSV."""

from encore.storage.program import run

from encore.reporting import products
from encore.reporting.figures import collection_size


def main() -> None:
    args = products.command_line(__doc__)
    with products.recorded(
        args.plan,
        args.spec,
        args.output,
        collection_size.GrowthSlice,
        stage="corpus_size",
        endings=["png", "svg", "csv"],
    ) as drawn:
        collection_size.draw_collection_size(args.output, drawn)
    print(f"figure {drawn.name}: {args.output / drawn.name}.png")


if __name__ == "__main__":
    run(main)
