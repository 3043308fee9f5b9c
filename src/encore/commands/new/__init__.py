"""``encore new``: a run's file for your own collection."""
