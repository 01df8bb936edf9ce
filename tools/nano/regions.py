"""Parts of a layer as plain functions of tensors, compiled once each and shared by all layers.

Shapes: X [B,T,streams,D] residual streams, h [B,T,D] input of a sub-layer, q [B,H,T,d], kv [B,T,d]
(K = V), glob [B,n,d] compressed entries, sel [B,T,n] uint8 selection, lse [B,H,T] log-sum-exp without
the sink. Matrices are [out, in] as in the checkpoint. quant = the inference grids are on.
"""
import torch
import torch.nn.functional as F

from numerics import BF16, F32, act4_e8m0, act8, rms, rope, weight4, weight8


def W8(w, quant):
    return (weight8(w) if quant else w).to(BF16)


def hc_in(X, pre, fn, base, scale, norm, hc_eps):
    """Streams -> sub-layer input, post, Sinkhorn logits, next pre (model.md 3.2)."""
    n = X.shape[-2]
    u = (pre.unsqueeze(-1) * X.float()).sum(-2).to(BF16)
    f = X.flatten(-2).float()
    m = F.linear(f, fn) * torch.rsqrt(f.square().mean(-1, keepdim=True) + 1e-20)
    pn = torch.sigmoid(m[..., :n] * scale[0] + base[:n]) + hc_eps
    post = 2 * torch.sigmoid(m[..., n:2 * n] * scale[1] + base[n:2 * n])
    L = (m[..., 2 * n:] * scale[2] + base[2 * n:]).unflatten(-1, (n, n))
    return rms(u, norm), post, L.contiguous(), pn


def hc_out(X, y, post, C):
    f = X.float()
    n = X.shape[-2]
    out = [post[..., j, None] * y.float() + sum(C[..., i, j, None] * f[..., i, :] for i in range(n)) for j in range(n)]
    return torch.stack(out, -2).to(BF16)


def attn_in(h, wq_a, q_norm, wq_b, wkv, kv_norm, cos, sin, heads, quant):
    """-> q [B,H,T,d], own rows kv [B,T,d], qr."""
    a = act8(h) if quant else h
    qr = rms(F.linear(a, W8(wq_a, quant)), q_norm)
    qa = act8(qr) if quant else qr
    q = F.linear(qa, W8(wq_b, quant)).unflatten(-1, (heads, -1))
    q = rope(q, cos.unsqueeze(-2), sin.unsqueeze(-2)).transpose(1, 2)
    kv = rope(rms(F.linear(a, W8(wkv, quant)), kv_norm), cos, sin)
    return q.contiguous(), act8(kv) if quant else kv, qa


def attn_out(o, lse, sink, wo_a, wo_b, cos, sin, groups, quant):
    """o [B,H,T,d] without sink, lse [B,H,T] -> y [B,T,D]."""
    o = (o.float() * torch.sigmoid(lse - sink.view(1, -1, 1)).unsqueeze(-1)).to(BF16).transpose(1, 2)
    o = rope(o, cos.unsqueeze(-2), sin.unsqueeze(-2), inverse=True).flatten(2).unflatten(-1, (groups, -1))
    z = torch.einsum("btgi,gri->btgr", o, W8(wo_a, quant).unflatten(0, (groups, -1))).flatten(2)
    return F.linear(act8(z) if quant else z, W8(wo_b, quant))


def compress(h, wkv, wgate, norm, ratio):
    """-> unrotated latent [B, T//ratio, d]."""
    if ratio == 1:
        return rms(F.linear(h, wkv.to(BF16)), norm)
    n = h.shape[1] // ratio
    w = torch.cat((wkv, wgate))
    ab = F.linear(h[:, :n * ratio].float(), w).unflatten(1, (n, ratio))
    a, b = ab.chunk(2, -1)
    return rms((b.softmax(2) * a).sum(2).to(BF16), norm)


def index_keys(latent, wk, k_norm, cos, sin, quant):
    k = rope(rms(F.linear(latent, wk.to(BF16)), k_norm), cos, sin)
    return act4_e8m0(k) if quant else k


def index_query(h, qr, wq_b, wproj, cos, sin, heads, quant):
    q = F.linear(qr, W8(wq_b, quant)).unflatten(-1, (heads, -1))
    q = rope(q, cos.unsqueeze(-2), sin.unsqueeze(-2))
    d = q.shape[-1]
    w = F.linear(h, wproj.to(BF16)).float() * (d ** -0.5 * heads ** -0.5)
    return act4_e8m0(q) if quant else q, w


def index_scores(iq, iw, ik):
    """[B,Q,Hi,di], [B,Q,Hi], [B,n,di] -> [B,Q,n] F32."""
    s = torch.einsum("bqhd,bnd->bqhn", iq, ik)
    return (F.relu(s).float() * iw.unsqueeze(-1)).sum(2)


def topk_mask(s, k, iters=24):
    """Mask of the k largest per row by bisection on the value (ties at the threshold may add a few); -inf never selected."""
    ok = s > -1e30
    lo = torch.where(ok, s, torch.inf).amin(-1, keepdim=True)
    hi = s.amax(-1, keepdim=True) + 1e-6
    few = ok.sum(-1, keepdim=True) <= k
    a, b = lo, hi
    for _ in range(iters):
        m = (a + b) * 0.5
        c = (s >= m).sum(-1, keepdim=True) >= k
        a, b = torch.where(c, m, a), torch.where(c, b, m)
    return ok & ((s >= a) | few)


def select_mask(iq, iw, ik, ratio, k, cand, make_cand, cand_size, cand_blocks):
    """-> (selection uint8 [B,T,n], candidate mask or None)."""
    s = index_scores(iq, iw, ik)
    T, n = s.shape[1:]
    q = torch.arange(T, device=s.device)[:, None]
    j = torch.arange(n, device=s.device)[None]
    s = s.masked_fill(j >= (q + 1) // ratio, float("-inf"))
    new = cand
    if make_cand:
        pad = -n % cand_size
        b = F.pad(s, (0, pad), value=float("-inf")).unflatten(-1, (-1, cand_size)).amax(-1)
        newest = (((q + 1) // ratio - 1).clamp(min=0) // cand_size)
        forced = torch.arange(b.shape[-1], device=s.device)[None] == newest
        bm = topk_mask(torch.where(forced, 1e20, b), cand_blocks)
        new = bm.unsqueeze(-1).expand(*bm.shape, cand_size).flatten(-2)[..., :n]
    elif cand is not None:
        s = s.masked_fill(~cand, float("-inf"))
    return topk_mask(s, k).to(torch.uint8), new


def kl_target(q, glob, lse, sink, pos, ratio, scale):
    """Attention mass on each compressed entry, summed over heads, for sampled queries: [B,Q,n] (no gradient)."""
    s = torch.einsum("bhqd,bnd->bhqn", q, glob).float() * scale
    tot = torch.logaddexp(lse, sink.view(1, -1, 1))
    p = torch.exp(s - tot.unsqueeze(-1))
    vis = torch.arange(glob.shape[1], device=q.device)[None] < ((pos + 1) // ratio)[:, None]
    return p.sum(1).masked_fill(~vis, 0.0)


def index_kl(target, iq, iw, ik, pos, ratio, k):
    s = index_scores(iq, iw, ik)
    vis = torch.arange(ik.shape[1], device=s.device)[None] < ((pos + 1) // ratio)[:, None]
    t = target / (target.sum(-1, keepdim=True) + 1e-9)
    lp = torch.log_softmax(s.masked_fill(~vis, -1e30), -1)
    kl = (t * (torch.log(t + 1e-9) - lp)).masked_fill(~vis, 0.0).sum(-1)
    top = topk_mask(s.detach().masked_fill(~vis, float("-inf")), k)
    return kl.mean(), (t * top).sum(-1).mean()          # loss; share of the attention mass that a top-k selection would keep


def route(x, gate, bias, k, scale):
    """-> dense weights [N,E] (0 = not chosen), F32."""
    s = torch.sqrt(F.softplus(F.linear(x.float(), gate.float())) + 1e-12)
    left = (s + bias).detach()
    hit = torch.zeros_like(left)
    e = torch.arange(s.shape[-1], device=s.device)
    for _ in range(k):
        one = (e == left.argmax(-1, keepdim=True)).to(left.dtype)
        hit = hit + one
        left = left - one * 1e9
    w = s * hit
    return w / (w.sum(-1, keepdim=True) + 1e-20) * scale, hit


def swiglu(g, t, limit):
    g, t = g.float(), t.float()
    if limit > 0:
        g, t = g.clamp(max=limit), t.clamp(-limit, limit)
    return F.silu(g) * t


def moe(x, gate, bias, w1, w3, w2, s1, s3, s2, k, scale, limit, quant):
    """All experts as one wide SwiGLU whose hidden units are scaled by the routing weight (0 for experts not chosen).
    At 24 experts of width 64 this is cheaper than sorting tokens. x [N,D] -> y [N,D], load [E]."""
    E, I, D = w1.shape
    w, hit = route(x, gate, bias, k, scale)
    a = act8(x) if quant else x
    q = (lambda v: weight4(v)) if quant else (lambda v: v)
    g = F.linear(a, q(w1).reshape(E * I, D).to(BF16)).unflatten(-1, (E, I))
    t = F.linear(a, q(w3).reshape(E * I, D).to(BF16)).unflatten(-1, (E, I))
    h = (swiglu(g, t, limit) * w.unsqueeze(-1)).to(BF16).flatten(-2)
    y = F.linear(act8(h) if quant else h, q(w2).permute(1, 0, 2).reshape(D, E * I).to(BF16))
    hs = swiglu(F.linear(a, W8(s1, quant)), F.linear(a, W8(s3, quant)), limit).to(BF16)
    ys = F.linear(act8(hs) if quant else hs, W8(s2, quant))
    return y + ys, hit.sum(0)


def engram_mix(X, rows, wkv, qw, kw, quant):
    """X [B,T,4,D], rows [B,T,cols*dim] (BF16) -> X."""
    n, D = X.shape[-2:]
    kv = F.linear(rows, W8(wkv, quant))
    key, val = kv[..., :n * D].unflatten(-1, (n, D)).float(), kv[..., n * D:].float()
    f = X.float()
    dot = (f * (qw * kw).float() * key).sum(-1) * torch.rsqrt(f.square().mean(-1) + 1e-20) * \
        torch.rsqrt(key.square().mean(-1) + 1e-20) * D ** -0.5
    gate = torch.sigmoid(torch.copysign(torch.sqrt(dot.abs().clamp(min=1e-6)), dot))
    return (f + gate.unsqueeze(-1) * val.unsqueeze(-2)).to(BF16)


def attention_ref(q, kv, glob, sel, window, ratio, scale):
    """Explicit softmax. q [B,H,T,d], kv [B,T,d], glob [B,n,d] or None, sel uint8 [B,T,n] or None -> o, lse."""
    T = q.shape[2]
    i = torch.arange(T, device=q.device)
    m = (i[:, None] >= i[None]) & (i[:, None] - i[None] < window)
    k, m = kv, m[None]
    if glob is not None:
        j = torch.arange(glob.shape[1], device=q.device)
        v = (j[None] < ((i + 1) // ratio)[:, None])[None]
        if sel is not None:
            v = v & (sel > 0)
        k = torch.cat((kv, glob), 1)
        m = torch.cat((m.expand(v.shape[0], -1, -1), v), -1)
    s = torch.einsum("bhqd,bkd->bhqk", q.float(), k.float()) * scale
    s = s.masked_fill(~m[:, None], float("-inf"))
    lse = torch.logsumexp(s, -1)
    return torch.einsum("bhqk,bkd->bhqd", torch.exp(s - lse.unsqueeze(-1)), k.float()).to(BF16), lse


_MASKS = {}


def block_mask(T, n, window, ratio, dev):
    from torch.nn.attention.flex_attention import create_block_mask
    key = (T, n, window, ratio)
    if key not in _MASKS:
        def mod(b, h, q, k):
            own = (k <= q) & (q - k < window)
            if n == 0:
                return own
            return torch.where(k < T, own, k - T < (q + 1) // ratio)
        _MASKS[key] = create_block_mask(mod, None, None, T, T + n, device=dev)
    return _MASKS[key]


def flex_plain(q, k, mask, scale):
    from torch.nn.attention.flex_attention import flex_attention
    return flex_attention(q, k, k, block_mask=mask, scale=scale, enable_gqa=True, return_lse=True)


def flex_select(q, k, sel, T, mask, scale):
    from torch.nn.attention.flex_attention import flex_attention

    def mod(s, b, h, i, j):
        c = torch.where(j >= T, j - T, 0)
        return torch.where((j < T) | (sel[b, i, c] > 0), s, -float("inf"))
    return flex_attention(q, k, k, score_mod=mod, block_mask=mask, scale=scale, enable_gqa=True, return_lse=True)


def head_loss(h, head, y):
    """h [N,D] normed, y [N] -> negative log likelihood [N], squared log-sum-exp [N], argmax [N]."""
    logits = F.linear(h, head.to(BF16)).float()
    lse = torch.logsumexp(logits, -1)
    return lse - logits.gather(-1, y.unsqueeze(-1))[..., 0], lse.square(), logits.argmax(-1)


def draft_attention(q, rows, own, visible, scale):
    """Blocks of K rows that see all of their own rows and the committed ones before them.
    q [H,N,K,d], rows [N,W,d] committed, visible [N,W], own [N,K,d] -> o [H,N,K,d], lse [H,N,K]."""
    k = torch.cat((rows, own), 1).float()
    s = torch.einsum("hnkd,nwd->hnkw", q.float(), k) * scale
    mask = torch.cat((visible, torch.ones_like(own[..., 0], dtype=torch.bool)), 1)
    s = s.masked_fill(~mask[None, :, None], float("-inf"))
    lse = torch.logsumexp(s, -1)
    return torch.einsum("hnkw,nwd->hnkd", torch.exp(s - lse.unsqueeze(-1)), k).to(BF16), lse


REGIONS = ("hc_in", "hc_out", "attn_in", "attn_out", "compress", "index_keys", "index_query", "select_mask", "kl_target",
           "index_kl", "moe", "engram_mix", "flex_plain", "flex_select", "head_loss", "draft_attention")
FN = {name: globals()[name] for name in REGIONS}


def compile_regions():
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.cache_size_limit = 64
    for name in REGIONS:
        FN[name] = torch.compile(globals()[name], dynamic=False)


def attention(q, kv, glob, sel, window, ratio, scale):
    if not q.is_cuda:
        return attention_ref(q, kv, glob, sel, window, ratio, scale)
    T, n = q.shape[2], 0 if glob is None else glob.shape[1]
    m = block_mask(T, n, window, ratio, q.device)
    k = (kv if glob is None else torch.cat((kv, glob), 1)).unsqueeze(1)
    if sel is None:
        return FN["flex_plain"](q, k, m, scale)
    return FN["flex_select"](q, k, sel, T, m, scale)
