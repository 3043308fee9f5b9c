"""What a change of the configuration would cost and change, without making it."""
