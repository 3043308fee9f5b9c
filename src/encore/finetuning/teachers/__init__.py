"""Teachers' scores or vectors of training queries and passages, computed once for every student."""
