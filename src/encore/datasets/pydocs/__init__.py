"""Known-item search over docstrings: real text that every installation has.

A docstring's first sentence is the query, the beginning of what follows is the passage, and See Also entries are graded
judgments. The texts are those of the standard library and of installed packages; the same versions give the same bytes.
"""
