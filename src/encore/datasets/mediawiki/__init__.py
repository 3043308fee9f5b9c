"""MediaWiki's XML dumps: pages, their markup, and where links lead.

The dump is read as a stream, page by page; what stays in memory is some tens of bytes a page, never a text.
"""
