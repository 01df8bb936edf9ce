"""Running figures of training, added up on the device and read now and then."""
import torch
import torch.nn.functional as F

from draft import chain
from batches import ANSWER


def answers_right(pred, y, kinds):
    """Teacher-forced exact match: an answer is a run of ANSWER targets. pred, y, kinds [B,T] -> right, all [B]."""
    mine = kinds == ANSWER
    start = mine & ~F.pad(mine, (1, 0))[:, :-1]
    run = start.long().cumsum(1) * mine                       # 1.. inside answers, 0 outside
    most = y.shape[1] // 2 + 2
    wrong = torch.zeros(y.shape[0], most, device=y.device).scatter_add_(1, run, ((pred != y) & mine).float())
    count = start.sum(1)
    real = torch.arange(1, most, device=y.device)[None] <= count[:, None]
    return ((wrong[:, 1:] == 0) & real).sum(1), count


class Stats:
    def __init__(self, names, num_sources, draft_block, device):
        self.names = names
        self.tasks = torch.zeros(len(names), 6, device=device)    # rows, loss, answers right, answers, drafts accepted, blocks
        self.index = torch.zeros(2, num_sources, device=device)   # index loss, recall
        self.match = torch.zeros(2, draft_block, device=device)   # guesses right, judged
        self.steps = torch.zeros((), device=device)
        self.streams = torch.zeros((), device=device)
        self.imbalance = torch.zeros((), device=device)           # largest expert / mean, of the last step's worst layer
        self.not_finite = torch.zeros(4, device=device)           # of draft.FINITE_NAMES, steps

    def text(self, task, row_loss, right, count, result):
        values = torch.stack((torch.ones_like(row_loss), row_loss.nan_to_num(), right.float(), count.float()), 1)
        self.tasks[:, :4].index_add_(0, task, values)
        self.steps += 1
        self.streams.copy_(result["streams"])
        load = result["load"].float()
        self.imbalance.copy_((load.amax(1) / load.mean(1)).max())
        if result["kl"] is not None:
            self.index += torch.stack((result["kl"], result["recall"])).detach().nan_to_num()

    def draft(self, task, answers, d):
        """answers [B,A]: the block's anchor stands before a token of an answer; only those count."""
        use = answers.flatten().float()
        accepted = chain(d["ok"].float(), d["alive"]).sum(-1) * use
        per_row = torch.stack((accepted.view(answers.shape).sum(1), use.view(answers.shape).sum(1)), 1)
        self.tasks[:, 4:].index_add_(0, task, per_row)
        judged = d["alive"] * use[:, None]
        self.match += torch.stack(((d["ok"] * judged).sum(0), judged.sum(0)))
        self.not_finite += 1 - d["finite"]

    def read(self):
        """-> the figures since the last read, for the log."""
        t, n = self.tasks.tolist(), max(self.steps.item(), 1)
        out = dict(steps=int(n), streams=round(self.streams.item(), 2), imbalance=round(self.imbalance.item(), 2),
                   kl=[round(v / n, 3) for v in self.index[0].tolist()], recall=[round(v / n, 3) for v in self.index[1].tolist()])
        out["tasks"] = {name: task_figures(r) for name, r in zip(self.names, t) if r[0]}
        if self.match[1].sum() > 0:
            out["match"] = [round(v, 3) for v in (self.match[0] / self.match[1].clamp(min=1)).tolist()]
            accepted, blocks = self.tasks[:, 4].sum().item(), self.tasks[:, 5].sum().item()
            out["accepted"] = round(1 + accepted / max(blocks, 1), 3)
        for x in (self.tasks, self.index, self.match, self.steps):
            x.zero_()
        return out


def task_figures(r):
    """A row of Stats.tasks with rows in it, for the log."""
    out = dict(rows=int(r[0]), loss=round(r[1] / r[0], 4))
    if r[3]:
        out.update(exact=round(r[2] / r[3], 4), answers=int(r[3]))
    if r[5]:
        out.update(accepted=round(1 + r[4] / r[5], 2))
    return out
