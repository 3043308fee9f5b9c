"""Make the report: one page of all that was made, from the products that its plan names."""

from encore.storage.program import run

from encore.products import record as products
from encore.products.report import build


def main() -> None:
    args = products.command_line(__doc__)
    size = build.make_report(args.plan, args.spec, args.output)
    print(f"report: {size / 2**20:.1f} MiB in {args.output}")


if __name__ == "__main__":
    run(main)
