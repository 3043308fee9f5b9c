"""Known-item search over docstrings of the standard library and of seven packages: the collections that Encore ships.

A docstring's first sentence is the query, the beginning of what follows is the passage, and See Also entries are graded
judgments. Equal versions of Python and of the packages give equal bytes.
"""
