"""Blocks of work spread over threads that never wait for one another inside an operation.

PyTorch splits each operation over all threads and joins them at its end. In a loop of many
small operations that is a meeting every fraction of a millisecond, and where another process
keeps one core busy the threads spend their time waiting for the one that was put aside. Here
each thread does whole blocks on its own and takes the next when it is done.
"""

import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, TypeVar

import torch
from torch import Tensor

Item = TypeVar("Item")

# Numbers of a block of sentences, so many that threads do not wait for one another's Python.
_SENTENCES_BLOCK = 2**17
# On CUDA, where blocks only save memory, so many that kernels keep the device busy.
_CUDA_SENTENCES_BLOCK = 2**23


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


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name: str, grad: Tensor, *made_of: Tensor):
        ctx.name = name
        return grad.view_as(grad)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        refuse_second_derivative(ctx.name)


def differentiable_once(name: str, grad: Optional[Tensor], *made_of: Tensor) -> Optional[Tensor]:
    """A gradient as it is, for the backward of an autograd function, which depends on what it was
    made of: with ``create_graph`` no second derivative goes missing without a word, whether or not
    the incoming gradient is in the graph."""
    return None if grad is None else _Once.apply(name, grad, *made_of)


class _OverSentences(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, recompute: bool, *inputs: Tensor):
        ctx.function, ctx.recompute, ctx.blocks = function, recompute, _row_blocks(inputs)
        ctx.needed = ctx.needs_input_grad[2:]
        inner: List[Any] = [None] * len(ctx.blocks)
        results: List[Any] = [None] * len(ctx.blocks)

        def work(number: int):
            attached = any(ctx.needed) and not recompute
            inner[number], results[number] = _of_rows(ctx, inputs, number, attached)

        with one_thread(not inputs[0].is_cuda) as threads:
            spread(work, range(len(ctx.blocks)), threads)
        ctx.differentiable = [recompute or part.requires_grad for part in results[0]]
        out = tuple(torch.cat([part.detach() for part in parts]) for parts in zip(*results))
        ctx.inner, ctx.results = (None, None) if recompute else (inner, results)
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(
            *(whole for whole, known in zip(out, ctx.differentiable) if not known)
        )
        return out

    @staticmethod
    def backward(ctx, *grads: Tensor):
        inputs = ctx.saved_tensors
        if ctx.recompute and torch.is_grad_enabled():  # create_graph
            return None, None, *_graph_of_gradients(ctx, inputs, grads)
        places = [place for place, needed in enumerate(ctx.needed) if needed]
        found: List[Any] = [None] * len(inputs)
        if len(ctx.blocks) > 1:
            for place in places:
                found[place] = inputs[place].new_empty(inputs[place].shape)

        def work(number: int):
            rows = ctx.blocks[number]
            # A backward may run inside of an autocast, and each thread has its own.
            with torch.autocast(grads[0].device.type, enabled=False):
                if ctx.recompute:
                    parts, results = _of_rows(ctx, inputs, number, True)
                else:
                    parts, results = ctx.inner[number], ctx.results[number]
                made = torch.autograd.grad(
                    [part for part, known in zip(results, ctx.differentiable) if known],
                    [parts[place] for place in places],
                    [x.detach()[rows] for x, known in zip(grads, ctx.differentiable) if known],
                    # Saved tensors are needed again in a second backward of a kept graph.
                    retain_graph=not ctx.recompute,
                )
            for place, part in zip(places, made):
                if len(ctx.blocks) > 1:
                    found[place][rows] = part
                else:
                    found[place] = part

        with one_thread(not inputs[0].is_cuda) as threads:
            spread(work, range(len(ctx.blocks)), threads)
        if not ctx.recompute:
            found = [differentiable_once("EISL", x, *inputs, *grads) for x in found]
        return None, None, *found


def _of_rows(ctx, inputs: Sequence[Tensor], number: int, attached: bool):
    """The inputs of a block as leaves, and what the function makes of them."""
    rows = ctx.blocks[number]
    with torch.set_grad_enabled(attached):
        parts = [
            x.detach()[rows].requires_grad_(attached and needed)
            for x, needed in zip(inputs, ctx.needed)
        ]
        return parts, ctx.function(*parts, rows)


def _graph_of_gradients(ctx, inputs: Sequence[Tensor], grads: Sequence[Tensor]):
    """Gradients that can be differentiated themselves, where the function's can."""
    results = ctx.function(*inputs, slice(None))
    leaves = [x for x, needed in zip(inputs, ctx.needed) if needed]
    made = iter(torch.autograd.grad(results, leaves, grads, create_graph=True))
    return [next(made) if needed else None for needed in ctx.needed]


def _row_blocks(inputs: Sequence[Tensor]) -> List[slice]:
    """Slices of some rows, one block's worth of numbers or more each."""
    size = _CUDA_SENTENCES_BLOCK if inputs[0].is_cuda else _SENTENCES_BLOCK
    count, batch = max(1, max(x.numel() for x in inputs) // size), len(inputs[0])
    rows = max(1, -(-batch // count))
    return [slice(start, start + rows) for start in range(0, max(1, batch), rows)]


def over_sentences(
    function: Callable[..., Tuple[Tensor, ...]], *inputs: Tensor, recompute: bool = False
) -> Tuple[Tensor, ...]:
    """``function(*parts, rows)`` of the same rows of all inputs, some at a time, put together.

    For many operations on few numbers, none of which looks at more than one row. On a CPU each
    block is one thread's, forward and backward.

    Args:
        function: of (rows, ...) parts of the inputs and the slice of these rows; gives tensors
            that begin with the same rows. It must take all that needs a gradient as inputs, and
            each of those must be in the graph of some result.
        inputs: (B, ...) tensors.
        recompute: keep nothing for the backward but the inputs, and compute each block again
            there: for functions that are cheap and whose intermediate results are large. All
            results must have a gradient.

    Returns:
        Tensors of B rows. Differentiable once on a CPU, where a second derivative is refused; with
        ``recompute`` as often as the function is.
    """
    if torch.compiler.is_compiling() or (
        inputs[0].is_cuda and not (recompute and len(_row_blocks(inputs)) > 1)
    ):
        return function(*inputs, slice(None))
    return _OverSentences.apply(function, recompute, *inputs)
