"""Values of fairseq's flags that fairseq takes, and that fail or mislead later.

Every function raises ValueError, one line that begins with the flag and its value.
"""

import ast
import json
import math
import re
from typing import Any, Callable, List, Optional

Name = Callable[[str], str]
"""From what argparse calls a value to the flag as it was written."""


def _names(text: str) -> frozenset:
    return frozenset(text.split())


# Numbers from 0 to 1; every dropout is among them, see _rule.
_SHARES = _names(
    "full_mask_prob dae_ratio mask mask_random insert permute rotate shuffle_instance ema_decay"
)
_ONE_OR_MORE = _names(
    "beam nbest max_tokens batch_size max_tokens_valid batch_size_valid log_interval save_interval "
    "validate_interval required_batch_size_multiple required_seq_len_multiple update_freq "
    "max_source_positions max_target_positions train_step iter_decode_with_beam workers "
    "crf_lowrank_approx crf_beam_approx tokens_per_sample padding_factor ema_update_freq "
    "distributed_world_size all_gather_list_size encoder_hidden_size decoder_hidden_size "
    "quant_noise_pq_block_size decoder_out_embed_dim num_shards"
)
_SIZES = re.compile(r"(encoder|decoder)_(layers|embed_dim|ffn_embed_dim|attention_heads)")
_ZERO_OR_MORE = _names(
    "num_workers max_epoch max_update warmup_updates validate_interval_updates "
    "validate_after_updates save_interval_updates iter_decode_max_iter max_len_b min_len "
    "prefix_size seed curriculum no_repeat_ngram_size thresholdsrc thresholdtgt "
    "ignore_prefix_size fixed_validation_seed "
    "target_noise_seed clip_norm weight_decay stop_time_hours max_len_a length_loss_factor "
    "word_ins_loss_factor end_learning_rate ema_start_update empty_cache_freq data_buffer_size "
    "min_lr quant_noise_pq quant_noise_scalar lr_threshold lr_patience num_batch_buckets nval "
    "lm_weight iter_decode_eos_penalty warmup_steps hold_steps decay_steps"
)
# -1 stands for no limit, or for a default.
_MINUS_ONE_OR_MORE = _names(
    "patience keep_interval_updates keep_last_epochs keep_best_checkpoints stop_min_lr nwordssrc "
    "nwordstgt warmup_init_lr diverse_beam_groups keep_interval_updates_pattern upsample_primary"
)
_ABOVE_ZERO = _names(
    "lr adam_eps lamb_eps adadelta_eps temperature power poisson_lambda clip_threshold max_lr "
    "total_num_update lr_shrink t_mult init_lr_scale final_lr_scale"
)
_BETWEEN = {"label_smoothing": 0.0, "momentum": 0.0, "beta1": 0.0, "adadelta_rho": 0.0}  # below 1
_SEEDS = _names("seed target_noise_seed fixed_validation_seed")


def check_numbers(args: Any, name: Name):
    """Every number is in the range in which it means something."""
    for key, value in vars(args).items():
        numbers = value if isinstance(value, (list, tuple)) else [value]
        for number in numbers:
            if isinstance(number, str):  # some flags have no type
                try:
                    number = float(number) if key in _ALL else None
                except ValueError:
                    continue
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                needed = _needed(key, number)
                if needed:
                    raise ValueError(f"{name(key)} {number}: {needed}")
    for key in ("adam_betas", "lamb_betas"):
        if hasattr(args, key):
            _check_betas(getattr(args, key), name(key))


_ALL = _SHARES | _ONE_OR_MORE | _ZERO_OR_MORE | _MINUS_ONE_OR_MORE | _ABOVE_ZERO | set(_BETWEEN)


def _needed(key: str, number: float) -> Optional[str]:
    """What is needed instead of a number; None if it is right."""
    share = key in _SHARES or re.search(r"dropout(_in|_out)?$|layerdrop$", key)
    if not math.isfinite(number):
        return "a finite number is needed"
    if share and not 0 <= number <= 1:
        return "0 to 1 is needed"
    if key in _BETWEEN and not 0 <= number < 1:
        return "0 to 1, and less than 1, is needed"
    if (key in _ONE_OR_MORE or _SIZES.fullmatch(key)) and number < 1:
        return "1 or more is needed"
    if key in _ZERO_OR_MORE and number < 0:
        return "0 or more is needed"
    if key in _SEEDS and number >= 2**32:
        return f"0 to {2**32 - 1} is needed"
    if key in _MINUS_ONE_OR_MORE and number < 0 and number != -1:
        return "0 or more is needed, or -1 for none"
    if key == "sampling_topk" and number < 1 and number != -1:
        return "1 or more is needed, or -1 for all"
    if key == "sampling_topp" and not 0 < number <= 1 and number != -1:
        return "above 0 and up to 1 is needed, or -1 for all"
    if key in _ABOVE_ZERO and number <= 0:
        return "a number above 0 is needed"
    return None


def _check_betas(value: Any, flag: str):
    try:
        betas = ast.literal_eval(value) if isinstance(value, str) else tuple(value)
        right = len(betas) == 2 and all(0 <= float(beta) < 1 for beta in betas)
    except (ValueError, TypeError, SyntaxError):
        right = False
    if not right:
        raise ValueError(f"{flag} {value}: two numbers of 0 to 1 are needed, as in '(0.9, 0.98)'")


def check_decoding(args: Any, name: Name):
    """What fairseq-generate is asked for is possible, and its output can be scored."""
    _check_lengths(args, name)
    if getattr(args, "nbest", 1) > getattr(args, "beam", 1):
        raise ValueError(f"{name('nbest')} {args.nbest}: at most {name('beam')} {args.beam}")
    groups = getattr(args, "diverse_beam_groups", -1)
    if groups > 0 and args.beam % groups:
        raise ValueError(f"{name('diverse_beam_groups')} {groups}: it must divide "
                         f"{name('beam')} {args.beam}")  # fmt: skip
    if getattr(args, "score_reference", False):
        raise ValueError(f"{name('score_reference')}: the references would be scored as output")
    if getattr(args, "iter_decode_with_external_reranker", False):
        raise ValueError(f"{name('iter_decode_with_external_reranker')}: a recipe generates with "
                         "one model, which cannot rerank itself")  # fmt: skip


def _check_lengths(args: Any, name: Name):
    if getattr(args, "max_len_a", 1) == 0 and getattr(args, "max_len_b", 1) == 0:
        raise ValueError(f"{name('max_len_b')} 0: with {name('max_len_a')} 0 nothing may be said")


def check_training(args: Any, name: Name, validated: str = ""):
    """A training can begin, does an update, ends, is logged, and leaves checkpoint_best.pt."""
    _check_model(args, name)
    _check_validation_decoding(args, name)
    _check_schedule(args, name)
    _check_log(args, name)
    _check_best(args, name, validated)
    if args.max_tokens is None and args.batch_size is None:
        raise ValueError("--max-tokens: it is needed, or --batch-size: the size of a batch")
    if args.finetune_from_model is not None:
        for key in ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader"):
            if getattr(args, key):
                raise ValueError(f"{name(key)}: a training that starts from another one or from "
                                 "weights begins with all of this anew; leave it away")  # fmt: skip


def _check_model(args: Any, name: Name):
    for side in ("encoder", "decoder"):
        width = getattr(args, f"{side}_embed_dim", None)
        heads = getattr(args, f"{side}_attention_heads", None)
        if width and heads and width % heads:
            raise ValueError(f"{name(f'{side}_attention_heads')} {heads}: it must divide "
                             f"{name(f'{side}_embed_dim')} {width}")  # fmt: skip
    wide = [getattr(args, f"{side}_embed_dim", None) for side in ("encoder", "decoder")]
    if getattr(args, "share_all_embeddings", None) and None not in wide and wide[0] != wide[1]:
        raise ValueError(f"{name('decoder_embed_dim')} {wide[1]}: {name('share_all_embeddings')} "
                         f"needs that of {name('encoder_embed_dim')}, {wide[0]}")  # fmt: skip


def _check_validation_decoding(args: Any, name: Name):
    text = getattr(args, "eval_bleu_args", None)
    if not getattr(args, "eval_bleu", False) or not text:
        return
    flag = name("eval_bleu_args")
    try:
        given = json.loads(text)
    except ValueError as err:
        raise ValueError(f"{flag} {text}: no JSON: {err}") from None
    if not isinstance(given, dict):
        raise ValueError(f'{flag} {text}: JSON as {{"beam": 1}} is needed')
    for key, value in given.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            needed = _needed(key, value)
            if needed:
                raise ValueError(f"{flag} {text}: {key} {value}: {needed}")
    if given.get("max_len_a", 0) == 0 and given.get("max_len_b", 200) == 0:
        raise ValueError(f"{flag} {text}: max_len_b 0: nothing may be said")


def _check_schedule(args: Any, name: Name):
    rates = args.lr if isinstance(args.lr, (list, tuple)) else [args.lr]
    warmup = getattr(args, "warmup_updates", None)
    first = rates[0]  # of the first update
    if args.lr_scheduler == "inverse_sqrt":
        if not warmup:
            raise ValueError(f"{name('warmup_updates')} {warmup}: --lr-scheduler inverse_sqrt "
                             "needs 1 or more")  # fmt: skip
        if len(rates) > 1:
            raise ValueError(f"{name('lr')} {','.join(map(str, rates))}: --lr-scheduler "
                             "inverse_sqrt takes one")  # fmt: skip
        first = args.warmup_init_lr if args.warmup_init_lr >= 0 else 0.0
    if args.lr_scheduler == "polynomial_decay":
        total = args.total_num_update
        total = args.max_update if total is None else float(total)
        if not total > 0:
            raise ValueError(f"{name('total_num_update')} {total:g}: --lr-scheduler "
                             "polynomial_decay needs one above 0, or --max-update")  # fmt: skip
        if warmup and warmup > total:
            raise ValueError(f"{name('warmup_updates')} {warmup}: it lasts longer than "
                             f"--total-num-update {total:g}")  # fmt: skip
        first = 0.0 if warmup else first
    if first <= args.stop_min_lr:
        raise ValueError(f"{name('stop_min_lr')} {args.stop_min_lr:g}: the first rate is "
                         f"{first:g}, and the training would end without an update")  # fmt: skip
    ends = args.max_epoch or args.max_update or args.stop_time_hours or args.patience > 0
    if not ends and args.stop_min_lr < 0:
        raise ValueError("--max-update: the training has no end: this, --max-epoch or --patience "
                         "is needed")  # fmt: skip


def _check_log(args: Any, name: Name):
    shown = args.log_format or ("simple" if args.no_progress_bar else "tqdm")
    if shown not in ("simple", "json"):
        raise ValueError(f"{name('log_format')} {shown}: curves and rows are read from logs of the "
                         "formats simple and json")  # fmt: skip
    if "valid" not in args.valid_subset.split(","):
        raise ValueError(f"{name('valid_subset')} {args.valid_subset}: curves are drawn of the "
                         "subset valid; it must be among them")  # fmt: skip


# fairseq's criteria whose validation is known, and names of it; this package's say it themselves,
# and others may log what they like.
_PARTS = r"(word_ins|mask_ins|word_del|word_reposition|length|crf)[\w-]*"
_METRICS = {
    "cross_entropy": "loss|ppl",
    "label_smoothed_cross_entropy": "loss|nll_loss|ppl",
    "nat_loss": f"loss|nll_loss|ppl|{_PARTS}",
}
_HIGHER = {"bleu": True, "accuracy": True, "loss": False, "nll_loss": False, "ppl": False,
           "ce": False}  # fmt: skip


def _check_best(args: Any, name: Name, validated: str):
    """Later stages begin with the best checkpoint."""
    for key, why in (
        ("no_save", "no checkpoint would be there for what comes later"),
        ("disable_validation", "no checkpoint would be the best one, which later stages need"),
        ("write_checkpoints_asynchronously", "checkpoint_best.pt, for later stages, would lack"),
        ("suppress_crashes", "a training that failed would look as if it had ended"),
        ("tpu", "recipes run on CPUs and CUDA GPUs"),
    ):  # fmt: skip
        if getattr(args, key, False):
            raise ValueError(f"{name(key)}: {why}")
    metric, higher = args.best_checkpoint_metric, args.maximize_best_checkpoint_metric
    flag = name("best_checkpoint_metric")
    bleu = getattr(args, "eval_bleu", False) and args.task != "translation_lev"
    if metric == "bleu" and not bleu:
        raise ValueError(f"{flag} bleu: this training computes none; --eval-bleu is needed, or "
                         "another metric, e.g. loss")  # fmt: skip
    if metric == "accuracy" and not getattr(args, "report_accuracy", False):
        raise ValueError(f"{flag} accuracy: --report-accuracy is needed")
    known = validated or _METRICS.get(args.criterion)
    if args.criterion == "cross_entropy" and args.sentence_avg:
        known = f"{known}|nll_loss"
    if known and metric not in ("bleu", "accuracy") and not re.fullmatch(known, metric):
        choices = [part for part in known.split("|") if part.isidentifier()]
        choices += ["bleu"] if bleu else []
        raise ValueError(f"{flag} {metric}: --criterion {args.criterion} does not compute it "
                         f"(choose from {', '.join(choices)})")  # fmt: skip
    best_is_high = {**_HIGHER, args.criterion: False}.get(metric, higher)
    if best_is_high != higher:
        needed = "needs" if best_is_high else "excludes (null takes it away)"
        raise ValueError(f"{flag} {metric}: it {needed} --maximize-best-checkpoint-metric, or the "
                         "worst checkpoint would count as the best")  # fmt: skip
    if 0 < args.max_update < args.validate_after_updates:
        raise ValueError(f"{name('validate_after_updates')} {args.validate_after_updates}: the "
                         f"training ends before, at --max-update {args.max_update}")  # fmt: skip
    by_epochs = not (args.max_update or args.save_interval_updates or args.stop_time_hours)
    both = args.validate_interval * args.save_interval
    both //= math.gcd(args.validate_interval, args.save_interval)
    if by_epochs and args.patience < 1 and 0 < args.max_epoch < both:
        key = "validate_interval" if args.validate_interval > 1 else "save_interval"
        raise ValueError(f"{name(key)} {getattr(args, key)}: no epoch up to --max-epoch "
                         f"{args.max_epoch} would be validated and saved")  # fmt: skip


def check_average(args: Any, count: int, name: Name):
    """A training saves as many checkpoints by updates as are averaged."""
    every, kept = args.save_interval_updates, args.keep_interval_updates
    if not every:
        raise ValueError(f"{name('save_interval_updates')} 0: average: {count} needs checkpoints "
                         f"by updates; set it, or average: null")  # fmt: skip
    if 0 < kept < count:
        raise ValueError(f"{name('keep_interval_updates')} {kept}: average: {count} needs {count} "
                         "or more")  # fmt: skip
    if args.max_update:
        first = max(1, -(-args.validate_after_updates // every))
        saved = max(0, args.max_update // every - first + 1)
        if saved < count:
            advice = f"--save-interval-updates {args.max_update // count} or less"
            least = f"--max-update {every * (count + first - 1)} or more"
            advice = f"{advice}, {least}" if args.max_update >= count else least
            raise ValueError(
                f"{name('max_update')} {args.max_update}: average: {count} needs {count} "
                f"checkpoints, and --save-interval-updates {every} saves {saved} until then; set "
                f"{advice}, or a smaller average"
            )


def first_flag(words: List[str], position: int) -> str:
    """The flag before a word of a command line."""
    return next((w for w in reversed(words[:position]) if w.startswith("--")), "")
