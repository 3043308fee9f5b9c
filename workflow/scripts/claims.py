"""Judge every claim by the runs behind its tables: one line a claim, with the verdict and what it rests on."""

from encore.storage.program import run

from encore.products import record as products
from encore.products.claims import run_claims


def main() -> None:
    args = products.command_line(__doc__)
    plan, output = args.plan, args.output
    with products.recorded(
        plan, args.spec, output, run_claims.ClaimsSlice, stage="claims", endings=["csv", "md"]
    ) as claims:
        verdicts = run_claims.write_run_claims(output / f"{claims.name}.csv", claims)
    print(", ".join(f"{verdict}: {count}" for verdict, count in verdicts.items()))


if __name__ == "__main__":
    run(main)
