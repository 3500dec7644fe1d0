"""A stage is run again when a file that its script runs has changed."""

import re

import pytest

from fairseq_eisl.recipes.commands.shared import script
from tests.toy import ROOT

PREPARE = ROOT / "scripts/prepare"
NAMES = [p.name for p in PREPARE.glob("*.sh") if p.name != "bart_base.sh"] + ["distilled.py"]


@pytest.mark.parametrize("name", NAMES)
def test_every_file_that_a_script_names_is_read(name):
    text = "".join(
        line for line in (PREPARE / name).read_text().splitlines(True) if not line.startswith("#")
    )
    named = set(re.findall(r"(?:ROOT|HERE)[^\s\"]*/([\w.]+\.(?:py|sh|sha256))", text))
    if re.search(r"^\s*(?:\[.*\|\| )?sentences ", text, re.MULTILINE):  # of lib/common.sh
        named.add("sentences.py")
    files = script(name)[1]
    assert named - {"common.sh"} <= {file.rsplit("/", 1)[1] for file in files}
    for file in files:
        assert (ROOT / file).is_file()
