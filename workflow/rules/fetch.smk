"""What comes from the network. No other rule touches it; these run where Snakemake runs: on a cluster, its login node."""

from encore.products.targets import downloads, everything_declared


rule fetch_source:
    """Download an entry of sources.yaml into data_root, after its terms were shown, and unpack it."""
    output:
        manifest="results/sources/{source}/manifest.json",
    log:
        "results/logs/fetch_source/{source}.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    resources:
        **by_attempt(mem_mb=4_000, runtime=24 * 60),
        about=about_of("sources/{source}"),
    params:
        spec=spec_of("sources/{source}"),
    shell:
        f"{MAKE} fetch_source"
        " --planned {params.spec:q}"
        " --output {output.manifest:q} 2>&1 | tee {log:q}; exit ${{PIPESTATUS[0]}}"


rule fetch_ir_datasets:
    """Let ir_datasets download what a dataset needs into data_root, and check that it is complete."""
    output:
        manifest="results/ir_datasets/{downloaded}/manifest.json",
    log:
        "results/logs/fetch_ir_datasets/{downloaded}.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    resources:
        **by_attempt(mem_mb=4_000, runtime=24 * 60),
        about=about_of("ir_datasets/{downloaded}"),
    params:
        spec=spec_of("ir_datasets/{downloaded}"),
    shell:
        f"{MAKE} fetch_ir_datasets"
        " --planned {params.spec:q}"
        " --output {output.manifest:q} 2>&1 | tee {log:q}; exit ${{PIPESTATUS[0]}}"


rule fetch_checkpoint:
    """Download the files of a model of Hugging Face's hub into data_root, all of one commit."""
    output:
        manifest="results/checkpoints/{checkpoint}/manifest.json",
    log:
        "results/logs/fetch_checkpoint/{checkpoint}.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    resources:
        **by_attempt(mem_mb=4_000, runtime=24 * 60),
        about=about_of("checkpoints/{checkpoint}"),
    params:
        spec=spec_of("checkpoints/{checkpoint}"),
    shell:
        f"{MAKE} fetch_checkpoint"
        " --planned {params.spec:q}"
        " --output {output.manifest:q} 2>&1 | tee {log:q}; exit ${{PIPESTATUS[0]}}"


rule fetch:
    """All that the declared tables need from the network, and nothing else; afterwards everything works offline."""
    input:
        lambda wildcards: in_one_line(downloads, PLAN),
    localrule: True
