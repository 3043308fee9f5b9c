"""The report: one page that shows whatever was made, with the papers' numbers next to it, and works from disk."""
