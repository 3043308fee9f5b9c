"""The papers' figures and our own, drawn from their slices of the plan: one module for each kind."""
