"""Scores of (query, passage) pairs by a trained model of any kind: the basis of rerankers and teachers."""

from pathlib import Path

from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.scoring.scorer import Scorer
from encore.models import checkpoint, embed


def open_scorer(model: Path, store: TokenStore) -> Scorer:
    """Open a model folder by its kind of scorer: a vector a text, late interaction, or a cross-encoder."""
    from encore.finetuning.scoring.cross_encoder import CrossEncoderScorer
    from encore.finetuning.scoring.late_interaction import LateInteractionScorer
    from encore.finetuning.scoring.vector import VectorScorer

    kinds: dict[str, type[Scorer]] = {
        "vector": VectorScorer,
        "late-interaction": LateInteractionScorer,
        "cross-encoder": CrossEncoderScorer,
    }
    use, encoder = checkpoint.load_use(model), embed.load_for_tokens(model, store).eval()
    if use.scorer.get("kind") not in kinds:
        raise EncoreError(f"{model} scores by {use.scorer.get('kind')!r}, which is unknown; make the model again")
    return kinds[use.scorer["kind"]](encoder, checkpoint.load_heads(model), use, store)
