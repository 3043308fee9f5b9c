"""Scores: every measure of every judged query of a run.

Inputs come from the plan, by role: src/encore/plan/artifacts/scores.py says which folder each role is.
"""


rule evaluate:
    """Measure a run, and check that ir-measures finds the same values in the files."""
    input:
        manifests("scores/{system}/{evaluation}", "run", "collection"),
        large_files("scores/{system}/{evaluation}", run="run.npz"),
    output:
        scores="results/scores/{system}/{evaluation}/scores.parquet",
        manifest="results/scores/{system}/{evaluation}/manifest.json",
    log:
        "results/logs/evaluate/{system}/{evaluation}.log",
    localrule: EXECUTION.local_scores
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **at_least("scores/{system}/{evaluation}", mem_mb=1_000, runtime=30),
        about=about_of("scores/{system}/{evaluation}"),
    params:
        spec=spec_of("scores/{system}/{evaluation}"),
    shell:
        f"{MAKE} evaluate" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"
