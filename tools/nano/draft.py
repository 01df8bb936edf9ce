"""Loss of the draft blocks and of their confidence, and the temperatures that calibrate it.

A block proposes what the text model itself would say next. Labels are the text model's own greedy choices at the true
context; from the first position on where the row says something else, the row is not the model's own continuation, and
the block is not judged any more ("alive" ends).
"""
import math

import torch
import torch.nn.functional as F

from numerics import BF16
from regions import FN

DEPTH_WEIGHT = 0.8   # of a position against the one before it
TEMPERATURES = [2.0 ** (-3 + i / 8) for i in range(49)]
NUM_BINS = 10


def take(x, at):
    """x [B,T,..], at [B,..] positions -> [B,..,..]."""
    rows = torch.arange(x.shape[0], device=x.device).view(-1, *[1] * (at.dim() - 1))
    return x[rows, at]


def draft_loss(model, ids, hidden, main, anchors):
    """ids [B,T], hidden [B,T,D] of the text model (labels: no gradient), main [B,T,3D], anchors [B,A] positions with
    1 <= p < T - block.
    -> dict: loss (scalar); load; ok, alive [N,K] bool: the guess is the text model's, the context before it was its own too;
    confidence [N,K] logits; finite [4] 1 if main, labels, draft hidden, draft logits are."""
    c, K = model.c, model.c.draft_block
    at = anchors.unsqueeze(-1) + torch.arange(K, device=ids.device)              # [B,A,K]
    with torch.no_grad():
        target = F.linear(take(hidden, at).flatten(0, 1), model.head.to(BF16)).float()    # [N,K,V]
        label = target.argmax(-1)
        said = take(ids, at + 1).flatten(0, 1)
        alive = F.pad((label == said)[:, :-1].cumprod(-1), (1, 0), value=1).float()
    block, load = model.draft(take(ids, anchors), anchors, main)
    logits, confidence = model.draft_logits(block, take(ids, at).flatten(0, 1))
    ok = logits.argmax(-1) == label
    weight = alive * DEPTH_WEIGHT ** torch.arange(K, device=ids.device)
    nll = F.cross_entropy(logits.flatten(0, 1), label.flatten(), reduction="none").view_as(weight)
    overlap = overlap_of(logits.detach(), target)
    miss = F.binary_cross_entropy_with_logits(confidence, overlap, reduction="none")
    loss = (nll * weight).sum() / weight.sum() + (miss * alive).sum() / alive.sum()
    finite = torch.stack([torch.isfinite(x).all().float() for x in (main, target, block, logits)])
    return dict(loss=loss, load=load, ok=ok, alive=alive, confidence=confidence.detach(), finite=finite)


FINITE_NAMES = ("text features (main)", "labels' logits", "draft hidden", "draft logits")


def overlap_of(draft, target):
    """Label of the confidence: 1 - half the L1 distance of the two distributions, [N,K]."""
    with torch.no_grad():
        return 1 - 0.5 * (draft.softmax(-1) - target.softmax(-1)).abs().sum(-1)


def chain(ok, alive):
    """Accepted drafts [N,K]: a prefix of right guesses. A lower bound where `alive` ends early."""
    return (ok * alive).cumprod(-1)


def expected_calibration_error(p, happened):
    """p [n] in 0..1, happened [n] 0/1 -> mean over equal-width bins of |mean p - share|, weighted by their sizes."""
    which = (p * NUM_BINS).long().clamp(max=NUM_BINS - 1)
    total = 0.0
    for b in range(NUM_BINS):
        mine = which == b
        if mine.any():
            total += mine.float().mean().item() * (p[mine].mean() - happened[mine].mean()).abs().item()
    return total


def fit_temperatures(confidence, ok, alive):
    """Sequential scaling: position by position, the temperature that calibrates the product of the confidences so far.
    confidence [N,K] logits, ok [N,K], alive [N,K], on the host -> K temperatures, calibration error before, after."""
    accepted = chain(ok.float(), alive)
    temperatures, product, before, after = [], None, [], []
    for k in range(confidence.shape[1]):
        judged = alive[:, k] > 0
        known = torch.ones_like(accepted[:, 0]) if product is None else product

        def error(t):
            return expected_calibration_error((known * torch.sigmoid(confidence[:, k] / t))[judged], accepted[:, k][judged])
        best = min(TEMPERATURES, key=lambda t: (error(t), abs(math.log(t)))) if judged.any() else 1.0
        before.append(error(1.0) if judged.any() else 0.0)
        after.append(error(best) if judged.any() else 0.0)
        product = known * torch.sigmoid(confidence[:, k] / best)
        temperatures.append(round(best, 4))
    return temperatures, before, after
