"""Which large tensors a computation makes."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LargeStorages(TorchDispatchMode):
    """Collects every storage of at least ``size`` bytes that an operation returns.

    The storages are held, so that none is freed and its address used again.
    """

    def __init__(self, size: int):
        super().__init__()
        self.size, self.storages = size, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage.nbytes() >= self.size:
                    self.storages[storage.data_ptr()] = storage
        return out

    def besides(self, *tensors: torch.Tensor) -> int:
        """How many there are that belong to none of these tensors."""
        return len(self.storages.keys() - {t.untyped_storage().data_ptr() for t in tensors})


def saved_for_backward(function):
    """The result of ``function()`` and the tensors that autograd keeps for its backward."""
    saved = []

    def pack(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        return function(), saved
