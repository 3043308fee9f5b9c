"""Record the code behind every stage as it is now, after ``impl`` was raised where results change, or need not be."""

from encore.storage.program import run

from encore.plan.planner import all_stages
from encore.storage import code_digest


def main() -> None:
    for module, stages in code_digest.HERE.changed(code_digest.read_record()).items():
        print(f"{module} has changed; it is behind {', '.join(stages)}")
    code_digest.write_record(all_stages())


if __name__ == "__main__":
    run(main)
