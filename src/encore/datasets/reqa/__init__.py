"""Retrieval of answers (ReQA): which sentence answers a question, read together with the passage that it stands in.

Questions with the place of their answer become tuples (question, sentence, passage); what is ranked are the pairs
(sentence, passage) of all passages. ``tuples.py``, ``parts.py`` and ``distractors.py`` are of any source; ``pydocs.py``
makes passages and questions of docstrings, ``published.py`` of SQuAD and Natural Questions.
"""
