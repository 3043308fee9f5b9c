"""What tested queries share with training: the text of a training query, or a document that answers one."""

import unicodedata
from collections.abc import Container
from dataclasses import dataclass

from encore.config.datasets import role_of, same_draw
from encore.data.collection import Collection
from encore.data.judgments import highest_graded

_ENDS = " .?!:;"  # which change no question


@dataclass(frozen=True)
class Overlap:
    """Tested queries that training has met.

    ``texts`` are those with the text of a training query. ``grades`` has, for those that judge a document relevant
    which is an answer to a training query, the highest grade that they give such a document.
    """

    texts: frozenset[str]
    grades: dict[str, int]

    def relevant(self, least: int = 1) -> set[str]:
        """Queries with such a document of that grade or a higher one."""
        return {query for query, grade in self.grades.items() if grade >= least}


def overlap_with_training(collection: Collection, split: str, held_out: Container[str] = ()) -> Overlap:
    """What a split's queries share with the training of its draw (``config.datasets.same_draw``), if there is any.

    The answers to a training query are its documents of its highest grade, as in fine-tuning. Texts are compared in
    their ``normal_form``. Queries ``held_out`` from training do not count as training queries.
    """
    texts = {query: normal_form(text) for query, text in collection.queries().items()}
    answers, asked = set[str](), set[str]()
    for training in collection.splits():
        if role_of(training) != "train" or not same_draw(training, split):
            continue
        for query, judged in collection.qrels(training).items():
            if query not in held_out:
                asked.add(texts[query])
                answers |= highest_graded(judged)
    queries = collection.query_ids(split)
    grades = collection.qrels(split) if collection.is_judged(split) else {}
    shared = {
        query: max((grade for name, grade in grades.get(query, {}).items() if name in answers), default=0)
        for query in queries
    }
    return Overlap(
        frozenset(query for query in queries if texts[query] in asked),
        {query: grade for query, grade in shared.items() if grade > 0},
    )


def own_documents(collection: Collection) -> int:
    """How many queries are documents, too: of the same id, and with the document's text or title and text."""
    queries = collection.queries()
    return sum(
        normal_form(queries[row["_id"]]) in {normal_form(row["text"]), normal_form(f"{row['title']} {row['text']}")}
        for row in collection.documents(queries)
    )


def normal_form(text: str) -> str:
    """A text in Unicode's form NFKC, without case, with one blank between words and without what ends a sentence."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(_ENDS)
