"""Blocks of work spread over threads that never wait for one another inside an operation.

PyTorch splits each operation over all threads and joins them at its end. In a loop of many
small operations that is a meeting every fraction of a millisecond, and where another process
keeps one core busy the threads spend their time waiting for the one that was put aside. Here
each thread does whole blocks on its own and takes the next when it is done.
"""

import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Sequence, Tuple, TypeVar

import torch
from torch import Tensor

Item = TypeVar("Item")

# Numbers of a block of sentences, so many that threads do not wait for one another's Python.
_SENTENCES_BLOCK = 2**17


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


class _OverSentences(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, x: Tensor):
        needs_grad, ctx.blocks = ctx.needs_input_grad[1], _row_blocks(x)
        inner: List[Any] = [None] * len(ctx.blocks)
        results: List[Any] = [None] * len(ctx.blocks)

        def work(number: int):
            rows = ctx.blocks[number]
            with torch.set_grad_enabled(needs_grad):
                inner[number] = x.detach()[rows].requires_grad_(needs_grad)
                results[number] = function(inner[number], rows)

        with one_thread() as threads:
            spread(work, range(len(ctx.blocks)), threads)
        ctx.inner, ctx.results = inner, results
        ctx.save_for_backward(x)
        out = tuple(torch.cat([part.detach() for part in parts]) for parts in zip(*results))
        ctx.mark_non_differentiable(
            *(whole for whole, part in zip(out, results[0]) if not part.requires_grad)
        )
        return out

    @staticmethod
    def backward(ctx, *grads: Tensor):
        found: List[Any] = [None] * len(ctx.blocks)

        def work(number: int):
            rows, parts = ctx.blocks[number], ctx.results[number]
            results = [part for part in parts if part.requires_grad]
            given = [g.detach()[rows] for part, g in zip(parts, grads) if part.requires_grad]
            # Its own saved tensors are needed again in a second backward of a kept graph.
            (found[number],) = torch.autograd.grad(
                results, ctx.inner[number], given, retain_graph=True
            )

        with one_thread() as threads:
            spread(work, range(len(ctx.blocks)), threads)
        grad = found[0] if len(found) == 1 else torch.cat(found)
        return None, _Once.apply(grad, *ctx.saved_tensors, *grads)


def _row_blocks(x: Tensor) -> List[slice]:
    """Slices of some rows, one block's worth of numbers or more each."""
    count = max(1, x.numel() // _SENTENCES_BLOCK)
    rows = max(1, -(-len(x) // count))
    return [slice(start, start + rows) for start in range(0, max(1, len(x)), rows)]


class _Once(torch.autograd.Function):
    """A gradient as it is, which depends on what it was made of: with ``create_graph`` no second
    derivative goes missing without a word, whether or not the incoming gradient is in the graph."""

    @staticmethod
    def forward(ctx, grad: Tensor, *made_of: Tensor):
        return grad.view_as(grad)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        refuse_second_derivative("EISL")


def over_sentences(
    function: Callable[[Tensor, slice], Tuple[Tensor, ...]], x: Tensor
) -> Tuple[Tensor, ...]:
    """``function(x[rows], rows)`` for some rows of ``x`` at a time, put together again.

    For many operations on few numbers, none of which looks at more than one row. On a CPU each
    block is one thread's, forward and backward. ``function`` must take all that needs a gradient
    as ``x``. Differentiable once there; a second derivative is refused.
    """
    if x.is_cuda or torch.compiler.is_compiling():
        return function(x, slice(None))
    return _OverSentences.apply(function, x)
