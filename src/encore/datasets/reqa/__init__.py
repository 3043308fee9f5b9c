"""Retrieval of answers (ReQA): which sentence answers a question, read together with its passage.

Questions with the place of their answer become tuples (question, sentence, passage); what is ranked are the pairs
(sentence, passage) of all passages.
"""
