"""What flags of noise have in common, whichever side they noise."""

import logging
from typing import Any

from fairseq.dataclass import FairseqDataclass

logger = logging.getLogger(__name__)


def one_text(noise: Any, flag: str) -> str:
    """A noise as one text, where a list of noises (hydra, YAML) is as good as their commas.

    Raises ValueError, which names the flag.
    """
    if noise is None:
        return "none"
    if isinstance(noise, str) or not hasattr(noise, "__iter__"):
        return str(noise)
    parts = list(noise)
    if not parts or not all(isinstance(part, str) for part in parts):
        raise ValueError(
            f"{flag} must be noises such as repeat:0.5 (no space after the colon), one, "
            f"or a list of them, not {noise}"
        )
    return ",".join(parts)


def say_idle(cfg: Any, config: type[FairseqDataclass], flag: str):
    """One line on the flags of a noise (FLAG-...) that were set where there is none."""
    fields = config.__dataclass_fields__
    given = [
        "--" + name.replace("_", "-")
        for name in fields
        if name.startswith(flag[2:].replace("-", "_") + "_")
        and str(getattr(cfg, name)) != str(fields[name].default)
    ]
    if given:
        logger.warning(f"{', '.join(given)}: no effect without {flag}")
