"""Encore: five papers on pre-training dense retrievers, replayed from raw text to every table."""
