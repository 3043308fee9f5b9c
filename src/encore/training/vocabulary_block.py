"""Positions whose logits over a vocabulary an accelerator keeps at once; without torch, also for estimates."""

BLOCK = 1 << 28  # bytes of logits in single precision; see below
TILE = 128  # rows that matrix products on tensor cores come in


def positions_at_once(vocabulary: int) -> int:
    """Positions whose logits fill a block: 2,176 over BERT's 30,522 pieces.

    That is little next to what an encoder keeps, and enough for each block's products to fill a GPU, and to cost more
    than adding its gradient [V, H] of the word embeddings to that of the blocks before.
    """
    return max(BLOCK // (4 * vocabulary) // TILE, 1) * TILE
