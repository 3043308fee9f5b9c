"""The loss of models on masked words; read by tables, and part of no other artifact.

Inputs come from the plan, by role: src/encore/plan/artifacts/inspections.py says which folder each role is.
"""


rule masked_loss:
    """Measure a model's MLM loss on a collection's passages, with one mask for all models."""
    input:
        manifests("losses/{model}/{loss}", "model", "tokens"),
        large_files("losses/{model}/{loss}", model="model.safetensors"),
    output:
        loss="results/losses/{model}/{loss}/loss.json",
        manifest="results/losses/{model}/{loss}/manifest.json",
    log:
        "results/logs/masked_loss/{model}/{loss}.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of("masked_loss")
    resources:
        **by_attempt(mem_mb=4_000, runtime=60),
        about=about_of("losses/{model}/{loss}"),
    params:
        spec=spec_of("losses/{model}/{loss}"),
    shell:
        f"{MAKE} masked_loss" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"
