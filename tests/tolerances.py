"""How far a result may lie from its float64 reference, by the dtype of the inputs."""

import torch
from torch import Tensor

# (relative, absolute). The absolute one is a share of the largest expected element:
# a gradient is a difference of numbers of that size, so its rounding error scales with it.
TOLERANCES = {
    torch.float64: (1e-9, 1e-11),
    # A selection at temperature 0.1 turns an error of 1e-6 in a score into 1e-5 in a weight.
    torch.float32: (1e-4, 2e-5),
    # Computed in float32 and rounded once, when the gradient is written: half a unit in the
    # last place is 2**-11 and 2**-8. Below 6e-5 float16 loses digits, hence its absolute part.
    torch.float16: (1e-3, 2e-4),
    torch.bfloat16: (8e-3, 1e-4),
}


def assert_near(
    actual: Tensor, expected: Tensor, dtype: torch.dtype, what: str = "", scale: float = 1.0
):
    """``actual`` equals ``expected`` up to the tolerance of ``dtype``; NaN equals nothing.

    ``scale``: of numbers whose sum it is, where they nearly cancel and it is far smaller.
    """
    assert actual.shape == expected.shape, f"{what}: {actual.shape} is not {expected.shape}"
    actual, expected = actual.detach().cpu().double(), expected.detach().cpu().double()
    relative, absolute = TOLERANCES[dtype]
    scale = max(scale, 1.0, expected.abs().max().item()) if expected.numel() else 1.0
    torch.testing.assert_close(
        actual, expected, rtol=relative, atol=absolute * scale, msg=lambda m: f"{what}: {m}"
    )
