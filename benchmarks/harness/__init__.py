"""What the benchmarks share: made-up texts, clocks, and those that are measured."""
