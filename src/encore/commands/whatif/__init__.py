"""What a change of the configuration would cost and change, told without making it."""
