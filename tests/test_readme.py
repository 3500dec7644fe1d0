"""What the README says is what the code does."""

import dataclasses
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs():
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert examples
    for example in examples:
        space = {}
        exec(example, space)
        assert space["logits"].grad is not None and space["loss"].item() > 0


def documented_flags(title):
    section = README.split(title)[1].split("\n##")[0]
    return dict(re.findall(r"^\| `(--[a-z0-9-]+)` \| (.*?) \|", section, re.MULTILINE))


def check_table(title, config):
    flags = documented_flags(title)
    fields = {"--" + f.name.replace("_", "-"): f.default for f in dataclasses.fields(config)}
    own = {name: value for name, value in fields.items() if name in flags}
    assert set(flags) == set(own), "documented flags that do not exist"
    for name, value in own.items():
        told = flags[name].strip("`")
        if value is False:
            assert told == "off", name
        elif isinstance(value, (int, float)):
            assert float(told) == value, name
        elif isinstance(value, str):
            assert told == value, name
    return set(flags), set(fields)


def test_every_flag_of_the_criterion_is_documented_with_its_default():
    from fairseq_eisl.criterions.eisl import EISLCriterionConfig

    documented, existing = check_table("### Flags of `--criterion eisl`", EISLCriterionConfig)
    assert documented == existing - {"---name"}


def test_every_flag_of_the_task_is_documented_with_its_default():
    from fairseq_eisl.tasks.noisy_translation import NoisyTranslationConfig

    documented, existing = check_table(
        "### Flags of `--task noisy_translation`", NoisyTranslationConfig
    )
    assert documented == {name for name in existing if name.startswith("--target-noise")}


def test_the_own_flags_of_the_other_task_are_documented_with_their_defaults():
    from fairseq.tasks.translation_lev import TranslationLevenshteinConfig

    from fairseq_eisl.tasks.noisy_translation_lev import NoisyTranslationLevConfig

    documented, existing = check_table(
        "| flag of `--task noisy_translation_lev` |", NoisyTranslationLevConfig
    )
    stock = TranslationLevenshteinConfig.__dataclass_fields__
    own = {name for name in existing if name[2:].replace("-", "_") not in stock}
    assert documented == {name for name in own if not name.startswith("--target-noise")}


def test_files_named_in_the_readme_exist():
    for path in re.findall(r"(?:bash |\]\()((?:scripts|data|tests|docs)/[\w./-]+)", README):
        assert (ROOT / path).exists(), path


def test_the_noises_named_in_the_readme_parse():
    from fairseq_eisl.noise import parse_noise

    specs = set(re.findall(r"(?:--(?:target-)?noise |`)([a-z_]+:[\w.:,]+)[`\s]", README))
    assert len(specs) >= 9
    for spec in specs:
        parse_noise(spec)


@pytest.mark.parametrize("name", ["Makefile", "LICENSE", "CONTRIBUTING.md", "constraints.txt"])
def test_top_level(name):
    assert (ROOT / name).exists()
