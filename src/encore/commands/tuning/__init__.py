"""How hyper-parameters are chosen: from the same values for all rows of a grid, on the validation role alone."""
