"""The papers' figures and our own: what some look into models for, and the drawing of each from its slice of the plan."""


rule probe:
    """Ask a model about a few texts, for a figure that shows what it says."""
    input:
        **manifests("probes/{model}/{probe}", "model", "tokens", "head", "run", "collection"),
        **large_files("probes/{model}/{probe}", model="model.safetensors"),
    output:
        probe="results/probes/{model}/{probe}/probe.json",
        manifest="results/probes/{model}/{probe}/manifest.json",
    log:
        "results/logs/probe/{model}/{probe}.log",
    benchmark:
        "results/benchmarks/probe/{model}/{probe}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **growing(mem_mb=4_000, runtime=60),
    params:
        spec=spec_of("probes/{model}/{probe}"),
    shell:
        "python workflow/scripts/probe.py"
        " --spec {params.spec:q}"
        " --model {input.model:q}"
        " --tokens {input.tokens:q}"
        " --head {input.head:q}"
        " --run {input.run:q}"
        " --collection {input.collection:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"
