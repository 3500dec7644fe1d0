"""Laying one content above another: what is said again is changed, what is ``null`` is gone."""

from dataclasses import is_dataclass
from typing import Any, Dict

from omegaconf import DictConfig, OmegaConf

from .typed import TAKEN


def lay(config: DictConfig, tree: Dict[str, Any]):
    """Change ``config`` itself by what ``typed`` has made of a file or an override."""
    config.merge_with(OmegaConf.create(_rest(config, tree)))


def _rest(config: Any, tree: Dict[str, Any]) -> Dict[str, Any]:
    """``tree`` without what it takes away, which is taken."""
    rest: Dict[str, Any] = {}
    for key, value in tree.items():
        if value is TAKEN:
            _take(config, key)
        elif isinstance(value, dict):
            there = isinstance(config, DictConfig) and key in config
            rest[key] = _rest(config[key] if there else None, value)
        elif isinstance(value, list):  # it takes the place of another as a whole
            rest[key] = [_rest(None, v) if isinstance(v, dict) else v for v in value]
        else:
            rest[key] = value
    return rest


def _take(config: Any, key: str):
    if not isinstance(config, DictConfig) or key not in config:
        return
    if is_dataclass(OmegaConf.get_type(config)):  # its keys are always there
        config[key] = {}
    else:
        del config[key]
