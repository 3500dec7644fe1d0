"""Whether a module computes what its class says, and nothing else."""

import functools
from typing import Any, Tuple

from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook
from torch.nn.utils.parametrize import is_parametrized

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(module: nn.Module) -> bool:
    """Whether something else runs at its calls: hooks of its own, or of every module.

    Weight norm, spectral norm, pruning and quantisation noise are such hooks.
    """
    return any(getattr(module, name, None) for name in _HOOKS) or bool(_has_any_global_hook())


def has_own(module: Any, kind: type, *methods: str) -> bool:
    """Whether these methods of a module are those that ``kind`` was written with."""
    return isinstance(module, kind) and all(
        getattr(type(module), name, None) is getattr(kind, name)
        and not _replaced(module, name)
        and _written_there(kind, name)
        for name in methods
    )


def is_plain(module: Any, *kinds: type) -> bool:
    """Whether a module is of one of these classes, no subclass of them, and as it was made.

    A parametrised module has a class of its own; a layer whose weights are some special kind of
    tensor (quantised, spread over devices) may compute otherwise, too.
    """
    return (
        type(module) in kinds
        and has_own(module, type(module), "forward")
        and not has_hooks(module)
        and all(type(p) in (nn.Parameter, Tensor) for p in _parameters(module))
    )


def is_untouched(module: Any, kind: type, *methods: str) -> bool:
    """Whether a module, maybe of a subclass of ``kind``, still has its methods and no hooks."""
    return (
        has_own(module, kind, "__call__", *methods)
        and not has_hooks(module)
        and not is_parametrized(module)
    )


def _parameters(module: Any) -> Tuple[Tensor, ...]:
    return tuple(p for p in module._parameters.values() if p is not None)


def _replaced(module: Any, name: str) -> bool:
    """Whether a method was replaced on this one module."""
    found = vars(module).get(name)
    if found is None:
        return False
    # --checkpoint-activations: the same, computed twice
    original = vars(module).get(f"precheckpoint_{name}")
    checkpointed = (
        isinstance(found, functools.partial)
        and found.args[:1] == (original,)
        and getattr(original, "__func__", None) is getattr(type(module), name)
    )
    return not checkpointed


def _written_there(kind: type, name: str) -> bool:
    """Whether a class's method is from its own file, and not put there by somebody else."""
    owner = next(cls for cls in kind.__mro__ if name in vars(cls))
    module = getattr(vars(owner)[name], "__globals__", {}).get("__name__")
    return module == owner.__module__
