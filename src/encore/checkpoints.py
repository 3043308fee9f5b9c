"""Where a checkpoint's files lie: a folder, or Hugging Face's hub, from which they are fetched once."""

from __future__ import annotations

from pathlib import Path

from encore.errors import EncoreError

PATTERNS = ["config.json", "*.safetensors", "pytorch_model.bin", "tokenizer*.json", "vocab.txt"]


def locate(checkpoint: str) -> Path:
    """The folder of a checkpoint, given as a folder or as a hub's id (``bert-base-uncased``), fetched if need be.

    Raises:
        EncoreError: it is neither, or cannot be fetched.
    """
    if Path(checkpoint).is_dir():
        return Path(checkpoint)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(checkpoint, allow_patterns=PATTERNS))
    except Exception as error:  # network, names, permissions: the library raises a dozen kinds
        reason = " ".join(str(error).split())[:160]
        raise EncoreError(
            f"checkpoint {checkpoint!r} is no folder, and the hub did not give it ({reason}); "
            "correct the backbone's `checkpoint`, or download it where there is a network and name its folder"
        ) from error
