"""The text model and its draft blocks in PyTorch, for training at small dimensions.

quant=False    plain BF16 compute with F32 master weights
quant=True     the inference grids, straight-through gradients (quantisation-aware training, and what
               the exported checkpoint computes)
select=False   dense attention over all compressed entries (the indexer warms up)
select=True    top-k selection, and the candidate filter behind its source layer
"""
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from numerics import BF16, F32, act4_e4m3, act8, rms, rope, rope_freqs, sinkhorn, weight8
from regions import FN, W8, attention

# Short name -> key of text_config.
CONFIG_KEYS = dict(
    vocab="vocab_size", dim="hidden_size", inner="moe_intermediate_size", layers="num_hidden_layers", heads="num_attention_heads",
    head_dim="head_dim", rope="qk_rope_head_dim", q_lora="q_lora_rank", o_lora="o_lora_rank", o_groups="o_groups", limit="swiglu_limit",
    theta="rope_theta", ctheta="compress_rope_theta", experts="n_routed_experts", topk="num_experts_per_tok",
    route_scale="routed_scaling_factor", window="sliding_window", ratios="compress_ratios", kv_src="kv_source_layer_ids",
    idx_src="index_source_layer_ids", idx_heads="index_n_heads", idx_dim="index_head_dim", idx_topk="index_topk",
    cand_src="candidate_source_layer_id", cand_blocks="candidate_topk_blocks", cand_size="candidate_block_size", hc="hc_mult",
    hc_iters="hc_sinkhorn_iters", hc_eps="hc_eps", eng_layers="engram_layer_ids", eng_start="engram_vocab_size",
    eng_heads="engram_n_heads", eng_dim="engram_head_dim", eng_pad="engram_pad_token_id", eng_classes="engram_compressed_vocab_size",
    drafts="num_nextn_predict_layers", draft_block="dspark_block_size", noise="dspark_noise_token_id",
    targets="dspark_target_layer_ids", markov="dspark_markov_rank", d_experts="dspark_n_routed_experts",
    d_topk="dspark_num_experts_per_tok")


class Config(SimpleNamespace):
    """The fields of CONFIG_KEYS, and yarn = (factor, beta_fast, beta_slow, original length)."""

    @staticmethod
    def from_hf(document):
        """document: a parsed config.json."""
        text = document["text_config"]
        scaling = text["rope_scaling"]
        return Config(**{name: text[key] for name, key in CONFIG_KEYS.items()},
                      yarn=[scaling[k] for k in ("factor", "beta_fast", "beta_slow", "original_max_position_embeddings")])

    def source(self, l):
        return max(s for s in self.kv_src if s <= l)


def P(*shape, std=None, fill=None):
    t = torch.empty(*shape)
    return nn.Parameter(t.fill_(fill) if fill is not None else t.normal_(0, std if std is not None else shape[-1] ** -0.5))


class Layer(nn.Module):
    """Parameters of text layer l, or of a draft block (l = None). The names are short; export.py maps them to the checkpoint's."""

    def __init__(self, c, l, experts=None, topk=None):
        super().__init__()
        self.l, self.c = l, c
        D, H, d, E = c.dim, c.heads, c.head_dim, experts or c.experts
        self.topk = topk or c.topk
        self.ratio = c.ratios[l] if l is not None else 0
        self.wq_a, self.q_norm, self.wq_b = P(c.q_lora, D), P(c.q_lora, fill=1.), P(H * d, c.q_lora)
        self.wkv, self.kv_norm = P(d, D), P(d, fill=1.)
        o = c.o_groups * c.o_lora
        self.wo_a, self.wo_b = P(o, H * d // c.o_groups), P(D, o, std=0.3 * o ** -0.5)
        self.attn_sink = P(H, fill=0.)
        self.attn_norm, self.ffn_norm = P(D, fill=1.), P(D, fill=1.)
        n = c.hc
        for s in ("attn", "ffn"):
            setattr(self, f"hc_{s}_fn", P(2 * n + n * n, n * D, std=0.02 * (n * D) ** -0.5))
            # start: pre reads the mean of the streams, post writes 1 to each, C near the identity
            base = torch.cat((torch.full((n,), -1.1), torch.zeros(n), 4 * torch.eye(n).flatten()))
            setattr(self, f"hc_{s}_base", nn.Parameter(base))
            setattr(self, f"hc_{s}_scale", P(3, fill=1.))
        self.gate = P(E, D)
        self.register_buffer("gate_bias", torch.zeros(E))
        self.w1, self.w3 = P(E, c.inner, D), P(E, c.inner, D)
        self.w2 = P(E, D, c.inner, std=0.3 * (c.inner * self.topk) ** -0.5)
        self.s1, self.s3, self.s2 = P(c.inner, D), P(c.inner, D), P(D, c.inner, std=0.3 * c.inner ** -0.5)
        if l is not None and l in c.kv_src:
            self.c_wkv, self.c_norm = P(d, D), P(d, fill=1.)
            if self.ratio > 1:
                self.c_wgate = P(d, D)
            self.i_wk, self.i_knorm = P(c.idx_dim, d), P(c.idx_dim, fill=1.)
        if l is not None and l in c.idx_src:
            self.i_wqb, self.i_wproj = P(c.idx_heads * c.idx_dim, c.q_lora), P(c.idx_heads, D)
        if l is not None and l in c.eng_layers:
            self.e_rows = sum(sum(p) for p in engram_primes(c)[c.eng_layers.index(l)])
            cols = 3 * c.eng_heads
            self.e_table = P(self.e_rows, c.eng_dim, std=0.5)
            self.e_wkv = P((n + 1) * D, cols * c.eng_dim)
            self.e_q, self.e_k = P(n, D, fill=1.), P(n, D, fill=1.)

    def hc_args(self, s):
        return (getattr(self, f"hc_{s}_fn"), getattr(self, f"hc_{s}_base"), getattr(self, f"hc_{s}_scale"),
                getattr(self, f"{s}_norm"), self.c.hc_eps)


def engram_primes(c):
    """Rows of the engram tables: consecutive unused primes >= eng_start: heads per n-gram size, layers in order."""
    def prime(v):
        return v > 1 and all(v % q for q in range(2, int(v ** 0.5) + 1))
    out, p = [], c.eng_start - 1
    for _ in c.eng_layers:
        per = []
        for _ in range(3):
            row = []
            while len(row) < c.eng_heads:
                p += 1
                if prime(p):
                    row.append(p)
            per.append(row)
        out.append(per)
    return out


def engram_multipliers(c, layer):
    g = np.random.default_rng(10007 * layer)
    half = (2 ** 63 - 1) // c.eng_classes // 2
    return [int(v) * 2 + 1 for v in g.integers(0, half, size=4, dtype=np.int64)]


class Streams:
    """Residual streams on their way through sub-layers: X [B,T,streams,D] and the mix `pre` [B,T,streams] of the next read."""

    def __init__(self, embedded, c):
        self.X = embedded.unsqueeze(-2).expand(*embedded.shape[:-1], c.hc, -1).contiguous()
        self.pre = torch.zeros(*embedded.shape[:-1], c.hc, device=embedded.device)
        self.pre[..., 0] = 1
        self.c = c

    def enter(self, layer, part):
        """-> input of the sub-layer `part`, "attn" or "ffn"; keeps what leave() needs."""
        h, self.post, logits, self.next_pre = FN["hc_in"](self.X, self.pre, *layer.hc_args(part))
        self.mix = sinkhorn(logits, self.c.hc_iters, self.c.hc_eps)
        return h

    def leave(self, y):
        self.X = FN["hc_out"](self.X, y, self.post, self.mix)
        self.pre = self.next_pre

    def collapse(self):
        return (self.pre.unsqueeze(-1) * self.X.float()).sum(-2).to(BF16)


class Index:
    """What an index source hands to the layers that share its selection, and the index loss they take part in."""

    def __init__(self, model, select, kl_pos, inject):
        self.m, self.c, self.select, self.kl_pos, self.inject = model, model.c, select, kl_pos, inject
        self.keys, self.selection, self.candidates, self.target = {}, None, None, None
        self.kl, self.recall, self.selections = [], [], {}

    def source(self, l, layer, h, qr, cos, sin):
        """Layer l chooses: its selection replaces the one before."""
        c, r = self.c, layer.ratio
        self.close()
        keys = self.keys[c.source(l)]
        q, w = FN["index_query"](h.detach(), qr.detach(), layer.i_wqb, layer.i_wproj, cos, sin, c.idx_heads, self.m.quant)
        if self.inject is not None:
            self.selection = self.inject[l]
        elif self.select:
            with torch.no_grad():
                make = l == c.cand_src
                use = self.candidates if l > c.cand_src else None
                self.selection, made = FN["select_mask"](q, w, keys, r, self.m.idx_topk, use, make, c.cand_size, self.m.cand_blocks)
                self.candidates = made if make else self.candidates
        self.selections[l] = self.selection
        if self.kl_pos is not None:
            self.query = q[:, self.kl_pos], w[:, self.kl_pos], keys
            self.ratio, self.target = r, 0.0

    def watch(self, layer, q, glob, lse):
        """Adds the attention mass of a layer on each entry to the target of the index loss."""
        if self.kl_pos is None:
            return
        with torch.no_grad():
            at = self.kl_pos
            self.target = self.target + FN["kl_target"](q[:, :, at], glob, lse[:, :, at], layer.attn_sink, at, layer.ratio,
                                                        self.c.head_dim ** -0.5)

    def close(self):
        if self.target is None:
            return
        kl, recall = FN["index_kl"](self.target, *self.query, self.kl_pos, self.ratio, self.m.idx_topk)
        self.kl.append(kl)
        self.recall.append(recall)
        self.target = None


class Model(nn.Module):
    def __init__(self, c, classes):
        """classes: engram class of every token id, [vocab]."""
        super().__init__()
        self.c, self.quant = c, False
        self.embed, self.head, self.norm = P(c.vocab, c.dim, std=0.5), P(c.vocab, c.dim, std=0.02), P(c.dim, fill=1.)
        self.layers = nn.ModuleList(Layer(c, l) for l in range(c.layers))
        self.mtp = nn.ModuleList(Layer(c, None, c.d_experts, c.d_topk) for _ in range(c.drafts))
        self.main_proj, self.main_norm = P(c.dim, len(c.targets) * c.dim), P(c.dim, fill=1.)
        self.mtp_norm = P(c.dim, fill=1.)
        self.mk_embed, self.mk_head = P(c.vocab, c.markov, std=0.5), P(c.vocab, c.markov, std=0.02)
        self.conf = P(1, c.dim + c.markov, std=0.02)
        self._constant("classes", torch.as_tensor(classes).long())
        self._constant("idx_topk", torch.tensor(c.idx_topk))        # on the device: no copy inside a step, no recompilation
        self._constant("cand_blocks", torch.tensor(c.cand_blocks))
        for i, l in enumerate(c.eng_layers):
            flat = [p for row in engram_primes(c)[i] for p in row]
            self._constant(f"eng_mul{i}", torch.tensor(engram_multipliers(c, l)))
            self._constant(f"eng_prime{i}", torch.tensor(flat))
            self._constant(f"eng_off{i}", torch.tensor([sum(flat[:k]) for k in range(len(flat))]))
        self.freqs = rope_freqs(c.rope, c.theta), rope_freqs(c.rope, c.ctheta, c.yarn)
        self._tables = {}

    def _constant(self, name, value):
        self.register_buffer(name, value, persistent=False)

    def text_parameters(self):
        draft = {id(p) for p in self.draft_parameters()}
        return [p for p in self.parameters() if id(p) not in draft]

    def draft_parameters(self):
        return [*self.mtp.parameters(), self.main_proj, self.main_norm, self.mtp_norm, self.mk_embed, self.mk_head, self.conf]

    def tables(self, T, device):
        """cos and sin [T, rope/2], without and with compression's base and YaRN."""
        if (T, device) not in self._tables:
            angles = [torch.arange(T, device=device, dtype=F32)[:, None] * f.to(device)[None] for f in self.freqs]
            self._tables[(T, device)] = [(a.cos(), a.sin()) for a in angles]
        return self._tables[(T, device)]

    def engram_ids(self, i, ids):
        """Row ids of engram table i: [B,T] -> [B,T,columns]."""
        c = self.c
        t = self.classes[ids]
        mul, prime, offset = getattr(self, f"eng_mul{i}"), getattr(self, f"eng_prime{i}"), getattr(self, f"eng_off{i}")
        v, cols = t * mul[0], []
        for k in range(1, 4):
            back = F.pad(t, (k, 0), value=c.eng_pad)[:, :t.shape[1]]
            v = v ^ (back * mul[k])
            s = slice((k - 1) * c.eng_heads, k * c.eng_heads)
            cols.append(v.unsqueeze(-1) % prime[s] + offset[s])
        return torch.cat(cols, -1)

    def engram(self, l, layer, ids, X):
        table = weight8(layer.e_table, 1) if self.quant else layer.e_table
        rows = F.embedding(self.engram_ids(self.c.eng_layers.index(l), ids), table).to(BF16).flatten(2)
        return FN["engram_mix"](X, act8(rows) if self.quant else rows, layer.e_wkv, layer.e_q, layer.e_k, self.quant)

    def experts(self, layer, h):
        y, load = FN["moe"](h.reshape(-1, h.shape[-1]), layer.gate, layer.gate_bias, layer.w1, layer.w3, layer.w2, layer.s1,
                            layer.s3, layer.s2, layer.topk, self.c.route_scale, self.c.limit, self.quant)
        return y.view(h.shape), load.detach()

    def entries(self, l, layer, h, cos, sin, index):
        """A source layer's compressed entries [B,n,d]; its index keys go to `index`."""
        r = layer.ratio
        latent = FN["compress"](h, layer.c_wkv, getattr(layer, "c_wgate", None), layer.c_norm, r)
        cos, sin = cos[:latent.shape[1] * r:r], sin[:latent.shape[1] * r:r]
        # the indexer must not shape the latent: it learns from the attention, not the other way round
        index.keys[l] = FN["index_keys"](latent.detach(), layer.i_wk, layer.i_knorm, cos, sin, self.quant)
        rotated = rope(latent, cos, sin)
        return act4_e4m3(rotated) if self.quant else rotated

    def forward(self, ids, select=False, kl_pos=None, inject=None, trace=None):
        """ids [B,T] -> h [B,T,D] normed hidden, main [B,T,3D] draft input, load [L,E] tokens per expert, and with kl_pos
        (positions [Q] at which the index loss is taken) kl and recall, one a source. inject: {layer: selection}."""
        c, quant = self.c, self.quant
        plain, compressed = self.tables(ids.shape[1], ids.device)
        s = Streams(F.embedding(ids, self.embed).to(BF16), c)
        index = Index(self, select, kl_pos, inject)
        glob, loads, mains = {}, [], []
        for l, layer in enumerate(self.layers):
            if trace is not None:
                trace.append(s.X)
            if l in c.eng_layers:
                s.X = self.engram(l, layer, ids, s.X)
            if l in c.targets:
                mains.append(s.X.float().mean(2).to(BF16))
            r = layer.ratio
            cos, sin = compressed if r else plain
            h = s.enter(layer, "attn")
            q, kv, qr = FN["attn_in"](h, layer.wq_a, layer.q_norm, layer.wq_b, layer.wkv, layer.kv_norm, cos, sin, c.heads, quant)
            if r and l in c.kv_src:
                glob[l] = self.entries(l, layer, h, cos, sin, index)
            if r and l in c.idx_src:
                index.source(l, layer, h, qr, cos, sin)
            g = glob[c.source(l)] if r else None
            o, lse = attention(q, kv, g, index.selection if r else None, c.window, r, c.head_dim ** -0.5)
            if r:
                index.watch(layer, q, g, lse)
            s.leave(FN["attn_out"](o, lse, layer.attn_sink, layer.wo_a, layer.wo_b, cos, sin, c.o_groups, quant))
            y, load = self.experts(layer, s.enter(layer, "ffn"))
            s.leave(y)
            loads.append(load)
        index.close()
        if trace is not None:
            trace.append(s.X)
        return dict(h=rms(s.collapse(), self.norm), main=torch.cat(mains, -1), load=torch.stack(loads),
                    kl=torch.stack(index.kl) if index.kl else None, recall=torch.stack(index.recall) if index.kl else None,
                    streams=s.X.detach().float().square().mean().sqrt(), selections=index.selections)

    def logits(self, h):
        return F.linear(h.float(), self.head.to(BF16).float())

    def draft(self, anchors, pos, main):
        """Draft blocks behind anchors [B,A] at positions pos [B,A], 1 <= pos; main [B,T,3D] of the text model. A block sees
        the committed rows of positions pos-window .. pos-1 and all rows of its own.
        -> collapsed hidden [B*A,block,D] before the norm, load of the experts [blocks,E]."""
        c, quant = self.c, self.quant
        (B, A), T, K, W = anchors.shape, main.shape[1], c.draft_block, c.window
        N = B * A
        cos, sin = self.tables(T + K, main.device)[0]
        mx = rms(F.linear(act8(main) if quant else main, W8(self.main_proj, quant)), self.main_norm)
        ids = torch.full((N, K), c.noise, device=main.device)
        ids[:, 0] = anchors.flatten()
        s = Streams(F.embedding(ids.view(1, N * K), self.embed).to(BF16), c)
        own = (pos.flatten()[:, None] + torch.arange(K, device=main.device)).flatten()
        at = pos.flatten()[:, None] - W + torch.arange(W, device=main.device)         # committed rows, [N,W]
        visible = at >= 0
        at = at.clamp(min=0) + (torch.arange(N, device=main.device) // A)[:, None] * T
        loads = []
        for layer in self.mtp:
            rows = rms(F.linear(act8(mx) if quant else mx, W8(layer.wkv, quant)), layer.kv_norm)
            rows = rope(rows, cos[:T], sin[:T])
            rows = (act8(rows) if quant else rows).flatten(0, 1)[at]
            h = s.enter(layer, "attn")
            q, kv, _ = FN["attn_in"](h, layer.wq_a, layer.q_norm, layer.wq_b, layer.wkv, layer.kv_norm, cos[own], sin[own],
                                     c.heads, quant)
            o, lse = FN["draft_attention"](q[0].unflatten(1, (N, K)), rows, kv[0].unflatten(0, (N, K)), visible, c.head_dim ** -0.5)
            s.leave(FN["attn_out"](o.flatten(1, 2)[None], lse.flatten(1, 2)[None], layer.attn_sink, layer.wo_a, layer.wo_b,
                                   cos[own], sin[own], c.o_groups, quant))
            y, load = self.experts(layer, s.enter(layer, "ffn"))
            s.leave(y)
            loads.append(load)
        return s.collapse()[0].unflatten(0, (N, K)), torch.stack(loads)

    def draft_logits(self, hidden, prev):
        """hidden [..,K,D], prev [..,K] (anchor, then the preceding drafted or true tokens) -> logits, confidence logit."""
        e = F.embedding(prev, self.mk_embed).to(BF16)
        logits = self.logits(rms(hidden, self.mtp_norm)) + F.linear(e.float(), self.mk_head.to(BF16).float())
        return logits, F.linear(torch.cat((hidden.float(), e.float()), -1), self.conf)[..., 0]
