"""What data-parallel workers tell one another within a criterion."""

import torch
from fairseq.distributed import utils as distributed
from torch import Tensor


def _world() -> int:
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return 1
    return distributed.get_data_parallel_world_size()


def gathered(values: Tensor) -> Tensor:
    """(N,) values of all workers, those of the first one first; N may differ between them.

    Every worker must call this as often as the others.
    """
    count = _world()
    if count == 1:
        return values.detach()
    group = distributed.get_data_parallel_group()
    own = torch.tensor([len(values)], device=values.device)
    sizes = [torch.zeros_like(own) for _ in range(count)]
    torch.distributed.all_gather(sizes, own, group=group)
    longest = max(int(size) for size in sizes)
    padded = values.new_zeros(longest)
    padded[: len(values)] = values.detach()
    parts = [torch.zeros_like(padded) for _ in range(count)]
    torch.distributed.all_gather(parts, padded, group=group)
    return torch.cat([part[: int(size)] for part, size in zip(parts, sizes)])
