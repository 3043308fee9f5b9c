"""Figures of ``papers/<paper>/figures.yaml``: each one's slice of the plan, and the artifacts that it reads.

A kind of figure is a model in ``config/figures.py``, a function here that plans it, and a module of
``reporting/figures/`` that draws it.
"""

from encore.plan.figures.slices import figure_plan, figure_reads, refuse_name

__all__ = ["figure_plan", "figure_reads", "refuse_name"]
