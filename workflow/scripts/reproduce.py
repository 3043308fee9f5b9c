"""Compare a table's runs with those that others released, which the run's configuration names."""

from encore.storage.program import run

from encore.products import record as products
from encore.products.tables import reproduction


def main() -> None:
    args = products.command_line(__doc__)
    with products.recorded(
        args.plan,
        args.spec,
        args.output,
        reproduction.ReproductionSlice,
        stage="reproduce",
        endings=[reproduction.FILE],
        record=reproduction.RECORD,
    ) as layout:
        path = args.output / f"{layout.name}.{reproduction.FILE}"
        print(f"table {layout.name}: {reproduction.write_reproduction(path, layout)} lines in {path}")


if __name__ == "__main__":
    run(main)
