"""The time of one query, and the size of an index; read by tables, and part of no other artifact.

Inputs come from the plan, by role: src/encore/plan/artifacts/scores.py says which folder each role is.
"""


rule measure_latency:
    """Time single queries in each stage of a system, after a warm-up, and measure the size of its index."""
    input:
        manifests(
            "latency/{system}/{measured}",
            "collection",
            "model",
            "tokens",
            "index",
            "sparse",
            "dense",
            "first",
            "shard*",
            "part*",
        ),
    output:
        latency="results/latency/{system}/{measured}/latency.json",
        manifest="results/latency/{system}/{measured}/manifest.json",
    log:
        "results/logs/measure_latency/{system}/{measured}.log",
    priority: 1  # before further vectors are made
    conda:
        "../../envs/environment.yaml"
    threads: threads_of("measure_latency") + 1  # the last is kept from jobs that would disturb it
    resources:
        **at_least("latency/{system}/{measured}", mem_mb=EXECUTION.java_memory_mb + 4_000, runtime=60),
        about=about_of("latency/{system}/{measured}"),
    params:
        spec=spec_of("latency/{system}/{measured}"),
    shell:
        f"{MAKE} measure_latency" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"
