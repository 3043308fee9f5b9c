"""English Wikipedia from its XML dump: articles with sections, sentences and links, as texts to pre-train on.

The dump is read as a stream, page by page; what stays in memory is some tens of bytes a page, never a text.
"""
