"""Make one folder of results: a stage of ``src/encore/stages/``, as the plan says.

python workflow/scripts/make.py encode --planned results/plan/specs/indexes/….json --output results/indexes/…
"""

import argparse
from pathlib import Path

from encore.storage.program import artifact, positive, run

from encore.plan.index import read_entries
from encore.stages.base import Job
from encore.stages.run import read_planned, run_stage
from encore.storage import environment
from encore.storage.manifest import state_of


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])  # python -OO leaves none
    parser.add_argument("stage", help="encode, pretrain, ...: the name of a file in src/encore/stages")
    parser.add_argument("--planned", required=True, type=Path, help="its spec and inputs, which the plan wrote")
    parser.add_argument("--output", required=True, type=artifact, help="the folder, or the manifest in it")
    parser.add_argument("--threads", type=positive, default=1)
    parser.add_argument("--processes", type=positive, default=1, help="that share the work, one a GPU")
    args = parser.parse_args()
    planned = read_planned(args.planned, args.stage)
    job = Job(
        output=args.output,
        state=state_of(args.output),
        source=Path(planned["source"]) if planned.get("source") else None,
        details=planned.get("details", {}),
        threads=args.threads,
        processes=args.processes,
        workers=environment.number(environment.WORKERS),
        checkpoint_seconds=environment.number(environment.CHECKPOINT_SECONDS),
        java_memory_mb=environment.number(environment.JAVA_MB),
        data_root=Path(environment.text(environment.DATA_ROOT) or "data"),
    )
    run_stage(planned, job, read_entries)


if __name__ == "__main__":
    run(main)
