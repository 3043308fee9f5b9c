"""``python -m encore.cli``, for jobs, whose path need not have ``encore``."""

from encore.cli import main

main()
