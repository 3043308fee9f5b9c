"""How many pairs of texts a pre-training step learns from; read by tables, and part of no other artifact.

Inputs come from the plan, by role: src/encore/plan/artifacts/inspections.py says which folder each role is.
"""


rule count_pairs:
    """Count an epoch's pairs of a step and their tokens."""
    input:
        manifests("pairs/{paired}", "tokens"),
    output:
        pairs="results/pairs/{paired}/pairs.json",
        manifest="results/pairs/{paired}/manifest.json",
    log:
        "results/logs/count_pairs/{paired}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **by_attempt(mem_mb=4_000, runtime=240),
        about=about_of("pairs/{paired}"),
    params:
        spec=spec_of("pairs/{paired}"),
    shell:
        f"{MAKE} count_pairs" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"
