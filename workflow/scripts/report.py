"""Make the report: one page of all that was made, from the products that its plan names."""

from encore.storage.program import run

from encore.report import build
from encore.reporting import products


def main() -> None:
    args = products.command_line(__doc__)
    size = build.make_report(args.plan, args.spec, args.output)
    print(f"report: {size / 2**20:.1f} MiB in {args.output}")


if __name__ == "__main__":
    run(main)
