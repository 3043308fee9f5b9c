"""What was tried on the validation role, as it is recorded in ``config/tuning/``."""
