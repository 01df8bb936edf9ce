"""Processes that train one model together, one a GPU, on rows of their own: gradients are averaged every step, and the first process
alone decides what comes next, since no two clocks agree.

launch() starts them; each makes a Peers. A process that was not launched is alone, and sends nothing.
"""
import os
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist

RANK, WORLD, PORT = "NANO_RANK", "NANO_WORLD", "NANO_PORT"


def launched():
    return RANK in os.environ


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def launch(count):
    """This program again, `count` times; -> 0, or the exit status of the first that failed, after ending the others."""
    port, children = free_port(), []
    for rank in range(count):
        environment = dict(os.environ, CUDA_VISIBLE_DEVICES=str(rank), GLOO_SOCKET_IFNAME="lo", NCCL_SOCKET_IFNAME="lo")
        environment.update({RANK: str(rank), WORLD: str(count), PORT: str(port)})
        children.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
    while True:
        states = [child.poll() for child in children]
        failed = [state for state in states if state]
        if failed:
            for child in children:
                child.kill()
            return failed[0]
        if all(state == 0 for state in states):
            return 0
        time.sleep(0.2)


class Peers:
    def __init__(self, device):
        self.rank, self.world = int(os.environ.get(RANK, 0)), int(os.environ.get(WORLD, 1))
        if self.world > 1:
            dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo", rank=self.rank, world_size=self.world,
                                    init_method=f"tcp://127.0.0.1:{os.environ[PORT]}")

    def end(self):
        if self.world > 1:
            dist.destroy_process_group()

    @property
    def first(self):
        return self.rank == 0

    def add(self, tensor):
        """The sum over all, in place."""
        if self.world > 1:
            dist.all_reduce(tensor)

    def agree(self, *values):
        """-> the first one's values."""
        if self.world == 1:
            return values
        sent = torch.tensor([float(v) for v in values], dtype=torch.float64)
        dist.broadcast(sent, 0)
        return sent.tolist()

    @torch.no_grad()
    def align(self, tensors):
        """Everybody takes the first one's values; -> by how much they were apart at most."""
        if self.world == 1:
            return 0.0
        apart = torch.zeros((), device=tensors[0].device)
        for tensor in tensors:
            theirs = tensor.detach().clone()
            dist.broadcast(theirs, 0)
            if theirs.is_floating_point():
                apart = torch.maximum(apart, (theirs - tensor).abs().max().float())
            tensor.copy_(theirs)
        dist.all_reduce(apart, dist.ReduceOp.MAX)
        return apart.item()
