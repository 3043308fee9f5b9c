"""The deep audit: runs are evaluated again, and a sample of their queries is searched again in the stored indexes.

So a score or a run that was forged together with every digest above it is found. Models, indexes and collections are
taken as stored: nothing is trained, encoded or downloaded again.
"""

import gzip
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from encore import stages
from encore.commands.audit.findings import AuditReport, Finding, in_words
from encore.data.collection import Collection, topics
from encore.data.rankings import Ranking, Run
from encore.data.runs import RUN, TEXT, read_header, read_run
from encore.data.trec_runs import write_trec
from encore.errors import EncoreError
from encore.evaluation import judging
from encore.evaluation.check_from_files import check_scores
from encore.evaluation.scores import FILE as SCORES
from encore.evaluation.scores import Scores, read_scores, write_scores
from encore.retrieval.fusion import align, fuse
from encore.retrieval.java import NoJavaError
from encore.stages import fuse as fusing
from encore.stages import lucene_search, search, search_index
from encore.stages.evaluate import Evaluate
from encore.stages.tune_fusion import read_weight
from encore.storage import manifest
from encore.storage.files import canonical, sha256
from encore.storage.machine import is_of_machine
from encore.storage.manifest import has_no_vectors
from encore.storage.root import manifests_behind, product_manifests

TOLERANCE = {"fp32": 1e-4}  # of a score, relative above 1; other machines round otherwise
COARSE = 2e-2  # the same for lower precisions
BY_TREC_EVAL = "queries that trec_eval judged"
Spec = dict[str, Any]
Inputs = dict[str, list[Path]]  # folders, by the kind of artifact: "models", "runs"


def check_deeply(report: AuditReport, queries: int) -> None:
    """Evaluate and search again what is behind the products in ``results/``, and add what differs to the findings.

    The report's ``scope`` then says in one line what was verified and what was not.

    Args:
        queries: the most queries of a run that are searched again, drawn at random each time.
    """
    bad, counts = {finding.place for finding in report.findings}, Counter[str]()
    for place in manifests_behind(product_manifests()):
        folder = Path(place).parent
        if Path(place).name == manifest.MANIFEST and str(folder) not in bad:
            try:
                counts[_check(folder, queries, report, counts)] += 1
            except NoJavaError as error:
                report.leave_out(str(folder / RUN), str(error))
            except Exception as error:  # whatever damage raises
                if is_of_machine(error):
                    raise
                report.findings.append(Finding(str(folder), f"{folder} cannot be made again: {in_words(error)}"))
    report.scope = (
        f"deep: {counts['evaluated']} runs evaluated again, "
        f"{counts[BY_TREC_EVAL]:,} of their queries also by trec_eval; "
        f"{counts['searched']} searched again for up to {queries} queries each; nothing was trained or encoded again"
    )


def _check(folder: Path, queries: int, report: AuditReport, counts: Counter[str]) -> str:
    """What was done with an artifact, by the kind of its folder; what differs is a finding."""
    record, kind = manifest.read_manifest(folder), folder.parts[1]
    stage, spec = record["stage"], record["spec"]
    inputs: Inputs = {}
    for name in record["inputs"]:
        inputs.setdefault(Path(name).parts[1], []).append(Path(name).parent)
    for hits in inputs.get("hits", []):  # of a shard that a separate job searched
        behind = (Path(name).parent for name in manifest.read_manifest(hits)["inputs"])
        inputs.setdefault("indexes", []).extend(each for each in behind if each.parts[1] == "indexes")
    if kind == "scores":
        found = _evaluated(folder, record, inputs, counts)
        report.findings += [Finding(str(folder), reason) for reason in found]
        return "evaluated"
    if kind != "runs":
        return ""
    if (folder / TEXT).is_file():
        report.findings += [Finding(str(folder), reason) for reason in _other_text(folder)]
    if stage not in SEARCHED:
        report.leave_out(str(folder / RUN), f"the stage {stage} is not run again")
    elif any(map(has_no_vectors, inputs.get("indexes", []))):
        report.leave_out(str(folder / RUN), "the vectors that were searched are removed")
    else:
        report.findings += [Finding(str(folder), reason) for reason in _searched(folder, stage, spec, inputs, queries)]
        return "searched"
    return ""


def _evaluated(folder: Path, record: dict[str, Any], inputs: Inputs, counts: Counter[str]) -> list[str]:
    """Scores that differ from those computed again from the run, or from trec_eval's, whose queries are counted."""
    (run,), (collection,) = inputs["runs"], inputs["collections"]
    protocol = Evaluate.read(record["spec"], {"run": str(run), "collection": str(collection)}, str(folder)).spec
    with TemporaryDirectory() as place:
        write_scores(Path(place), judging.judge(read_run(run), Collection(collection), protocol))
        found, again = read_scores(folder), read_scores(Path(place))
    try:
        counts[BY_TREC_EVAL] += check_scores(run, collection, protocol, again, whole=True)
    except EncoreError as error:
        return [f"{folder}/{SCORES}: {error}"]
    if text := _other_scores(found, again):
        return [f"{folder}/{SCORES}: {text}"]
    if canonical(record["results"]) != canonical(judging.summary(again)):
        return [f"{folder}/{manifest.MANIFEST}: has other means than come out again"]
    return []


def _other_text(folder: Path) -> list[str]:
    """How a run's text differs from its matrices. Lines are compared: the same text may be compressed differently."""
    with TemporaryDirectory() as place:
        again = Path(place, TEXT)
        write_trec(again, read_run(folder), read_header(folder))
        if sha256(again) == sha256(folder / TEXT):
            return []
        with gzip.open(folder / TEXT) as found, gzip.open(again) as expected:
            for number, (one, other) in enumerate(zip_longest(found, expected, fillvalue=b""), start=1):
                if one != other:
                    what = f"line {number} is {one!r}, comes out again as {other!r}"
                    return [f"{folder}/{TEXT}: is not the text of {RUN}: {what}"]
    return []


def _other_scores(found: Scores, again: Scores) -> str:
    """The first score that differs, or nothing."""
    if found.keys() != again.keys():
        return "has other measures than come out again"
    for (split, measure), one in found.items():
        other = again[split, measure]
        if (one.queries, one.clusters) != (other.queries, other.clusters):
            return f"{measure} on {split} is of other queries than come out again"
        for part in ("values", "low", "high", "shared"):
            values, expected = getattr(one, part), getattr(other, part)
            for place in np.flatnonzero(~np.isclose(values, expected, rtol=0, atol=1e-9))[:1]:
                query, value = one.queries[place], float(values[place])
                return f"{measure} of {query} on {split} is {value:.4f}, comes out again as {expected[place]:.4f}"
    return ""


def _searched(folder: Path, stage: str, spec: Spec, inputs: Inputs, queries: int) -> list[str]:
    """How many queries of a sample have other answers than in the run, with the first of them."""
    run, kind = read_run(folder), stages.load(stage)
    fields: Any = kind.spec_of(spec, kind.roles.model_fields, str(folder))
    if stage == "fuse":
        known = sorted({query for place in inputs["runs"] for query in read_run(place)})
        inputs |= by_role(spec, inputs["runs"])
    else:
        known = topics(Collection(inputs["collections"][0]), fields.split, fields.queries, fields.sample)
    chosen = random.SystemRandom().sample(known, min(queries, len(known)))
    again = SEARCHED[stage](fields, inputs, chosen)
    tolerance = TOLERANCE.get(getattr(fields, "numerics", {}).get("precision", "fp32"), COARSE)
    wrong = [query for query in chosen if not _alike(run.get(query), again.get(query), tolerance)]
    if not wrong:
        return []
    return [
        f"{folder}/{RUN}: {len(wrong)} of {len(chosen)} queries are answered otherwise when searched again: {wrong[0]}"
    ]


def _alike(found: Ranking | None, again: Ranking | None, tolerance: float) -> bool:
    """True if two answers agree, except for rounding and the order of equal scores."""
    if not found or not again:
        return not found and not again
    room = tolerance * np.maximum(1, np.abs(again.scores))
    if len(found) != len(again) or not (np.abs(found.scores - again.scores) <= room).all():
        return False
    scores = dict(zip(again.documents, again.scores.tolist(), strict=True))
    last = float(again.scores[-1])  # what rounding pushed out had about this
    pairs = zip(found.documents, found.scores.tolist(), room.tolist(), strict=True)
    return all(abs(score - scores.get(document, last)) <= allowed for document, score, allowed in pairs)


def by_role(spec: Spec, runs: Sequence[Path]) -> Inputs:
    """The runs that were fused: which of them is weighted is in the spec alone."""
    by_name = {folder.name: folder for folder in runs}
    return {role: [by_name[spec[role]]] for role in ("sparse", "dense")}


def _by_vectors(spec: search.Spec | search_index.Spec, inputs: Inputs, chosen: Sequence[str]) -> Run:
    from encore.data.tokens import TokenStore
    from encore.retrieval import dense, indexing, nested_corpora

    store = TokenStore(inputs["tokens"][0])
    encoder = dense.opened(spec.numerics, inputs["models"][0], store)
    shards = dense.open_shards(inputs["indexes"], store.passages.names, encoder.dimension)
    vectors = dense.embed_queries(encoder, store, chosen, spec.query_length, spec.numerics)
    if isinstance(spec, search_index.Spec):
        (held,) = shards
        return indexing.search_approximate(indexing.ready(held, spec.search), chosen, vectors, spec.depth)
    members = nested_corpora.members(inputs["subsets"][0], spec.size) if "subsets" in inputs and spec.size else None
    return dense.Searcher(shards, next(encoder.parameters()).device, members).search(chosen, vectors, spec.depth)


def _by_bm25(spec: lucene_search.Spec, inputs: Inputs, chosen: Sequence[str]) -> Run:
    from encore.retrieval.lucene import search_bm25

    collection = Collection(inputs["collections"][0])
    texts = collection.queries()
    asked, language = {query: texts[query] for query in chosen}, collection.language
    return search_bm25(inputs["indexes"][0], asked, k1=spec.k1, b=spec.b, depth=spec.depth, language=language)


def _fused(spec: fusing.Spec, inputs: Inputs, chosen: Sequence[str]) -> Run:
    runs = [read_run(*inputs[role]) for role in ("sparse", "dense")]
    weight = read_weight(inputs["fusions"][0])
    return {query: fuse(align(*(run.get(query) for run in runs)), weight, spec.depth) for query in chosen}


SEARCHED: dict[str, Callable[[Any, Inputs, Sequence[str]], Run]] = {
    "search": _by_vectors,
    "search_index": _by_vectors,
    "lucene_search": _by_bm25,
    "fuse": _fused,
}
