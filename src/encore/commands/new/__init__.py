"""``encore new``: a run's file for a collection of one's own."""
