"""Write a collection's texts once as token ids, flat and memory-mapped; those of several as one are joined."""

import os
from pathlib import Path

from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import PLAIN, Needs, Size


class Spec(Fields):
    """The collection by the name of its folder, also where its parts are read."""

    collection: str
    prompts: dict[str, str] = {}  # before queries and passages, for tokenizers whose pieces may reach over their ends


class Inputs(Roles):
    """Texts and a vocabulary; of a joined collection, its parts and their tokens."""

    collection: Path | None = None
    parts: list[Path] = []
    part_tokens: list[Path] = []
    tokenizer: Path


class Tokens(Stage[Spec, Inputs]):
    """A token store (``data/tokens.py``)."""

    unnamed = frozenset({"parts", "part_tokens"})

    def needs(self, size: Size) -> Needs:
        tokens, disk = size.collection.tokens, 100 * size.passages + 2 * size.collection.tokens
        seconds = tokens / 300e3  # 360,000 of 60,000 passages; 900,000 in docs/performance.md
        return Needs(PLAIN + 60 * size.passages, disk, core_seconds=seconds, cores=size.cores)

    def make(self, job: Job) -> Facts:
        from encore.data.collection import Collection
        from encore.data.tokens import write_store
        from encore.datasets.joined_tokens import join_stores

        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the cores are the processes'
        if self.inputs.collection:
            texts, vocabulary = Collection(self.inputs.collection), self.inputs.tokenizer
            counts = write_store(texts, vocabulary, job.output, job.threads, self.spec.prompts)
        else:
            counts = join_stores(self.inputs.parts, self.inputs.part_tokens, job.output)
        for name, count in counts.items():
            print(f"{name}: {count}")
        return {"results": counts}


STAGE = Tokens
