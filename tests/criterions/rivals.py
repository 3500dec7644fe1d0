"""The comparison methods: each with the models that it fits, and flags that show something."""

from tests.toy import ARCHS, NAT_ARCHS

AUTOREGRESSIVE, NAT = tuple(ARCHS), tuple(NAT_ARCHS)
WEIGHTINGS = ("tailr", "dft", "mixce", "gold", "error_norm", "convex", "none")
# A beam's most tokens are those of the longest source of a batch.
FIXED_LENGTH = {"output_max_len_a": 0.0, "output_max_len_b": 8}
# name of the case: criterion, architectures, options
CASES = {
    **{
        f"token_weighted {kind}": (
            "token_weighted",
            (*AUTOREGRESSIVE, *NAT),
            {"token_weighting": kind},
        )
        for kind in WEIGHTINGS
    },
    "token_weighted with cross entropy": (
        *("token_weighted", ("transformer", "cmlm_transformer")),
        {"ce_factor": 0.5, "label_smoothing": 0.1},
    ),
    "bag_of_ngrams 1": ("bag_of_ngrams", NAT, {"bag_ngram": 1}),
    "bag_of_ngrams 2": ("bag_of_ngrams", NAT, {}),
    "policy_gradient": ("policy_gradient", AUTOREGRESSIVE, {"reward_smoothing": "higher"}),
    "policy_gradient rloo": (
        *("policy_gradient", AUTOREGRESSIVE),
        {"pg_samples": 3, "pg_baseline": "rloo", "ce_factor": 0.3, "pg_norm": "token"},
    ),
    "best_of_n": ("best_of_n", AUTOREGRESSIVE, FIXED_LENGTH),
    "best_of_n sampled": (
        *("best_of_n", ("transformer",)),
        {"hypotheses": 3, "hypotheses_from": "sample", "ce_factor": 0.5},
    ),
    "contrastive_margin": (
        *("contrastive_margin", AUTOREGRESSIVE),
        {**FIXED_LENGTH, "ce_factor": 0.3, "label_smoothing": 0.1},
    ),
    # Until something is left out; tests/criterions/test_loss_truncation.py has the rest.
    "loss_truncation": ("loss_truncation", (*AUTOREGRESSIVE, *NAT), {}),
    "oaxe": ("oaxe", NAT, {"oaxe_skip": 0.05}),
    "oaxe joint": ("oaxe", NAT, {"oaxe_skip": 0.0, "ce_factor": 0.5}),
    "axe": ("axe", NAT, {"axe_skip_penalty": 2.0}),
    "axe joint": ("axe", NAT, {"ce_factor": 0.5}),
    "axe more slots": (
        *("axe", ("nonautoregressive_transformer", "cmlm_transformer")),
        {"axe_skip_penalty": 2.0},
    ),
    "bag_of_ngrams joint": ("bag_of_ngrams", NAT, {"bag_factor": 0.9, "ce_factor": 0.1}),
}
# More slots than words: no cross entropy.
FLAGS = {"axe more slots": ["--noise", "full_mask", "--axe-length-factor", "1.5"]}
PAIRS = [(case, arch) for case, (_, archs, _) in CASES.items() for arch in archs]
