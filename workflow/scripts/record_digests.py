"""Record the code behind every stage as it is now, after ``impl`` was raised where results change, or need not be."""

from encore import project
from encore.provenance import implementation


def main() -> None:
    for module, stages in implementation.HERE.changed(implementation.read_record()).items():
        print(f"{module} has changed; it is behind {', '.join(stages)}")
    implementation.write_record(project.stages())


if __name__ == "__main__":
    main()
