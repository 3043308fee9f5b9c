"""Judge every claim by the papers' own printed numbers: one line a claim, without any run."""

from encore.storage.program import run

from encore.products import record as products
from encore.products.catalogue import load_catalogue
from encore.products.claims import printed_claims


def main() -> None:
    args = products.command_line(__doc__)
    verdicts = printed_claims.make_printed(args.plan, args.spec, args.output, load_catalogue())
    print(", ".join(f"{verdict}: {count}" for verdict, count in verdicts.items()))


if __name__ == "__main__":
    run(main)
