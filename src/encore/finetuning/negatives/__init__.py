"""Negatives for fine-tuning, from runs, from files, and from what collections were published with."""
