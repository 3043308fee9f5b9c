"""A checkpoint's own vocabulary: a ``tokenizer.json``, only a ``vocab.txt``, as older checkpoints have it, or any
other files that Transformers can make a tokenizer of, such as SentencePiece's.
"""

from pathlib import Path

from tokenizers import Tokenizer, normalizers

from encore.config.checkpoints import CONFIG, FETCH_AGAIN, MODULES, TOKENIZER, TOKENIZER_SETTINGS, is_seed_encoder
from encore.config.published import use_of
from encore.data import vocabulary
from encore.errors import EncoreError
from encore.storage.files import read_object

SEED_MASK = "<mask>"  # what SEED-Encoder's tokenizer adds behind its file of pieces (its code, SEEDTokenizer)
READ_AS_BERT = (None, "bert", "distilbert", "electra")  # types of models whose vocab.txt is BERT's
SAMPLE = "a text, and another"


def save_checkpoint_tokenizer(checkpoint: Path, folder: Path) -> Tokenizer:
    """Write the tokenizer of a checkpoint's folder with the special tokens that it names; returns the tokenizer."""
    tokenizer, names = _read(checkpoint)
    vocabulary.save_tokenizer(tokenizer, folder, names)
    special = vocabulary.special_tokens(tokenizer, folder)
    framed, plain = tokenizer.encode(SAMPLE).ids, tokenizer.encode(SAMPLE, add_special_tokens=False).ids
    if framed != [special.cls, *plain, special.sep]:
        raise EncoreError(
            f"{checkpoint}: its tokenizer does not put a text between {tokenizer.id_to_token(special.cls)} and "
            f"{tokenizer.id_to_token(special.sep)} alone, as encoders do; name a checkpoint of an encoder"
        )
    return tokenizer


def load_checkpoint_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a checkpoint's folder."""
    return _read(folder)[0]


def _read(folder: Path) -> tuple[Tokenizer, dict[str, str]]:
    """The tokenizer of a checkpoint as Transformers and sentence-transformers read it, and its special tokens by role.

    Transformers decides by all its files, of which ``tokenizer.json`` may be overruled. Of a configuration without a
    type of model, which it cannot open, files are read here.
    """
    config, names = read_object(folder / CONFIG, FETCH_AGAIN), vocabulary.special_names(folder)
    if is_seed_encoder(config):
        return _seed_encoder(folder), dict(vocabulary.BERTS)
    own = None
    if (folder / TOKENIZER).is_file():
        own = vocabulary.load_tokenizer(folder)
    elif (folder / "vocab.txt").is_file() and config.get("model_type") in READ_AS_BERT:
        own = _of_pieces(folder)
    if own is not None and not config.get("model_type"):
        return own, names
    theirs, roles = _by_transformers(folder)
    if (folder / MODULES).is_file() and use_of(folder).get("do_lower_case"):
        _lower(theirs)
    if own is None or _settled(own) != _settled(theirs):
        print(f"{folder}: texts are read as Transformers reads them by all of its files", flush=True)
        own = theirs
    return own, {**names, **roles}


def _settled(tokenizer: Tokenizer) -> str:
    """All that a tokenizer does, but for cutting and padding."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return str(tokenizer.to_str())


def _lower(tokenizer: Tokenizer) -> None:
    """Lower case before all else, unless there is some already (sentence-transformers' ``Transformer``)."""
    usual = tokenizer.normalizer
    if usual is None or usual.normalize_str("A") != "a":
        rest = [] if usual is None else [usual]
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *rest])


def _of_pieces(folder: Path) -> Tokenizer:
    """BERT's tokenizer of a ``vocab.txt``.

    ``tokenizer_config.json`` says whether texts are lower-cased; they are without it, as in BERT's own tokenizer.
    """
    tokenizer = _build(folder, _pieces(folder))
    settings = read_object(folder / TOKENIZER_SETTINGS[0], FETCH_AGAIN)
    lower = bool(settings.get("do_lower_case", True))
    print(f"{folder / 'vocab.txt'}: texts are {'lower-cased' if lower else 'read as they are'}", flush=True)
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=lower,
        strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=bool(settings.get("tokenize_chinese_chars", True)),
    )
    return tokenizer


def _by_transformers(folder: Path) -> tuple[Tokenizer, dict[str, str]]:
    from transformers import AutoTokenizer

    try:
        loaded = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        roles = {role: str(name) for role, name in loaded.special_tokens_map.items() if role in vocabulary.ROLES}
        return Tokenizer.from_str(loaded.backend_tokenizer.to_str()), roles
    except Exception as error:  # many kinds, by what is missing
        reason = " ".join(str(error).split())[:160]
        raise EncoreError(f"{folder}: Transformers makes no tokenizer of it ({reason}); add tokenizer.json") from error


def _seed_encoder(folder: Path) -> Tokenizer:
    """SEED-Encoder's: lower case with its accents, and a mask behind the pieces, which is called [MASK] here.

    A [MASK] among its pieces was never trained; it takes the other's name.
    """
    ordered = _pieces(folder)
    if SEED_MASK not in ordered:
        ordered.append(SEED_MASK)
    swapped = {SEED_MASK: vocabulary.MASK, vocabulary.MASK: SEED_MASK}
    tokenizer = _build(folder, [swapped.get(piece, piece) for piece in ordered])
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=False, strip_accents=False, lowercase=True)
    return tokenizer


def _build(folder: Path, ordered: list[str]) -> Tokenizer:
    missing = [token for token in vocabulary.SPECIAL if token not in ordered]
    if missing:
        raise EncoreError(f"{folder / 'vocab.txt'} lacks {missing[0]}; take a BERT tokenizer")
    return vocabulary.build_tokenizer(ordered)


def _pieces(folder: Path) -> list[str]:
    path = folder / "vocab.txt"
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise EncoreError(f"{path} cannot be read ({error}); fetch the checkpoint again") from error
    pieces = [line.rstrip() for line in lines]
    first: dict[str, int] = {}
    for number, piece in enumerate(pieces, 1):
        if first.setdefault(piece, number) != number:
            raise EncoreError(f"{path}, line {number}: {piece!r} is in line {first[piece]} already; fix the file")
    return pieces
