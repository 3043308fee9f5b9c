"""The papers' figures and our own: inspections of models, and the drawing of each figure from its slice.

Inputs come from the plan, by role: src/encore/plan/artifacts/inspections.py says which folder each role is.
"""


rule inspect_model:
    """Compute a model's outputs on a few texts, for figures and tables that show them."""
    input:
        manifests("inspections/{model}/{inspection}", "model", "tokens", "head", "run", "collection"),
        large_files("inspections/{model}/{inspection}", model="model.safetensors"),
    output:
        inspection="results/inspections/{model}/{inspection}/inspection.json",
        manifest="results/inspections/{model}/{inspection}/manifest.json",
    log:
        "results/logs/inspect_model/{model}/{inspection}.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of("inspect_model")
    resources:
        **by_attempt(mem_mb=4_000, runtime=60),
        about=about_of("inspections/{model}/{inspection}"),
    params:
        spec=spec_of("inspections/{model}/{inspection}"),
    shell:
        f"{MAKE} inspect_model" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"
