"""Installs fairseq_eisl; versions that are known to work together are in constraints.txt."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (HERE / "fairseq_eisl/__init__.py").read_text())[1]

setup(
    name="fairseq-eisl",
    version=VERSION,
    description="Edit-Invariant Sequence Loss for fairseq and plain PyTorch",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.8",
    packages=find_packages(include=["fairseq_eisl", "fairseq_eisl.*"]),
    install_requires=[
        # fairseq's last release does not import on Python 3.11; ve-fairseq is the same
        # code with its dataclass defaults mended, and installs as `fairseq` too.
        "fairseq>=0.12.2; python_version < '3.11'",
        "ve-fairseq>=0.12.3; python_version >= '3.11'",
        "torch>=2.0",
        "omegaconf",
        "sacrebleu>=2.0",
        "sentencepiece",
    ],
    extras_require={
        "test": [
            *("pytest", "pytest-xdist", "hypothesis", "ruff", "mypy"),
            *("matplotlib>=3.7", "submitit>=1.5"),
        ],
        "plots": ["matplotlib>=3.7"],
        "sweep": ["submitit>=1.5"],
        "hf": ["transformers"],
    },
)
