"""Measure every pre-training objective, and MLM next to Hugging Face's Trainer, in one run; see README.md."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from encore.storage.program import run

import numpy as np
import torch
from harness import figures, machine, masks, record, texts, timing
from harness.figures import BASE, Measured
from harness.ours import Ours
from harness.peer import Peer
from harness.setting import SHAPES, Setting

from encore import objectives
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models.heads import MlmHead
from encore.models.start import initial_encoder

MLM = "MLM 15 %"  # what Trainer does
TOLERANCE = 1e-4  # of losses that must agree
POOL = 6  # batches of texts for the first of an epoch, since not every objective can use each
QUICK: dict[str, Any] = {"model": "nano", "vocabulary": 500, "length": 32, "batch": 4, "repetitions": 2, "steps": 1}


def main() -> None:
    options = _options()
    setting = Setting(**{key: getattr(options, key) for key in Setting.__dataclass_fields__})
    torch.set_num_threads(setting.threads)
    before = machine.load()
    with tempfile.TemporaryDirectory() as folder:
        count = (POOL + setting.steps - 1) * setting.batch
        store = texts.write(Path(folder), count, setting.length, setting.vocabulary, setting.full)
        for contents in measure(setting, store, options.only, options.peer):
            record.write(options.output, options.name, contents, before)  # stays if a later turn is ended
    contents["masks"] = masks.compare(setting, [QUICK["length"]] if options.quick else tuple(masks.AIMS))
    contents["goals"] += masks.goals(contents["masks"])
    record.write(options.output, options.name, contents, before)
    for part in ("objectives", "table4", "masks", "goals"):
        print("\n".join(["", *record.table(contents[part])]))


def measure(setting: Setting, store: TokenStore, only: Sequence[str], with_peer: bool) -> Iterator[dict[str, Any]]:
    """Train all of them in turns on the same texts from the same weights; after each turn, what was found so far.

    Raises:
        EncoreError: the same batch has another loss here than there.
    """
    encoder = initial_encoder(setting.shape(), 0)
    head = MlmHead(encoder.config)
    ours, left_out = _ours(setting, store, only, encoder, head)
    documents = [ours[0].task.example(row, np.random.default_rng(0)).ids for row in ours[0].texts.tolist()]
    peer = Peer(setting, documents, store, encoder, head) if with_peer else None
    losses = _agree(peer, ours[0]) if peer else {}
    runners: list[Peer | Ours] = [peer, *ours] if peer else [*ours]
    peaks = []
    for turn in range(setting.repetitions):
        peaks.append(timing.peak(setting.clock, setting.precision))
        for one in runners:
            print(f"turn {turn + 1}/{setting.repetitions}  {one.name}", flush=True)
            with contextlib.redirect_stdout(None):
                one.measure()
        peak = max(peaks)
        measured = [_measured(one, setting) for one in ours]
        rows = figures.rows(measured, peak)
        of_peer = _peer_figures(peer, measured[0], peak, setting, losses) if peer else None
        yield {
            "setting": setting.to_json(),
            "peak_gflops": figures.rounded(peak / 1e9),
            "lengths": texts.histogram(np.array([len(document) + 2 for document in documents])),
            "peer": of_peer,
            "objectives": rows,
            "table4": figures.table4(measured),
            "goals": figures.goals(rows, of_peer["ratio"] if of_peer else None, setting.model == "base"),
            "left_out": left_out,
        }


def _ours(
    setting: Setting, store: TokenStore, only: Sequence[str], encoder: Any, head: Any
) -> tuple[list[Ours], list[str]]:
    """Two kinds of MLM and each objective with its own defaults, on texts of any length; and what cannot run here."""
    found = [
        Ours("mlm", {}, setting, store, encoder, head, MLM),
        Ours("mlm", {"mask_ratio": 0.30, "whole_word": True}, setting, store, encoder, head, BASE),
    ]
    left_out = []
    for name in only or [name for name in objectives.names() if name != "mlm"]:
        fields = {"min_tokens": 1} if "min_tokens" in objectives.load(name).Fields.model_fields else {}
        try:
            found.append(Ours(name, fields, setting, store, encoder, head, name))
        except (EncoreError, NotImplementedError) as error:
            left_out.append(f"{name} ({error})")
    return found, left_out


def _measured(one: Ours, setting: Setting) -> Measured:
    """The best turn of an objective."""
    its = one.best()
    step, data = getattr(its.seconds, setting.clock), timing.best(one.data, setting.clock)
    shares = (its.wait / its.seconds.wall, its.launch / its.seconds.wall)
    return Measured(one.name, step, data, its.flops, setting.batch, *shares)


def _agree(peer: Peer, mlm: Ours) -> dict[str, float]:
    """The loss of one batch on both sides."""
    theirs, own = peer.batch()
    losses = {"loss": peer.loss(theirs), "our_loss": mlm.loss(own)}
    if abs(losses["our_loss"] - losses["loss"]) > TOLERANCE * losses["loss"]:
        raise EncoreError(
            f"the same batch has a loss of {losses['our_loss']} here and {losses['loss']} there: fix that"
        )
    return losses


def _peer_figures(peer: Peer, mlm: Measured, peak: float, setting: Setting, losses: dict[str, float]) -> dict[str, Any]:
    """The peer's figures; its utilisation counts the operations that are needed, those of our step."""
    seconds = timing.best(peer.steps, setting.clock)
    return {
        "name": peer.name,
        "step_seconds": figures.rounded(seconds),
        "samples_per_second": figures.rounded(setting.batch / seconds),
        "utilisation": figures.rounded(timing.utilisation(mlm.flops, seconds, peak)),
        "ratio": figures.rounded(seconds / mlm.step),
        **losses,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    gpu = torch.cuda.is_available()
    parser.add_argument("--model", choices=SHAPES, default="base" if gpu else "mini")
    parser.add_argument("--vocabulary", type=int, default=30522)
    parser.add_argument("--length", type=int, default=512 if gpu else 128, help="tokens, [CLS] and [SEP] included")
    parser.add_argument("--batch", type=int, default=64 if gpu else 16)
    parser.add_argument("--full", action="store_true", help="every text as long as may be")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16" if gpu else "fp32")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: on a busy machine, one thread")
    parser.add_argument("--repetitions", type=int, default=5, help="turns, of each of which the best counts")
    parser.add_argument("--steps", type=int, default=1, help="measured in each turn: as many batches")
    parser.add_argument("--only", nargs="*", default=[], metavar="OBJECTIVE", help="besides MLM; without: all")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="leave out Hugging Face's side")
    parser.add_argument("--quick", action="store_true", help="a minute model, to see that everything runs")
    record.add_flags(parser, "pretraining")
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
    return options


if __name__ == "__main__":
    run(main)
