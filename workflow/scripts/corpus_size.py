"""Draw how a model's retrieval falls as the collection grows, as PNG and SVG, with the data beside as CSV."""

from encore.storage.program import run

from encore.products import record as products
from encore.products.figures import corpus_size


def main() -> None:
    args = products.command_line(__doc__)
    with products.recorded(
        args.plan,
        args.spec,
        args.output,
        corpus_size.CorpusSizeSlice,
        stage="corpus_size",
        endings=["png", "svg", "csv"],
    ) as drawn:
        corpus_size.draw_corpus_size(args.output, drawn)
    print(f"figure {drawn.name}: {args.output / drawn.name}.png")


if __name__ == "__main__":
    run(main)
