"""Muon for matrices, AdamW for the rest; both keep the learning rate on the device, so that a captured step can be replayed.

A step whose gradients are not finite changes nothing but the momentum's age: it is counted, not applied.
"""
import torch

MATRICES = {"wq_a", "wq_b", "wkv", "wo_a", "wo_b", "w1", "w2", "w3", "s1", "s2", "s3", "c_wkv", "c_wgate", "i_wk", "i_wqb", "e_wkv",
            "main_proj"}
TABLES = {"embed", "head", "e_table", "mk_embed", "mk_head"}
CLIP = 1.0           # of the gradient's norm
UPDATE_RMS = 0.2     # of a Muon update at learning rate 1
MOMENTUM = 0.95
WEIGHT_DECAY = 0.1   # of matrices


def orthogonal(g):
    """Newton-Schulz: [.., rows, columns] -> nearly orthogonal, BF16."""
    x = g.to(torch.bfloat16)
    flip = x.shape[-2] > x.shape[-1]
    if flip:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if flip else x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum made orthogonal; matrices of equal shape go together (expert stacks are many matrices)."""

    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            by_shape = {}
            for p in group["params"]:
                if p.grad is not None:
                    by_shape.setdefault(tuple(p.shape[-2:]), []).append(p)
            for shape, params in by_shape.items():
                self._update(params, shape, group["lr"])

    def _update(self, params, shape, lr):
        grads = [p.grad for p in params]
        for p in params:
            if "momentum" not in self.state[p]:
                self.state[p]["momentum"] = torch.zeros_like(p)
        momenta = [self.state[p]["momentum"] for p in params]
        torch._foreach_lerp_(momenta, grads, 1 - MOMENTUM)
        ahead = torch._foreach_lerp(grads, momenta, MOMENTUM)
        counts = [g.numel() // (shape[0] * shape[1]) for g in grads]
        update = orthogonal(torch.cat([g.reshape(-1, *shape) for g in ahead])).float()
        update = update * (-UPDATE_RMS * max(shape) ** 0.5 * lr)
        torch._foreach_mul_(params, 1 - WEIGHT_DECAY * lr)
        torch._foreach_add_(params, [u.view_as(p) for u, p in zip(update.split(counts), params)])


class Optimizer:
    """All parameters of a model. step() is free of transfers between device and host."""

    def __init__(self, model, slow):
        """slow: learning-rate factor of norms, stream mixes, gates and sinks."""
        kinds = {"matrix": [], "table": [], "slow": []}
        for name, p in model.named_parameters():
            last = name.split(".")[-1]
            kinds["matrix" if last in MATRICES else "table" if last in TABLES else "slow"].append(p)
        self.params = list(model.parameters())
        device = self.params[0].device
        cuda = device.type == "cuda"
        self.lr = torch.zeros((), device=device)
        self.slow = slow
        self.rates = [torch.zeros((), device=device) for _ in range(2)]
        self.muon = Muon(kinds["matrix"], self.lr)
        self.adam = torch.optim.AdamW([dict(params=kinds["table"], lr=self.rates[0]), dict(params=kinds["slow"], lr=self.rates[1])],
                                      betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0, fused=cuda, capturable=cuda, foreach=False if not cuda else None)
        self.bad_steps = torch.zeros((), device=device)   # so far
        self.norm = torch.zeros((), device=device)        # of the last step's gradient

    def set_rate(self, lr):
        for rate, factor in ((self.lr, 1.0), (self.rates[0], 1.0), (self.rates[1], self.slow)):
            rate.fill_(lr * factor)

    def step(self):
        params = [p for p in self.params if p.grad is not None]
        grads = [p.grad for p in params]
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
        finite = torch.isfinite(norm)
        self.norm.copy_(norm)
        self.bad_steps += (~finite).float()
        factor = torch.where(finite, (CLIP / (norm + 1e-6)).clamp(max=1.0), torch.zeros_like(norm))
        for g in grads:
            torch.nan_to_num(g, nan=0.0, posinf=0.0, neginf=0.0, out=g)
        torch._foreach_mul_(grads, factor)
        self.adam.step()
        self.muon.step()
        for p in params:
            p.grad = None
