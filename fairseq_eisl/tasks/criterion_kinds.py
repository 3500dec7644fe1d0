"""Which criterions train which models: each says so itself, in ``kinds``."""

from typing import Tuple

from fairseq.criterions import CRITERION_REGISTRY

# fairseq's own say nothing: this one trains non-autoregressive models, all others the rest.
_STOCK = ("nat_loss",)


def kinds_of(name: str) -> Tuple[str, ...]:
    """``autoregressive``, ``non-autoregressive`` or both, of a registered criterion."""
    stock = ("non-autoregressive",) if name in _STOCK else ("autoregressive",)
    return getattr(CRITERION_REGISTRY.get(name), "kinds", stock)


def check_criterion(name: str, autoregressive: bool):
    """ValueError where a criterion trains no models of the task's kind."""
    kind = "autoregressive" if autoregressive else "non-autoregressive"
    if kind in kinds_of(name):
        return
    if autoregressive:
        raise ValueError(
            f"--criterion {name} trains non-autoregressive models; it needs "
            "--task noisy_translation_lev (or translation_lev)"
        )
    others = sorted(other for other in CRITERION_REGISTRY if kind in kinds_of(other))
    fitting = [*_STOCK, *(other for other in others if other not in _STOCK)]
    raise ValueError(
        f"--criterion {name} trains autoregressive models; with "
        f"--task noisy_translation_lev choose from {', '.join(fitting)}"
    )
