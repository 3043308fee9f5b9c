"""Find the best passages of one shard, where ``execution: search_by_shard`` has each searched by a separate job."""

from dataclasses import replace
from pathlib import Path

from encore.stages.base import Facts, Job, Roles, Stage
from encore.stages.needs import Needs, Size
from encore.stages.search import Search, Spec, asked, searching


class Inputs(Roles):
    """Those of ``search``, and one shard."""

    model: Path
    tokens: Path
    collection: Path
    shards: list[Path]
    subset: Path | None = None


class SearchShard(Stage[Spec, Inputs]):
    """Its folder is named after the shard: ``000-of-003``."""

    impl = Search.impl
    devices = "one GPU"
    unnamed = frozenset({"shards"})

    def needs(self, size: Size) -> Needs:
        passages = size.passages / int(size.folder.rpartition("-of-")[2])
        return replace(searching(self.spec, size, passages), disk=8 * size.lines)

    def make(self, job: Job) -> Facts:
        from encore.retrieval.nested_corpora import members
        from encore.retrieval.shard_hits import find_in_shard

        given, (shard,) = self.inputs, self.inputs.shards
        searched = members(given.subset, self.spec.size) if given.subset and self.spec.size else None
        places = (given.model, given.tokens, given.collection, shard, job.output)
        results, search = find_in_shard(asked(self.spec), *places, searched)
        return {"results": results, "search": search}


STAGE = SearchShard
