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
    # The versions that the pins of constraints.txt, and fairseq's wheels, are there for.
    python_requires=">=3.11,<3.13",
    classifiers=[
        "License :: OSI Approved :: MIT License",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
    ],
    packages=find_packages(include=["fairseq_eisl", "fairseq_eisl.*"]),
    package_data={"fairseq_eisl.evaluation.report": ["templates/*"]},
    # Not fairseq: it asks for torchaudio, which it needs for speech only. Beside a torch for CPUs
    # torchaudio does not load, and transformers, which imports it where it is installed, dies with
    # it. So fairseq is installed without what it asks for; the extra `fairseq-deps` has the rest:
    #   pip install ".[fairseq-deps]" && pip install --no-deps ve-fairseq
    install_requires=[
        "Jinja2>=3.0",
        "numpy",
        "omegaconf",
        "PyYAML",
        "sacrebleu>=2.0",
        "sentencepiece",
        "torch>=2.0",
        "tqdm",
    ],
    extras_require={
        "fairseq-deps": [
            *("bitarray", "cffi", "cython", "hydra-core>=1.0.7", "packaging", "regex"),
            "scikit-learn",
        ],
        "test": [
            *("pytest", "pytest-xdist", "hypothesis", "ruff", "mypy"),
            *("matplotlib>=3.7", "submitit>=1.5"),
        ],
        "plots": ["matplotlib>=3.7"],
        "sweep": ["submitit>=1.5"],
        "hf": ["transformers"],
        # English nouns for style transfer: a tagger whose model lies inside its package
        "style": ["textblob"],
    },
)
