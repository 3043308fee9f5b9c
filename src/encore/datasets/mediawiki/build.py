"""The whole way from a dump to a collection in the common form."""

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

from encore.data.articles import article, write_article_collection
from encore.datasets.mediawiki import dump
from encore.datasets.mediawiki.links import Links
from encore.datasets.mediawiki.pages import Extracted, extract
from encore.storage.processes import shared_in_order

_TOLD = 100_000  # pages between two lines that say how far it is


def write_articles(source: Path, folder: Path, processes: int) -> dict[str, Any]:
    """Write the articles of a dump as a collection and return its counts.

    The dump is read once. What its pages say waits in a temporary file until all titles are known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = Extracted()
    print(f"reading {source}", flush=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        seen = 0
        for extracted in shared_in_order(extract, dump.parts(source), processes):
            known.add(extracted)
            file.write(extracted.rows)
            before, seen = seen, seen + len(extracted.titles) + sum(extracted.counts.values())
            if seen // _TOLD > before // _TOLD:
                print(f"{seen} pages", flush=True)
        print(f"{len(known.ids)} articles among {len(known.titles)} titles", flush=True)
        links = Links(known)
        statistics = {
            "pages": {**links.pages, **{name: known.counts[name] for name in ("other_namespaces", "other_models")}},
            "redirects_lost": links.lost,
            "links_removed": links.removed,  # filled while the articles are written
            "paragraphs_with_markup": known.counts["paragraphs_with_markup"],
        }
        file.seek(0)
        rows = gzip.GzipFile(fileobj=file)
        articles = (
            article(page, title, sections, links.of(number, written))
            for number, (page, title, sections, written) in enumerate(map(json.loads, rows))
            if number not in links.repeated
        )
        return write_article_collection(folder, articles, statistics, processes)
