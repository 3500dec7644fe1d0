"""From what was said about a command to the key of the recipe that says it."""

from typing import Dict

from omegaconf import DictConfig

from .recipe import flag_groups

# Flags that a recipe makes of other keys.
_KEYS = {
    "target-noise": "noise",
    "target-noise-seed": "noise_seed",
    "target-noise-blank": "data.blank",
    "seed": "seed",
}


def place(recipe: DictConfig, stage: str, message: str) -> str:
    """The key of the flag that a message about a stage begins with or names, else the stage."""
    if message.startswith("launcher: "):
        return f"stage {stage}"
    named = [word.strip(":,;'/").split("=")[0] for word in message.split() if word[:2] == "--"]
    groups: Dict[str, DictConfig] = dict(flag_groups(recipe))
    order = _groups_of(stage, groups)
    for flag in named:
        for part in flag.split("/"):
            name = part.lstrip("-")
            for key in order:
                if name in groups[key]:
                    return f"{key}.{name}"
            if name in _KEYS and stage in recipe.train:
                own = name == "target-noise" and recipe.train[stage].noise is not None
                return f"train.{stage}.noise" if own else _KEYS[name]
    return f"stage {stage}"


def _groups_of(stage: str, groups: Dict[str, DictConfig]) -> list:
    """The keys whose flags reach a stage, the one that counts most first."""
    if stage.startswith("generate_"):
        rest, number = stage[len("generate_") :], stage.rsplit("_", 1)[-1]
        own = rest if f"train.{rest}.generate" in groups else rest.rsplit("_", 1)[0]
        order = [f"variants.{number}.flags", f"train.{own}.generate", "generate"]
    elif f"train.{stage}.flags" not in groups and stage.startswith("distil"):
        order = ["teacher_generate"]
    elif stage.startswith("preprocess"):
        order = ["preprocess"]
    else:
        order = [f"train.{stage}.flags", "flags"]
    return [key for key in order if key in groups] or list(groups)
