"""``fairseq-hydra-train``: hydra runs a job in a folder of its own, ``outputs/DATE/TIME``.

So a relative ``common.user_dir`` or ``task.data`` is looked for there. What works: absolute
paths, paths that begin with ``${hydra:runtime.cwd}/``, or ``hydra.job.chdir=false``.
"""

import pytest

from tests.toy import ROOT, USER_DIR

SMALL = [
    f"model.{part}.{key}={value}"
    for part in ("encoder", "decoder")
    for key, value in (("embed_dim", 32), ("ffn_embed_dim", 64), ("layers", 1))
]


@pytest.fixture
def hydra_train(toy, fresh, tmp_path):
    """Runs the shipped file in ``tmp_path/here``, where the plugin lies as well."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here/fairseq_eisl").symlink_to(USER_DIR)

    def run(*overrides):
        return fresh.cli(
            *("fairseq-hydra-train", "--config-dir", ROOT / "configs/hydra"),
            *("--config-name", "noisy_translation_eisl", f"task.data={toy.bin}", *SMALL),
            *("task.source_lang=en", "task.target_lang=de", "dataset.max_tokens=200"),
            *("optimization.max_update=2", "common.cpu=true", *overrides),
            cwd=tmp_path / "here",
        )

    return run


def test_a_user_dir_from_where_the_command_began_works(hydra_train, tmp_path):
    """And lists of orders, weights and noises, which hydra itself advises."""
    lists = ["criterion.ngram=[1,2]", "criterion.ngram_weight=[0.8,0.2]"]
    code, output = hydra_train(*lists, "task.target_noise=[repeat:0.5]")
    assert code == 0 and "| eisl_1 " in output and "target noise repeat:0.5" in output, output
    assert list(tmp_path.glob("here/outputs/*/*/checkpoints/checkpoint_last.pt"))


def test_a_relative_user_dir_works_where_hydra_stays(hydra_train, tmp_path):
    code, output = hydra_train("common.user_dir=fairseq_eisl", "hydra.job.chdir=false")
    assert code == 0 and "| eisl_1 " in output, output
    assert (tmp_path / "here/checkpoints/checkpoint_last.pt").exists()


def test_a_relative_user_dir_is_looked_for_in_hydras_folder(hydra_train, tmp_path):
    """fairseq's and hydra's doing; the error names the folder."""
    code, output = hydra_train("common.user_dir=fairseq_eisl")
    assert code != 0
    assert f"FileNotFoundError: {tmp_path}/here/outputs/" in output, output[-3000:]


def test_an_absolute_user_dir_works_and_bad_values_are_refused(hydra_train):
    """A key that the YAML file lacks needs hydra's ``+``."""
    code, output = hydra_train(f"common.user_dir={USER_DIR}", "+criterion.gumbel_temperature=0")
    assert code != 0 and "--gumbel-temperature: temperature must be" in output


def test_models_that_are_for_the_command_line_only_are_refused_in_a_line(hydra_train):
    code, output = hydra_train(
        *("task._name=noisy_translation_lev", "+task.noise=full_mask"),
        "model._name=nonautoregressive_transformer",
    )
    line = "model._name=nonautoregressive_transformer: fairseq has the options of"
    assert code != 0 and f"ValueError: {line}" in output and "num_updates" not in output


def test_help_says_where_the_other_keys_are(fresh):
    code, output = fresh.cli(
        *("fairseq-hydra-train", "--config-dir", ROOT / "configs/hydra"),
        *("--config-name", "noisy_translation_eisl", "--help"),
    )
    assert code == 0 and "--task noisy_translation --criterion eisl --help" in output
