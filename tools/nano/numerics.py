"""Number grids, norms, rotation and Sinkhorn of the architecture, for training.

Rounding to a grid passes gradients straight through. The grids are those of the checkpoint format and
of the engine's caches: FP8 e4m3 with one E8M0 scale per 32 (activations) or 32x32 (weights), FP4 e2m1
with E8M0 per 32 (experts, index keys) or E4M3 per 16 (global KV).
"""
import math

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # CPU only
    triton = None

F32, BF16 = torch.float32, torch.bfloat16


def pow2_ceil(x):
    """2^ceil(log2 x) from the exponent bits."""
    b = x.view(torch.int32)
    e = (b >> 23) + ((b & 0x7FFFFF) != 0).to(torch.int32)
    return (e << 23).view(F32)


def round_fp4(x):
    a = x.abs().clamp(max=6.0)
    q = torch.where(a < 2, torch.round(a * 2) * 0.5, torch.where(a < 4, torch.round(a), torch.round(a * 0.5) * 2))
    return torch.copysign(q, x)


def _ste(x, q):
    return x + (q - x).detach()


def act8(x):
    """FP8 e4m3 per 32 with power-of-two scale: Q8 of model.md 6.1."""
    g = x.detach().float().unflatten(-1, (-1, 32))
    s = pow2_ceil(g.abs().amax(-1, keepdim=True).clamp(min=1e-4) * (1 / 448))
    q = ((g / s).clamp(-448, 448).to(torch.float8_e4m3fn).float() * s).flatten(-2).to(x.dtype)
    return _ste(x, q)


def act4_e8m0(x):
    g = x.detach().float().unflatten(-1, (-1, 32))
    s = pow2_ceil(g.abs().amax(-1, keepdim=True).clamp(min=6 * 2.0 ** -126) * (1 / 6))
    return _ste(x, (round_fp4(g / s) * s).flatten(-2).to(x.dtype))


def act4_e4m3(x):
    g = x.detach().float().unflatten(-1, (-1, 16))
    s = (g.abs().amax(-1, keepdim=True).clamp(min=6 * 2.0 ** -9) / 6).clamp(max=448).to(torch.float8_e4m3fn).float()
    return _ste(x, (round_fp4(g / s) * s).flatten(-2).to(x.dtype))


def weight8(w, block=32):
    """FP8 weight grid, one E8M0 scale per 32x32 (block=1: per row and 32 columns, engram tables)."""
    o, i = w.shape
    g = w.detach().float().reshape(o // block, block, i // 32, 32)
    s = pow2_ceil(g.abs().amax((1, 3), keepdim=True).clamp(min=2.0 ** -100) * (1 / 448))
    return _ste(w, ((g / s).clamp(-448, 448).to(torch.float8_e4m3fn).float() * s).reshape(o, i))


def weight4(w):
    """FP4 weight grid, one E8M0 scale per row and 32 columns; the better of the two neighbouring scales (mean square error)."""
    g = w.detach().float().unflatten(-1, (-1, 32))
    s = pow2_ceil(g.abs().amax(-1, keepdim=True).clamp(min=2.0 ** -100) * (1 / 6))
    a = round_fp4(g / s) * s
    b = round_fp4(g / s * 2) * (s * 0.5)
    better = ((b - g) ** 2).sum(-1, keepdim=True) < ((a - g) ** 2).sum(-1, keepdim=True)
    return _ste(w, torch.where(better, b, a).flatten(-2))


def rms(x, g, eps=1e-20):
    f = x.float()
    return (f * torch.rsqrt(f.square().mean(-1, keepdim=True) + eps) * g.float()).to(BF16)


def rope_freqs(r, base, yarn=None):
    """Frequencies [r/2], F32, rounded after every operation as the official code does."""
    f = 1.0 / (base ** (torch.arange(0, r, 2, dtype=torch.float64) / r)).float()
    if yarn:
        factor, fast, slow, orig = yarn
        lo = max(math.floor(r * math.log(orig / (fast * 2 * math.pi)) / (2 * math.log(base))), 0)
        hi = min(math.ceil(r * math.log(orig / (slow * 2 * math.pi)) / (2 * math.log(base))), r - 1)
        s = 1 - ((torch.arange(r // 2, dtype=F32) - lo) / max(hi - lo, 1e-3)).clamp(0, 1)
        f = f / factor * (1 - s) + f * s
    return f


def rope(x, cos, sin, inverse=False):
    """Rotates the last 2*cos.shape[-1] dims, adjacent pairs; cos/sin broadcast against x[..., pairs]."""
    r = 2 * cos.shape[-1]
    a, b = x[..., :-r], x[..., -r:].float().unflatten(-1, (-1, 2))
    x0, x1 = b[..., 0], b[..., 1]
    if inverse:
        sin = -sin
    y = torch.stack((x0 * cos - x1 * sin, x0 * sin + x1 * cos), -1).flatten(-2)
    return torch.cat((a, y.to(x.dtype)), -1)


def sinkhorn_ref(L, iters, eps):
    c = L.softmax(-1) + eps
    c = c / (c.sum(-2, keepdim=True) + eps)
    for _ in range(iters - 1):
        c = c / (c.sum(-1, keepdim=True) + eps)
        c = c / (c.sum(-2, keepdim=True) + eps)
    return c


if triton is not None:
    @triton.jit
    def _sink_fwd(L, C, R, N, ITERS: tl.constexpr, EPS: tl.constexpr, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        i4 = tl.arange(0, 4)
        at = o[:, None, None] * 16 + i4[None, :, None] * 4 + i4[None, None, :]
        m3 = (o < N)[:, None, None] & (at >= 0)
        m2 = (o < N)[:, None] & (i4[None, :] >= 0)
        x = tl.load(L + at, mask=m3, other=0.0)
        x = tl.exp(x - tl.max(x, 2)[:, :, None])
        x = x / tl.sum(x, 2)[:, :, None] + EPS
        base = R + o[:, None] * ((2 * ITERS - 1) * 4) + i4[None, :]
        d = tl.sum(x, 1) + EPS
        tl.store(base, d, mask=m2)
        x = x / d[:, None, :]
        for t in range(ITERS - 1):
            d = tl.sum(x, 2) + EPS
            tl.store(base + (2 * t + 1) * 4, d, mask=m2)
            x = x / d[:, :, None]
            d = tl.sum(x, 1) + EPS
            tl.store(base + (2 * t + 2) * 4, d, mask=m2)
            x = x / d[:, None, :]
        tl.store(C + at, x, mask=m3)

    @triton.jit
    def _sink_bwd(C, R, G, DL, N, ITERS: tl.constexpr, EPS: tl.constexpr, B: tl.constexpr):
        o = tl.program_id(0) * B + tl.arange(0, B)
        i4 = tl.arange(0, 4)
        at = o[:, None, None] * 16 + i4[None, :, None] * 4 + i4[None, None, :]
        m3 = (o < N)[:, None, None] & (at >= 0)
        m2 = (o < N)[:, None] & (i4[None, :] >= 0)
        y = tl.load(C + at, mask=m3, other=0.0)
        g = tl.load(G + at, mask=m3, other=0.0)
        base = R + o[:, None] * ((2 * ITERS - 1) * 4) + i4[None, :]
        for s in range(ITERS - 1):
            t = ITERS - 2 - s
            d = tl.load(base + (2 * t + 2) * 4, mask=m2, other=1.0)
            g = (g - tl.sum(g * y, 1)[:, None, :]) / d[:, None, :]
            y = y * d[:, None, :]
            d = tl.load(base + (2 * t + 1) * 4, mask=m2, other=1.0)
            g = (g - tl.sum(g * y, 2)[:, :, None]) / d[:, :, None]
            y = y * d[:, :, None]
        d = tl.load(base, mask=m2, other=1.0)
        g = (g - tl.sum(g * y, 1)[:, None, :]) / d[:, None, :]
        p = y * d[:, None, :] - EPS
        tl.store(DL + at, p * (g - tl.sum(g * p, 2)[:, :, None]), mask=m3)

    class _Sinkhorn(torch.autograd.Function):
        """Each half step divides by stored sums, so the backward pass walks back with y*d and needs no other state."""
        @staticmethod
        def forward(ctx, L, iters, eps):
            L = L.contiguous()
            n = L.numel() // 16
            C = torch.empty_like(L)
            R = torch.empty(n, 2 * iters - 1, 4, device=L.device, dtype=F32)
            _sink_fwd[(triton.cdiv(n, 64),)](L, C, R, n, iters, eps, 64, num_warps=4)
            ctx.save_for_backward(C, R)
            ctx.k = (n, iters, eps)
            return C

        @staticmethod
        def backward(ctx, G):
            C, R = ctx.saved_tensors
            n, iters, eps = ctx.k
            DL = torch.empty_like(C)
            _sink_bwd[(triton.cdiv(n, 64),)](C, R, G.contiguous(), DL, n, iters, eps, 64, num_warps=4)
            return DL, None, None


def sinkhorn(L, iters, eps):
    if triton is not None and L.is_cuda:
        return _Sinkhorn.apply(L, iters, eps)
    return sinkhorn_ref(L, iters, eps)

