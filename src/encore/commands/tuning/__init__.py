"""Hyper-parameters are chosen from equally many values for every row of a grid, on validation queries alone."""
