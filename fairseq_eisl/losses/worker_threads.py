"""Blocks of work spread over threads that never wait for one another inside an operation.

PyTorch splits each operation over all threads and joins them at its end. In a loop of many
small operations that is a meeting every fraction of a millisecond, and where another process
keeps one core busy the threads spend their time waiting for the one that was put aside. Here
each thread does whole blocks on its own and takes the next when it is done.
"""

import threading
from contextlib import contextmanager
from typing import Callable, Iterator, List, Sequence, Tuple, TypeVar

import torch
from torch import Tensor

Item = TypeVar("Item")

# Numbers up to which an operation is quicker than a meeting of threads may become.
_FEW = 2**20


@contextmanager
def one_thread(active: bool = True) -> Iterator[int]:
    """Operations of the calling thread run on it alone; gives the number of threads before."""
    before = torch.get_num_threads()
    if not active or before == 1 or torch.compiler.is_compiling():
        yield before if active else 1
        return
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)  # of this thread, and the default of new ones


def spread(
    work: Callable[[Item], None],
    items: Sequence[Item],
    threads: int,
    on_error: Callable[[], None] = lambda: None,
):
    """Call ``work`` with each item, on up to ``threads`` threads that take them in order.

    To be called inside ``one_thread``. The calling thread is one of them. Threads live for
    this call only, so that a forked process never inherits some that are gone. The first
    exception ends the work and is raised here; ``on_error`` frees those who wait.
    """
    if torch.compiler.is_compiling():
        threads = 1
    waiting, lock = iter(items), threading.Lock()
    errors: List[BaseException] = []
    inference = torch.is_inference_mode_enabled()

    def take():
        try:
            while not errors:
                with lock:
                    item = next(waiting, None)
                if item is None:
                    return
                work(item)
        except BaseException as error:  # raised below, in the calling thread
            errors.append(error)
            on_error()

    def take_apart():
        torch.set_num_threads(1)
        with torch.inference_mode(inference), torch.no_grad():
            take()

    others = [
        threading.Thread(target=take_apart, daemon=True)
        for _ in range(min(threads, len(items)) - 1)
    ]
    for thread in others:
        thread.start()
    take()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]


class InOrder:
    """Turns at each of several places: number 0 first, then 1, and so on. A thread that
    waits sleeps. To be used by ``work`` of ``spread``, with numbers that rise with the items."""

    def __init__(self, places: int):
        self.next_number, self.changed = [0] * places, threading.Condition()
        self.failed = False

    @contextmanager
    def turn(self, place: int, number: int) -> Iterator[None]:
        with self.changed:
            self.changed.wait_for(lambda: self.failed or self.next_number[place] == number)
        yield
        with self.changed:
            self.next_number[place] += 1
            self.changed.notify_all()

    def release(self):
        """Let everybody go: some work has failed, and the results are void."""
        with self.changed:
            self.failed = True
            self.changed.notify_all()


def refuse_second_derivative(name: str):
    """RuntimeError for the backward of a backward."""
    raise RuntimeError(
        f"{name} can be differentiated once only (once_differentiable): its gradient has no "
        f"derivative, as a gradient penalty or create_graph=True would need"
    )


class _OnOneThread(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, x: Tensor):
        with one_thread(), torch.set_grad_enabled(ctx.needs_input_grad[1]):
            ctx.inner = x.detach().requires_grad_(ctx.needs_input_grad[1])
            ctx.results = function(ctx.inner)
        ctx.save_for_backward(x)
        results = tuple(result.detach() for result in ctx.results)
        ctx.mark_non_differentiable(
            *(new for new, old in zip(results, ctx.results) if not old.requires_grad)
        )
        return results

    @staticmethod
    def backward(ctx, *grads: Tensor):
        results = [r for r in ctx.results if r.requires_grad]
        given = [g.detach() for r, g in zip(ctx.results, grads) if r.requires_grad]
        with one_thread():
            # Its own saved tensors are needed again in a second backward of a kept graph.
            (grad,) = torch.autograd.grad(results, ctx.inner, given, retain_graph=True)
        return None, _Once.apply(grad, *ctx.saved_tensors, *grads)


class _Once(torch.autograd.Function):
    """A gradient as it is, which depends on what it was made of: with ``create_graph`` no second
    derivative goes missing without a word, whether or not the incoming gradient is in the graph."""

    @staticmethod
    def forward(ctx, grad: Tensor, *made_of: Tensor):
        return grad.view_as(grad)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        refuse_second_derivative("EISL")


def on_one_thread(
    function: Callable[[Tensor], Tuple[Tensor, ...]], x: Tensor
) -> Tuple[Tensor, ...]:
    """``function(x)`` with forward and backward on the calling thread alone, where that is a CPU.

    For many operations on few numbers. ``function`` must take all that needs a gradient as
    ``x``. Differentiable once where it runs on one thread; a second derivative is refused.
    """
    if x.is_cuda or x.numel() > _FEW or torch.compiler.is_compiling():
        return function(x)
    return _OnOneThread.apply(function, x)
