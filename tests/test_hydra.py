"""``fairseq-hydra-train``: hydra runs a job in a folder of its own, ``outputs/DATE/TIME``.

So a relative ``common.user_dir`` or ``task.data`` is looked for there. What works: absolute
paths, paths that begin with ``${hydra:runtime.cwd}/``, or ``hydra.job.chdir=false``.
"""

import pytest

from tests.toy import USER_DIR

CONFIG = """
# @package _global_
common: {{cpu: true, no_progress_bar: true, log_format: simple, user_dir: "{user_dir}"}}
task:
  _name: noisy_translation
  data: {data}
  source_lang: en
  target_lang: de
  target_noise: repeat:0.3
criterion: {{_name: eisl, ngram: "1,2", ngram_weight: "0.8,0.2"}}
dataset: {{max_tokens: 200, num_workers: 0, required_batch_size_multiple: 1}}
optimizer: {{_name: adam}}
optimization: {{max_update: 2, lr: [0.005]}}
lr_scheduler: {{_name: fixed}}
checkpoint: {{save_dir: save, no_epoch_checkpoints: true}}
model:
  _name: transformer
  share_all_embeddings: true
  encoder: {{embed_dim: 32, ffn_embed_dim: 64, layers: 1, attention_heads: 2}}
  decoder: {{embed_dim: 32, ffn_embed_dim: 64, layers: 1, attention_heads: 2}}
"""


@pytest.fixture
def hydra_train(toy, fresh, tmp_path):
    """Runs fairseq-hydra-train in ``tmp_path/here``, where the plugin lies as well."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here/fairseq_eisl").symlink_to(USER_DIR)

    def run(user_dir, *overrides):
        config = CONFIG.format(user_dir=user_dir, data=toy.bin)
        (tmp_path / "toy.yaml").write_text(config)
        return fresh.cli(
            *("fairseq-hydra-train", "--config-dir", tmp_path, "--config-name", "toy"),
            *overrides,
            cwd=tmp_path / "here",
        )

    return run


def test_a_user_dir_from_where_the_command_began_works(hydra_train, tmp_path):
    code, output = hydra_train("${hydra:runtime.cwd}/fairseq_eisl")
    assert code == 0 and "| eisl_1 " in output and "target noise repeat:0.3" in output, output
    assert list(tmp_path.glob("here/outputs/*/*/save/checkpoint_last.pt"))


def test_a_relative_user_dir_works_where_hydra_stays(hydra_train, tmp_path):
    code, output = hydra_train("fairseq_eisl", "hydra.job.chdir=false")
    assert code == 0 and "| eisl_1 " in output, output
    assert (tmp_path / "here/save/checkpoint_last.pt").exists()


def test_a_relative_user_dir_is_looked_for_in_hydras_folder(hydra_train, tmp_path):
    """fairseq's and hydra's doing; the error names the folder."""
    code, output = hydra_train("fairseq_eisl")
    assert code != 0
    assert f"FileNotFoundError: {tmp_path}/here/outputs/" in output, output[-3000:]


def test_an_absolute_user_dir_works_and_bad_values_are_refused(hydra_train):
    """A key that the YAML file lacks needs hydra's ``+``."""
    code, output = hydra_train(USER_DIR, "+criterion.gumbel_temperature=0")
    assert code != 0 and "--gumbel-temperature: temperature must be" in output
