"""Draw how the losses of each pre-training step fell on held-out texts, as PNG and SVG, with the data beside as CSV."""

from encore.storage.program import run

from encore.products import record as products
from encore.products.figures import learning
from encore.products.loss_curves import StepsSlice


def main() -> None:
    args = products.command_line(__doc__)
    with products.recorded(
        args.plan, args.spec, args.output, StepsSlice, stage="curves", endings=["png", "svg", "csv"]
    ) as steps:
        learning.draw_learning(args.output, steps)
    print(f"figure {steps.name}: {args.output / steps.name}.png")


if __name__ == "__main__":
    run(main)
