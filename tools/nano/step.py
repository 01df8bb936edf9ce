"""One training step of one variant, over fixed buffers on the device, so that it can be captured once and replayed."""
import gc
from typing import NamedTuple

import numpy as np
import torch

from draft import FINITE_NAMES, draft_loss, take
from regions import FN
from batches import ANSWER
from stats import answers_right

EAGER_STEPS = 3   # before a capture: they compile, tune and make the optimiser's state
SLOTS = 3         # pinned copies of a batch; also how far the host may run ahead


class Variant(NamedTuple):
    """What a step computes. draft: off, joint (beside the text model) or only (the text model frozen)."""
    T: int
    B: int
    select: bool
    quant: bool
    draft: str


def variant_of(phase, shape):
    """phase, shape: of schedule.json."""
    return Variant(shape[0], shape[1], phase["select"], phase["quant"], phase["draft"])


def text_forward(model, v, batch):
    """-> result of the model, row losses [B], squared log-sum-exp [B*(T-1)], predictions [B,T-1]."""
    model.quant = v.quant
    ids = batch["ids"].long()
    r = model(ids, select=v.select, kl_pos=batch["kl_pos"] if v.draft != "only" else None)
    y = ids[:, 1:]
    nll, square, pred = FN["head_loss"](r["h"][:, :-1].reshape(-1, model.c.dim), model.head, y.reshape(-1))
    return r, (nll.view(y.shape) * batch["weights"][:, 1:]).sum(1), square, pred.view(y.shape)


def draft_forward(model, v, batch, result, through):
    """through: gradients reach the text model by its features."""
    joint = v.draft == "joint"
    main = result["main"] if joint and through else result["main"].detach()
    return draft_loss(model, batch["ids"].long(), result["h"].detach(), main, batch["anchors"])


class Step:
    """run() is backward(), the sum of gradients and expert loads over all peers, update(); the first and the last are captured."""

    def __init__(self, model, optimizer, stats, options, variant, peers):
        self.model, self.optimizer, self.stats, self.o, self.v, self.peers = model, optimizer, stats, options, variant, peers
        device = model.embed.device
        self.cuda = device.type == "cuda"
        B, T = variant.B, variant.T
        shapes = dict(ids=((B, T), torch.int32), weights=((B, T), torch.float32), kinds=((B, T), torch.uint8),
                      task=((B,), torch.int64), anchors=((B, options.blocks // B), torch.int64),
                      kl_pos=((min(options.kl, T),), torch.int64))
        self.batch = {k: torch.zeros(s, dtype=d, device=device) for k, (s, d) in shapes.items()}
        self.slots = [({k: torch.zeros(s, dtype=d, pin_memory=self.cuda) for k, (s, d) in shapes.items()},
                       torch.cuda.Event() if self.cuda else None) for _ in range(SLOTS)]
        self.count, self.graph, self.capturing = 0, None, options.graph and self.cuda   # graph: of backward and of update
        self.shared = None   # flat F32: gradients, then expert loads
        self.rng = np.random.default_rng(options.seed)

    def run(self, arrays, rate):
        """arrays: a batch of batches.Batches; rate: the learning rate."""
        self.load(arrays)
        self.optimizer.set_rate(rate)
        if self.capturing and self.graph is None and self.count == EAGER_STEPS:
            self.capture()
        backward, update = (graph.replay for graph in self.graph) if self.graph else (self.backward, self.update)
        backward()
        self.peers.add(self.shared)
        update()
        self.count += 1

    def load(self, arrays):
        slot, event = self.slots[self.count % SLOTS]
        if event:
            event.synchronize()
        stratum = self.v.T // len(slot["kl_pos"])
        positions = np.arange(len(slot["kl_pos"])) * stratum + self.rng.integers(0, stratum, len(slot["kl_pos"]))
        for name, host in slot.items():
            host.copy_(torch.from_numpy(positions if name == "kl_pos" else arrays[name]))
            self.batch[name].copy_(host, non_blocking=True)
        if event:
            event.record()

    def capture(self):
        """On failure training goes on without the graph."""
        gc.collect()
        torch.cuda.synchronize()
        graphs = []
        try:
            for part in (self.backward, self.update):
                graphs.append(torch.cuda.CUDAGraph())
                # Other threads (a watchdog of the peers) may call CUDA meanwhile.
                with torch.cuda.graph(graphs[-1], stream=torch.cuda.current_stream(), capture_error_mode="thread_local"):
                    part()
            self.graph = graphs
        except Exception as error:
            self.capturing = False
            for p in self.model.parameters():
                p.grad = None
            torch.cuda.synchronize()
            print(f"no graph for {self.v}: {str(error)[:300]}", flush=True)

    def backward(self):
        m, v, o, batch = self.model, self.v, self.o, self.batch
        r, row_loss, square, pred = text_forward(m, v, batch)
        self.stats.text(batch["task"], row_loss.detach(), *self.answers(pred), r)
        loss = 0.0
        if v.draft != "only":
            loss = row_loss.mean() + o.z * square.mean() + (r["kl"].sum() if r["kl"] is not None else 0.0)
        if v.draft != "off":
            d = draft_forward(m, v, batch, r, o.draft_through)
            self.stats.draft(batch["task"], take(batch["kinds"], batch["anchors"] + 1) == ANSWER, d)
            loss = loss + (o.draft_weight if v.draft == "joint" else 1.0) * d["loss"]
        loss.backward()
        if v.draft == "only":
            for p in m.text_parameters():
                p.grad = None
        self.parts = [p for p in m.parameters() if p.grad is not None]
        self.loads = ([(m.layers, r["load"])] if v.draft != "only" else []) + ([(m.mtp, d["load"])] if v.draft != "off" else [])
        self.shared = torch.cat([p.grad.flatten() for p in self.parts] + [load.float().flatten() for _, load in self.loads])
        for p in self.parts:
            p.grad = None

    def update(self):
        """From what all have, their sum in `shared`."""
        if self.peers.world > 1:
            self.shared.mul_(1 / self.peers.world)
        sizes = [p.numel() for p in self.parts] + [load.numel() for _, load in self.loads]
        pieces = self.shared.split(sizes)
        for p, piece in zip(self.parts, pieces):
            p.grad = piece.view_as(p)
        for (layers, load), piece in zip(self.loads, pieces[len(self.parts):]):
            self.balance(layers, piece.view_as(load))
        self.optimizer.step()

    def answers(self, pred):
        return answers_right(pred, self.batch["ids"].long()[:, 1:], self.batch["kinds"][:, 1:])

    @torch.no_grad()
    def balance(self, layers, load):
        """Router biases move towards experts with less work."""
        for layer, mine in zip(layers, load):
            layer.gate_bias += self.o.bias_rate * torch.sign(mine.mean() - mine)

    def first_not_finite(self):
        """Names what is wrong in the current batch, for the message of a run that stops. (Gradient mode stays on: the compiled
        training graphs are reused, and it is they that went wrong.)"""
        m, v = self.model, self.v
        for name, p in [*m.named_parameters(), *m.named_buffers()]:
            if p.is_floating_point() and not torch.isfinite(p).all():
                return f"parameter {name}"
        trace = []
        m.quant = v.quant
        r = m(self.batch["ids"].long(), select=v.select, trace=trace)
        for l, X in enumerate(trace):
            if not torch.isfinite(X).all():
                return f"residual streams before layer {l}"
        for name in ("h", "main"):
            if not torch.isfinite(r[name]).all():
                return name
        if v.draft != "off":
            finite = draft_loss(m, self.batch["ids"].long(), r["h"].detach(), r["main"].detach(), self.batch["anchors"])["finite"]
            for name, good in zip(FINITE_NAMES, finite.tolist()):
                if not good:
                    return name
        return "no tensor of the forward pass: a gradient"
