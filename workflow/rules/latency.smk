"""What one query takes, and how large an index is; read by tables, and part of no other artifact."""


rule measure_latency:
    """Time single queries in each stage of a system, after a warm-up, and weigh its index."""
    input:
        collection=made_from("results/latency/{system}/{measured}", "collection"),
        model=made_from("results/latency/{system}/{measured}", "model"),
        tokens=made_from("results/latency/{system}/{measured}", "tokens"),
        index=made_from("results/latency/{system}/{measured}", "index"),
        sparse=made_from("results/latency/{system}/{measured}", "sparse"),
        dense=made_from("results/latency/{system}/{measured}", "dense"),
        first=made_from("results/latency/{system}/{measured}", "first"),
        indexes=shards_of("results/latency/{system}/{measured}"),
        parts=each_of("results/latency/{system}/{measured}", "part"),
    output:
        latency="results/latency/{system}/{measured}/latency.json",
        manifest="results/latency/{system}/{measured}/manifest.json",
    log:
        "results/logs/measure_latency/{system}/{measured}.log",
    benchmark:
        "results/benchmarks/measure_latency/{system}/{measured}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 2  # it computes on those of `numerics`; the other is kept from jobs that would disturb it
    resources:
        mem_mb=escalate(PLAN.config.execution.java_memory_mb + 4_000),
        runtime=escalate(60),
        java_mb=PLAN.config.execution.java_memory_mb,
    params:
        spec=spec_of("results/latency/{system}/{measured}"),
    shell:
        "python workflow/scripts/measure_latency.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --model {input.model:q}"
        " --tokens {input.tokens:q}"
        " --index {input.index:q}"
        " --sparse {input.sparse:q}"
        " --dense {input.dense:q}"
        " --first {input.first:q}"
        " --indexes {input.indexes:q}"
        " --parts {input.parts:q}"
        " --memory-mb {resources.java_mb}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"
