"""How hyper-parameters are chosen: equally many trials for every row of a table, on the validation role alone."""
