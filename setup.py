"""Installs fairseq_eisl; versions that are known to work together are in constraints.txt."""

import re
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
VERSION = re.search(r'__version__ = "(.+)"', (HERE / "fairseq_eisl/__init__.py").read_text())[1]
# What recipes read besides the package; in a wheel it lies in fairseq_eisl/share, at the same
# paths. In a checkout, and so in an editable installation, it stays where it is.
SHARED = ("configs/**/*", "scripts/prepare/*", "scripts/lib/*", "data/toy_corpus.py")
# Where this repository is to be read, such as https://github.com/OWNER/NAME; empty while it is
# nowhere. The one place: links and pictures of the README on a package index come from here.
REPOSITORY = ""
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def for_an_index(readme, repository):
    """The README where there is no checkout beside it.

    What it links to in the checkout is looked for in the repository. Where there is none, a picture
    is left out, and of a link the text stays.
    """

    def elsewhere(link):
        picture, text, path = link.groups()
        if repository:
            view = "raw" if picture else "blob"
            return f"{picture}[{text}]({repository.rstrip('/')}/{view}/HEAD/{path})"
        return "" if picture else text

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(elsewhere, readme))


def shared_files():
    """The files of SHARED, relative to the checkout."""
    found = (path for pattern in SHARED for path in sorted(HERE.glob(pattern)))
    return [p.relative_to(HERE) for p in found if p.is_file() and "__pycache__" not in p.parts]


class BuildWithSharedFiles(build_py):
    """The package and, in it, the files that recipes need."""

    def run(self):
        super().run()
        if not self.editable_mode:
            for path in shared_files():
                place = Path(self.build_lib, "fairseq_eisl", "share", path)
                self.mkpath(str(place.parent))
                self.copy_file(str(HERE / path), str(place))

    def get_outputs(self, include_bytecode=True):
        share = Path(self.build_lib, "fairseq_eisl", "share")
        ours = [] if self.editable_mode else [str(share / path) for path in shared_files()]
        return super().get_outputs(include_bytecode) + ours


setup(
    name="fairseq-eisl",
    version=VERSION,
    description="Edit-Invariant Sequence Loss for fairseq, Hugging Face and plain PyTorch",
    long_description=for_an_index((HERE / "README.md").read_text(encoding="utf-8"), REPOSITORY),
    long_description_content_type="text/markdown",
    project_urls={
        "Paper": "https://arxiv.org/abs/2106.15078",
        "fairseq": "https://github.com/facebookresearch/fairseq",
        **({"Source": REPOSITORY} if REPOSITORY else {}),
    },
    license_expression="MIT",
    license_files=["LICENSE"],
    keywords=["machine translation", "sequence loss", "noisy targets", "fairseq", "transformers"],
    # The versions that the pins of constraints.txt, and fairseq's wheels, are there for.
    python_requires=">=3.11,<3.13",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    packages=find_packages(include=["fairseq_eisl", "fairseq_eisl.*"]),
    package_data={
        "fairseq_eisl": ["py.typed"],
        "fairseq_eisl.evaluation.report": ["templates/*"],
    },
    cmdclass={"build_py": BuildWithSharedFiles},
    entry_points={"console_scripts": ["fairseq-eisl = fairseq_eisl.console:main"]},
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
            # setuptools: the tests build the wheel
            *("pytest", "pytest-xdist", "hypothesis", "ruff", "mypy", "setuptools>=77"),
            *("matplotlib>=3.7", "submitit>=1.5"),
        ],
        "docs": ["latex2mathml", "mkdocs-macros-plugin", "mkdocs-material", "mkdocstrings[python]"],
        "plots": ["matplotlib>=3.7"],
        "sweep": ["submitit>=1.5"],
        # As lower bounds the versions that the tests run with: both change what a trainer hands
        # to its loss from release to release.
        "huggingface": ["accelerate>=1.15", "transformers>=5.24", "trl>=1.16"],
        # English nouns for style transfer: a tagger whose model lies inside its package
        "style": ["textblob"],
    },
)
