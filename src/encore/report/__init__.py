"""The report: one page that shows whatever was made, with the papers' numbers beside it, and works from disk."""
