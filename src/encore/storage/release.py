"""This release of Encore: its version, and its page. Both are named to every server that something is fetched from."""

__version__ = "0.1.0"
HOME = "https://github.com/encore-ir/encore"
