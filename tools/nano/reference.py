"""The model with every rounding of the official arithmetic, for checks on a CPU; no gradients, no speed.

model.py sums all experts in one product, rounds attention twice and keeps its probabilities in F32, because that trains
faster. Here every product, probability and expert is rounded where the official code rounds it (model.md 3 and 6): BF16
products summed in F32 and rounded once, FP8 products in blocks of 32, softmax over blocks of 64 slots with BF16
probabilities, each expert's row in BF16, index scores in BF16, and ties go to the lowest index.

A sequence is computed in any pieces; rows are kept by absolute position. T rows, H heads, d width of a head, D hidden.
"""
import torch
import torch.nn.functional as F

from model import Streams
from numerics import BF16, F32, act4_e4m3, act4_e8m0, act8, rms, rope

SLOTS = 64          # keys per block of the softmax
NONE = -float("inf")


def linear(x, w):
    """BF16 product: F32 sums, one rounding."""
    return F.linear(x.float(), w).to(BF16)


def linear8(x, w):
    """FP8 product: each 32 of the inner dimension exactly, the blocks added in order in F32, one rounding."""
    a = act8(x).float()
    blocks = [F.linear(a[..., k:k + 32], w[:, k:k + 32]) for k in range(0, w.shape[1], 32)]
    total = torch.zeros_like(blocks[0])
    for block in blocks:
        total = total + block
    return total.to(BF16)


def attend(q, keys, visible, sink):
    """q [T,H,d], keys [T,S,d] (also the values), visible [T,S], sink [H] -> o [T,H,d]."""
    q, keys = q.float(), keys.float()
    top = torch.full(q.shape[:2], -1e30)
    total, o = torch.zeros_like(top), torch.zeros_like(q)
    for at in range(0, keys.shape[1], SLOTS):
        k = keys[:, at:at + SLOTS]
        s = torch.einsum("thd,tsd->ths", q, k) * q.shape[-1] ** -0.5
        s = s.masked_fill(~visible[:, None, at:at + SLOTS], NONE)
        new = torch.maximum(top, s.amax(-1))
        p, decay = torch.exp(s - new.unsqueeze(-1)), torch.exp(top - new)
        total = total * decay + p.sum(-1)
        o = o * decay.unsqueeze(-1) + torch.einsum("ths,tsd->thd", p.to(BF16).float(), k)
        top = new
    return (o / (total + torch.exp(sink - top)).unsqueeze(-1)).to(BF16)


def best(scores, k):
    """scores [T,n] -> the k largest of each row, best first, -1 where there are fewer, and the gap to the next one."""
    if scores.shape[1] <= k:
        scores = F.pad(scores, (0, k + 1 - scores.shape[1]), value=NONE)
    values, order = scores.sort(dim=-1, descending=True, stable=True)
    gaps = torch.where(values[:, k] == NONE, torch.inf, values[:, k - 1] - values[:, k])
    return torch.where(values[:, :k] == NONE, -1, order[:, :k]), gaps


def ascending(chosen):
    """Rows of indices sorted, -1 last."""
    last = torch.iinfo(chosen.dtype).max
    sorted_ = torch.where(chosen < 0, last, chosen).sort(-1).values
    return torch.where(sorted_ == last, -1, sorted_)


class Tap:
    """Sees what passes through a run, and may replace what it returns. Rows [T,..] are those of the run."""

    def streams(self, l, X, pre):
        """Before layer l, before its engram; l = number of layers: after the last one."""
        return X, pre

    def engram(self, l, rows, X):
        """Table rows [T,columns] and the streams behind them."""

    def middle(self, l, X, pre):
        """After the attention of layer l."""

    def selection(self, l, chosen, gaps, least):
        """Entries [T,top-k] of index source l, ascending, -1 last; score of the worst one, its distance to the next."""
        return chosen

    def blocks(self, kept):
        """Candidate blocks, bool [T,blocks]."""

    def routes(self, l, chosen, gaps):
        """Experts [T,top-k] ascending; distance of the worst one to the next."""

    def main(self, hidden):
        """Draft input [T,3D]."""
        return hidden


class Reference:
    """One sequence through a filled model.Model."""

    def __init__(self, model):
        self.m, self.c = model, model.c
        self.ids = torch.zeros(0, dtype=torch.long)
        self.rows = {}            # window rows [n,d] of a text layer l, or of draft block ("draft", i)
        self.open = {}            # kv source -> inputs whose group is not complete
        self.entries, self.keys = {}, {}     # kv source -> entries [n,d], index keys [n,index dim]

    @torch.no_grad()
    def run(self, ids, tap=None):
        """The next tokens [T] -> logits [T,V]."""
        c, tap = self.c, tap or Tap()
        at = torch.arange(len(self.ids), len(self.ids) + len(ids))
        self.ids = torch.cat((self.ids, torch.as_tensor(ids, dtype=torch.long)))
        s, mains = Streams(self.m.embed[self.ids[at]].to(BF16), c), []
        for l, layer in enumerate(self.m.layers):
            s.X, s.pre = tap.streams(l, s.X, s.pre)
            if l in c.eng_layers:
                s.X = self._engram(l, layer, at, s.X, tap)
            if l in c.targets:
                mains.append(s.X.float().mean(1).to(BF16))
            s.leave(self._attention(l, layer, s.enter(layer, "attn"), at, tap))
            tap.middle(l, s.X, s.pre)
            s.leave(self._experts(layer, s.enter(layer, "ffn"), lambda *route, l=l: tap.routes(l, *route)))
        s.X, s.pre = tap.streams(c.layers, s.X, s.pre)
        if c.drafts:
            self._draft_rows(tap.main(torch.cat(mains, -1)), at)
        return self.m.logits(rms(s.collapse(), self.m.norm))

    @torch.no_grad()
    def propose(self, anchor, choose=lambda k, logits: int(logits.argmax())):
        """The draft behind `anchor`, the token that follows the sequence -> logits [K,V], confidence logits [K]."""
        c, K, n = self.c, self.c.draft_block, len(self.ids)
        ids = torch.full((K,), c.noise)
        ids[0] = anchor
        s = Streams(self.m.embed[ids].to(BF16), c)
        at = torch.arange(n, n + K)
        for i, layer in enumerate(self.m.mtp):
            q, own, _ = self._query(layer, s.enter(layer, "attn"), at, compressed=False)
            rows, visible = self._window(("draft", i), torch.full((K,), n - 1))
            keys = torch.cat((rows, own.expand(K, -1, -1)), 1)
            visible = torch.cat((visible, torch.ones(K, K, dtype=torch.bool)), 1)
            s.leave(self._output(layer, attend(q, keys, visible, layer.attn_sink), at, compressed=False))
            s.leave(self._experts(layer, s.enter(layer, "ffn")))
        hidden, prev, out = s.collapse(), anchor, []
        for k in range(K):
            logits, confidence = self.m.draft_logits(hidden[k], torch.tensor(prev))
            out.append((logits, confidence))
            prev = choose(k, logits)
        return torch.stack([o[0] for o in out]), torch.stack([o[1] for o in out])

    def _turn(self, x, at, compressed, inverse=False):
        """Rotates x [T,d] or [T,H,d] by positions at [T]; the angle is an F32 product."""
        angle = (at.to(F32)[:, None] * self.m.freqs[compressed]).double()
        cos, sin = angle.cos().float(), angle.sin().float()
        if x.dim() == 3:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return rope(x, cos, sin, inverse)

    def _query(self, layer, h, at, compressed):
        """-> q [T,H,d], window rows [T,d], low-rank query [T,q_lora]."""
        qr = rms(linear8(h, layer.wq_a), layer.q_norm)
        q = linear8(qr, layer.wq_b).unflatten(-1, (self.c.heads, -1))
        kv = rms(linear8(h, layer.wkv), layer.kv_norm)
        return self._turn(q, at, compressed), act8(self._turn(kv, at, compressed)), qr

    def _output(self, layer, o, at, compressed):
        o = self._turn(o, at, compressed, inverse=True).flatten(1).unflatten(-1, (self.c.o_groups, -1))
        w = layer.wo_a.unflatten(0, (self.c.o_groups, -1))
        z = torch.cat([linear(o[:, g], w[g]) for g in range(self.c.o_groups)], -1)
        return linear8(z, layer.wo_b)

    def _keep(self, kept, key, rows):
        kept[key] = torch.cat((kept[key], rows)) if key in kept else rows

    def _window(self, key, last):
        """Slots of the window that ends at positions last [T]: rows [T,window,d], oldest first, and which are there."""
        at = (last - self.c.window + 1).clamp(min=0)[:, None] + torch.arange(self.c.window)
        there = at <= last[:, None]
        return self.rows[key][torch.where(there, at, 0)], there

    def _attention(self, l, layer, h, at, tap):
        c, r = self.c, layer.ratio
        q, kv, qr = self._query(layer, h, at, r > 0)
        self._keep(self.rows, l, kv)
        keys, visible = self._window(l, at)
        if r:
            if l in c.kv_src:
                self._compress(l, layer, h)
            if l in c.idx_src:
                self.chosen = tap.selection(l, *self._select(l, layer, h, qr, at, tap))
            entries = self.entries[c.source(l)]
            keys = torch.cat((keys, entries[self.chosen.clamp(min=0)]), 1)
            visible = torch.cat((visible, self.chosen >= 0), 1)
        return self._output(layer, attend(q, keys, visible, layer.attn_sink), at, r > 0)

    def _compress(self, l, layer, h):
        """Completed groups become entries and index keys."""
        r = layer.ratio
        h = torch.cat((self.open[l], h)) if l in self.open else h
        n = len(h) // r
        self.open[l] = h[n * r:]
        if r == 1:
            latent = linear(h, layer.c_wkv)
        else:
            x = h[:n * r].float().unflatten(0, (n, r))
            share = F.linear(x, layer.c_wgate).softmax(1)
            latent = (share * F.linear(x, layer.c_wkv)).sum(1).to(BF16)
        latent = rms(latent, layer.c_norm)
        first = len(self.entries[l]) if l in self.entries else 0
        at = torch.arange(first, first + n) * r
        key = rms(linear(latent, layer.i_wk), layer.i_knorm)
        self._keep(self.keys, l, act4_e8m0(self._turn(key, at, True)))
        self._keep(self.entries, l, act4_e4m3(self._turn(latent, at, True)))

    def _scores(self, l, layer, h, qr, at):
        """Index scores [T,n] of the visible entries."""
        c, keys = self.c, self.keys[self.c.source(l)]
        q = linear8(qr, layer.i_wqb).unflatten(-1, (c.idx_heads, -1))
        q = act4_e8m0(self._turn(q, at, True))
        w = linear(h, layer.i_wproj) * (c.idx_dim ** -0.5 * c.idx_heads ** -0.5)
        dots = torch.einsum("thd,nd->thn", q.float(), keys.float()).to(BF16)
        scores = (dots.relu() * w.unsqueeze(-1)).float().sum(1).to(BF16).float()
        return scores.masked_fill(torch.arange(len(keys)) >= ((at + 1) // layer.ratio)[:, None], NONE)

    def _select(self, l, layer, h, qr, at, tap):
        scores = self._scores(l, layer, h, qr, at)
        if l == self.c.cand_src:
            self.candidates = self._blocks(scores, (at + 1) // layer.ratio)
            tap.blocks(self.candidates)
        elif self.c.cand_src is not None and l > self.c.cand_src:
            inside = self.candidates.repeat_interleave(self.c.cand_size, 1)[:, :scores.shape[1]]
            scores = scores.masked_fill(~inside, NONE)
        chosen, gaps = best(scores, self.c.idx_topk)
        least = scores.gather(1, chosen.clamp(min=0)).masked_fill(chosen < 0, torch.inf).amin(-1)
        return ascending(chosen), gaps, least

    def _blocks(self, scores, visible):
        """Candidate blocks [T,blocks]: the best by their best entry; the newest one always."""
        size = self.c.cand_size
        block = F.pad(scores, (0, -scores.shape[1] % size), value=NONE).unflatten(-1, (-1, size)).amax(-1)
        newest = (visible - 1).clamp(min=0) // size
        block[torch.arange(len(block)), newest] = torch.inf
        kept, _ = best(block, self.c.cand_blocks)
        mask = torch.zeros(len(block), block.shape[1] + 1, dtype=torch.bool)
        mask.scatter_(1, torch.where(kept < 0, block.shape[1], kept), True)
        return mask[:, :-1]

    def _experts(self, layer, h, tap=lambda *route: None):
        c = self.c
        s = torch.sqrt(F.softplus(F.linear(h.float(), layer.gate)))
        chosen, gaps = best(s + layer.gate_bias, layer.topk)
        tap(ascending(chosen), gaps)
        w = s.gather(1, chosen)
        w = torch.zeros_like(s).scatter(1, chosen, w / (w.sum(-1, keepdim=True) + 1e-20) * c.route_scale)
        y = torch.zeros(h.shape)
        for e in range(len(layer.gate)):
            at = (chosen == e).any(-1).nonzero()[:, 0]
            if len(at):
                y[at] += self._expert(h[at], layer.w1[e], layer.w3[e], layer.w2[e], w[at, e, None]).float()
        return (y + self._expert(h, layer.s1, layer.s3, layer.s2, 1).float()).to(BF16)

    def _expert(self, h, w1, w3, w2, weight):
        g, t = linear8(h, w1).float(), linear8(h, w3).float()
        if self.c.limit > 0:
            g, t = g.clamp(max=self.c.limit), t.clamp(-self.c.limit, self.c.limit)
        return linear8((weight * (F.silu(g) * t)).to(BF16), w2)

    def _engram(self, l, layer, at, X, tap):
        n, D = X.shape[1:]
        rows = self.m.engram_ids(self.c.eng_layers.index(l), self.ids[None])[0, at]
        kv = linear8(layer.e_table[rows].to(BF16).flatten(1), layer.e_wkv).float()
        key, value, f = kv[:, :n * D].unflatten(-1, (n, D)), kv[:, n * D:], X.float()
        dot = (f * (layer.e_q * layer.e_k) * key).sum(-1) * torch.rsqrt(f.square().mean(-1) + 1e-20) * \
            torch.rsqrt(key.square().mean(-1) + 1e-20) * D ** -0.5
        gate = torch.sigmoid(torch.copysign(torch.sqrt(dot.abs().clamp(min=1e-6)), dot))
        X = (f + gate.unsqueeze(-1) * value.unsqueeze(1)).to(BF16)
        tap.engram(l, rows, X)
        return X

    def _draft_rows(self, main, at):
        x = rms(linear8(main, self.m.main_proj), self.m.main_norm)
        for i, layer in enumerate(self.m.mtp):
            rows = rms(linear8(x, layer.wkv), layer.kv_norm)
            self._keep(self.rows, ("draft", i), act8(self._turn(rows, at, False)))
