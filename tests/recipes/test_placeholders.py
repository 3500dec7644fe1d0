"""Folders of stages in commands; braces in text are text, and keys have stayed the same."""

import hashlib
import json
import shlex

from fairseq_eisl.recipes.placeholders import CHECKOUT, OUT, filled, folder, shell_of
from fairseq_eisl.recipes.stage import Stage
from fairseq_eisl.recipes.stage_cache import StageCache

FOLDERS = {"ce": "/runs/ce", "out": "/runs/me.part", "root": "/eisl"}


def test_folders_are_filled_in_and_braces_stay():
    content = {
        "{ce}": ["{out}", OUT, OUT / "{ce}.csv", "{{}}=" + folder("ce") / "log"],
        "n": (CHECKOUT / "a", 3),
    }
    assert filled(content, FOLDERS) == {
        "{ce}": ["{out}", "/runs/me.part", "/runs/me.part/{ce}.csv", "{{}}=/runs/ce/log"],
        "n": ["/eisl/a", 3],
    }


def test_a_shell_line_is_read_back_as_its_words():
    words = ("x", "a b", '{"beam": 1}', OUT, "it's=" + folder("ce") / "log", "'")
    line = shell_of(words).filled(FOLDERS)
    assert shlex.split(line) == [filled(word, FOLDERS) for word in words]


def test_own_folder_as_another_stage_names_it():
    own = folder("me")
    assert (OUT / "a").renamed(OUT, own) == own / "a"
    assert ("{out}" + folder("ce") / "a").renamed(OUT, own) == "{out}" + folder("ce") / "a"


def test_the_key_of_a_stage_is_that_of_its_old_spelling():
    """Results of runs that were made before are found again."""
    report = ("report.json", {"a{": [OUT / "b", "}"]})
    stage = Stage("s", (("x", '{"b": 1}', "a=" + folder("ce") / "log"),), files=(report,))
    content = {
        "commands": [["x", '{{"b": 1}}', "a={ce}/log"]],
        "stdout": None,
        "files": [["report.json", {"a{{": ["{out}/b", "}}"]}]],
        "needs": {},
        "reads": [],
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    expected = hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
    assert StageCache("x").keys([stage]) == {"s": expected}
