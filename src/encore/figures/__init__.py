"""Figures of ``papers/<paper>/figures.yaml``: each one's slice of the plan, and the artifacts that it reads.

A kind of figure is a model in ``figure_entries.py``, a function here that plans it, and a module of
``reporting/drawings/`` that draws it.
"""

from encore.figures.slices import figure_plan, figure_reads, refuse_name, wanted_figures

__all__ = ["figure_plan", "figure_reads", "refuse_name", "wanted_figures"]
