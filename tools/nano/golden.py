"""Golden folders (tests/golden/README.md) of reference.py: a run of it compared with stored outputs, or stored itself."""
import torch
from safetensors import safe_open

from reference import Reference, Tap

STEPS = 24                       # decode steps
FULL_DRAFTS = (0, 9, 23)         # steps with all draft logits
ROUTE_GAP, DRAFT_GAP = 1e-4, 0.2  # closer ones may change places


def load(path):
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def relative(a, b):
    """RMS of the difference over RMS of b."""
    return ((a.double() - b.double()).norm() / b.double().norm()).item()


def bf16_ulp(x):
    """Distance of neighbouring BF16 values at x."""
    return torch.exp2(torch.floor(torch.log2(x.abs().clamp(min=1e-6))) - 7)


class Equal:
    """Elements that have the same bits."""

    def __init__(self):
        self.equal, self.total = 0, 0

    def add(self, got, want):
        self.equal += int((got == want).sum())
        self.total += want.numel()

    def value(self):
        return self.equal / max(self.total, 1)


class Given(Tap):
    """Gives the stored selections; step: None = the prompt."""

    def __init__(self, stored):
        self.stored, self.step = stored, None

    def pick(self, name, decode_name, index):
        """Rows of one layer or source: of the prompt [index], or of the decode step."""
        if self.step is None:
            return self.stored[name][index]
        return self.stored[decode_name][self.step, index][None]

    def source(self, what, l):
        if self.step is None:
            return self.stored[f"official.{what}_prompt.{l}"]
        return self.stored[f"official.{what}_decode.{l}"][self.step][None]

    def selection(self, l, chosen, gaps, least):
        return self.source("sel", l).long()


class Layers(Given):
    """Starts every layer from the stored streams and counts what differs behind it."""

    def __init__(self, stored, layers):
        super().__init__(stored)
        self.attention, self.experts, self.decode = ([Equal() for _ in range(layers)] for _ in range(3))
        self.engrams, self.mains = Equal(), Equal()
        self.engram_rows = self.wrong_routes = self.wrong_blocks = self.wrong_selections = self.ties = self.table = 0

    def streams(self, l, X, pre):
        want = self.pick("layer_X", "decode_layer_X", l)
        if l:
            (self.experts if self.step is None else self.decode)[l - 1].add(X, want)
        return want, self.pick("layer_pre", "decode_layer_pre", l)

    def engram(self, l, rows, X):
        if self.step is None:
            self.engram_rows += int((rows != self.stored["engram_rows"][:, self.table]).sum())
            self.table += 1
            self.engrams.add(X, self.stored[f"engram_X.{l}"])

    def middle(self, l, X, pre):
        if self.step is None:
            self.attention[l].add(X, self.stored["mid_X"][l])

    def selection(self, l, chosen, gaps, least):
        want = super().selection(l, chosen, gaps, least)
        different, near = (chosen != want).any(-1), self.source("selgap", l) < 2 * bf16_ulp(least)
        self.ties += int((different & near).sum())
        self.wrong_selections += int((different & ~near).sum())
        return want

    def blocks(self, kept):
        if self.step is None:
            self.wrong_blocks += int((kept != (self.stored["candidate_blocks_prompt"] > 0)).any(-1).sum())

    def routes(self, l, chosen, gaps):
        if self.step is None:
            self.wrong_routes += int(((chosen != self.stored["route_prompt"][l]).any(-1) & (gaps >= ROUTE_GAP)).sum())

    def main(self, hidden):
        at = slice(0, len(hidden))
        if self.step is not None:
            at = slice(len(self.stored["prompt_ids"]) + self.step, len(self.stored["prompt_ids"]) + self.step + 1)
        self.mains.add(hidden, self.stored["main_hidden"][at])
        return self.stored["main_hidden"][at]


def follow(model, stored, tap, after_step=lambda sequence, step: None):
    """The stored tokens through the reference -> logits of the prompt and of the decode steps."""
    sequence, tap.step = Reference(model), None
    prompt, steps = sequence.run(stored["prompt_ids"], tap), []
    for step in range(STEPS):
        tap.step = step
        steps.append(sequence.run(stored["official.decode_tokens"][step:step + 1], tap))
        after_step(sequence, step)
    return prompt, torch.cat(steps), sequence


class Drafts:
    """Proposals that continue from the stored ids, against the stored ones; call it after every step."""

    def __init__(self, stored, temperatures):
        self.stored, self.temperatures = stored, temperatures
        self.wrong, self.confidence, self.logits = 0, 0.0, []

    def __call__(self, sequence, step):
        ids, top = self.stored["draft_ids"][step].tolist(), self.stored["draft_top5_vals"][step]
        logits, confidence = sequence.propose(int(self.stored["official.decode_tokens"][step + 1]), lambda k, _: ids[k])
        clear = top[:, 0] - top[:, 1] > DRAFT_GAP
        self.wrong += int(((logits.argmax(-1) != self.stored["draft_ids"][step]) & clear).sum())
        error = (confidence / self.temperatures - self.stored["draft_conf"][step]).abs().max().item()
        self.confidence = max(self.confidence, error)
        if step in FULL_DRAFTS:
            self.logits.append(logits)

    def error(self):
        return relative(torch.stack(self.logits), self.stored["draft_logits_at_0_9_23"])


class Recorder(Tap):
    """Keeps what passes, under the names and in the shapes of the layout."""

    def __init__(self):
        self.prompt, self.decode, self.out = {}, {}, {}   # of the prompt once; of the decode steps in order
        self.step = None

    def _keep(self, name, value, decode_name=None):
        if self.step is None:
            self.prompt[name] = value
        elif decode_name:
            self.decode.setdefault(decode_name, []).append(value)

    def streams(self, l, X, pre):
        self._keep(("layer_X", l), X, "decode_layer_X")
        self._keep(("layer_pre", l), pre, "decode_layer_pre")
        return X, pre

    def engram(self, l, rows, X):
        self._keep(("engram_rows", l), rows.int())
        self._keep(f"engram_X.{l}", X)

    def middle(self, l, X, pre):
        self._keep(("mid_X", l), X)
        self._keep(("mid_pre", l), pre)

    def selection(self, l, chosen, gaps, least):
        self._keep(f"official.sel_prompt.{l}", chosen.int(), f"official.sel_decode.{l}")
        self._keep(f"official.selgap_prompt.{l}", gaps, f"official.selgap_decode.{l}")
        return chosen

    def blocks(self, kept):
        self._keep("candidate_blocks_prompt", kept.to(torch.uint8))

    def routes(self, l, chosen, gaps):
        self._keep(("route_prompt", l), chosen.int())
        self._keep(("route_gap_prompt", l), gaps)

    def main(self, hidden):
        self.out.setdefault("main_hidden", []).append(hidden)
        return hidden

    def tensors(self):
        by_layer = {}
        for name, value in self.prompt.items():
            if isinstance(name, tuple):
                by_layer.setdefault(name[0], []).append(value)
            else:
                self.out[name] = value
        for name, values in by_layer.items():
            self.out[name] = torch.stack(values, 1 if name == "engram_rows" else 0)
        for name, values in self.decode.items():
            rows = torch.cat(values)
            self.out[name] = rows.unflatten(0, (STEPS, -1)) if name.startswith("decode_layer") else rows
        self.out["main_hidden"] = torch.cat(self.out["main_hidden"])
        return {name: value.contiguous() for name, value in self.out.items()}


def record(model, prompt, temperatures):
    """A prompt [T] and STEPS greedy steps through the reference -> the tensors of outputs.safetensors."""
    c, sequence, tap = model.c, Reference(model), Recorder()
    logits = [sequence.run(prompt, tap)]
    out, tokens, drafts = tap.out, [logits[0][-1].argmax()], []
    out["swa_row7"] = torch.stack([sequence.rows[l][7] for l in range(c.layers)]).float()
    out["swa_row_last"] = torch.stack([sequence.rows[l][-1] for l in range(c.layers)]).float()
    for tap.step in range(STEPS):
        logits.append(sequence.run(tokens[-1][None], tap))
        tokens.append(logits[-1][0].argmax())
        drafts.append(sequence.propose(int(tokens[-1])))
    out |= {"prompt_ids": torch.tensor(prompt), "official.decode_tokens": torch.stack(tokens),
            "official.prompt_logits": logits[0], "official.decode_logits": torch.cat(logits[1:])}
    for l in c.kv_src:
        for name, rows in ((f"global_kv%s.{l}", sequence.entries[l]), (f"index_key%s.{l}", sequence.keys[l])):
            out[name % ""], out[name % "_last"] = rows[:8].float(), rows[-2:].float()
    top = torch.stack([d[0] for d in drafts]).topk(5)
    out |= {"draft_ids": top.indices[..., 0], "draft_top5_ids": top.indices, "draft_top5_vals": top.values,
            "draft_conf": torch.stack([d[1] for d in drafts]) / temperatures,
            "draft_logits_at_0_9_23": torch.stack([drafts[k][0] for k in FULL_DRAFTS]),
            "draft_kv_row_last": torch.stack([sequence.rows["draft", i][-1] for i in range(c.drafts)]).float()}
    return {name: value.int() if value.dtype == torch.int64 else value for name, value in tap.tensors().items()}
