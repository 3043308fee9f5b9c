"""The number of steps of a training, and the learning rate at each of them."""

import math

from encore.config.entries import Step


def total_steps(step: Step, examples: int) -> int:
    """Optimiser steps: the step's own number, or its epochs of the scale's size, or of the data's.

    An epoch is a pass over the examples, its last batch filled up.
    """
    if step.steps is not None:
        return step.steps
    assert step.epochs is not None  # which the plan refuses
    per_epoch = step.steps_per_epoch or math.ceil(examples / step.batch)
    return max(1, math.ceil(step.epochs * per_epoch))


def learning_rate(step: Step, done: int, total: int) -> float:
    """Learning rate after ``done`` of ``total`` steps: linear warm-up, then the step's schedule."""
    warmup = math.ceil(step.warmup * total) if step.warmup < 1 else min(int(step.warmup), total)
    if done < warmup:
        return step.learning_rate * (done + 1) / warmup
    left = 1 - (done - warmup) / max(1, total - warmup)
    shares = {"linear": left, "cosine": 0.1 + 0.9 * 0.5 * (1 - math.cos(math.pi * left)), "constant": 1.0}
    return step.learning_rate * shares[step.schedule]
