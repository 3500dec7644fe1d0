#!/usr/bin/env python3
"""Time of whole training steps with EISL, against cross entropy and the released way, in one run.

    python scripts/benchmarks/steps.py --out rows.csv
    python scripts/benchmarks/steps.py --kinds ar --batch 16 --length 32 --repeats 5

A step is forward and backward of a small model (3+3 layers, 128 wide) on random sentences:
  ar     a Transformer: fairseq's label-smoothed cross entropy, EISL of several orders (decoding
         its candidate, or with the target as candidate), and the released way, which decodes with
         a forward of the decoder over the whole prefix for each token
  nat    CMLM: fairseq's nat_loss and EISL
  exact  evaluation of EISL with one forward over the candidate, and exactly
Systems take turns, so that a slow moment hits them alike; medians. ``epoch_s`` is the time of the
29,000 sentences of Multi30k at that batch.
"""

import statistics
from argparse import Namespace
from functools import partial
from types import SimpleNamespace

import torch
from common import known, parser_of, q20, q80, report, seconds_of, taking_turns
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.criterions.nat_loss import LabelSmoothedDualImitationCriterion
from fairseq.data import Dictionary
from fairseq.models.nat.cmlm_transformer import CMLMNATransformerModel, cmlm_base_architecture
from fairseq.models.transformer import TransformerModel, base_architecture
from losses import released

from fairseq_eisl.criterions.eisl import EISLCriterion, EISLCriterionConfig
from fairseq_eisl.decoding.fairseq.candidates import decode
from fairseq_eisl.losses import eisl_loss, exact_autoregressive_eisl

SENTENCES = 29000
SIZE = {"layers": 3, "embed_dim": 128, "ffn_embed_dim": 512, "attention_heads": 4}
ORDERS = {"1": "1", "2": "2", "12": "1,2", "234": "2,3,4"}


def make_task(vocabulary):
    dictionary = Dictionary()
    for i in range(vocabulary - len(dictionary)):
        dictionary.add_symbol(f"w{i}")
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


def make_model(kind, task, device, dtype):
    args = Namespace(share_all_embeddings=True, dropout=0.1, encoder_normalize_before=True)
    args.decoder_normalize_before = True
    for side in ("encoder", "decoder"):
        for name, value in SIZE.items():
            setattr(args, f"{side}_{name}", value)
    args.max_source_positions = args.max_target_positions = 1024
    torch.manual_seed(1)
    if kind == "nat":
        args.apply_bert_init, args.pred_length_offset = True, True
        args.noise, args.length_loss_factor, args.label_smoothing = "random_mask", 0.1, 0.1
        cmlm_base_architecture(args)
        model = CMLMNATransformerModel.build_model(args, task)
    else:
        # Tied to its input, an untrained output layer repeats it for ever, or ends at once.
        args.share_all_embeddings = args.share_decoder_input_output_embed = False
        base_architecture(args)
        model = TransformerModel.build_model(args, task)
    return model.to(device, dtype).train()


def make_sample(kind, task, batch, length, device):
    """Random sentences of ``length`` tokens, the end symbol among them."""
    d = task.target_dictionary
    generator = torch.Generator().manual_seed(1)
    source, target = (
        torch.randint(4, len(d), (batch, length), generator=generator) for _ in range(2)
    )
    source[:, -1] = target[:, -1] = d.eos()
    previous = torch.cat([torch.full((batch, 1), d.eos()), target[:, :-1]], 1)
    net_input = {"src_tokens": source, "src_lengths": torch.full((batch,), length)}
    net_input["prev_output_tokens"] = previous
    net_input = {name: value.to(device) for name, value in net_input.items()}
    sample = {"id": torch.arange(batch), "target": target.to(device), "net_input": net_input}
    sample.update(ntokens=batch * length, nsentences=batch)
    if kind == "nat":  # half of the examples fully masked, as cmlm is trained for one pass
        target[:, 0] = d.bos()
        hidden = torch.rand(batch, length, generator=generator)
        hidden = hidden < torch.rand(batch, 1, generator=generator)
        hidden[: batch // 2] = True
        hidden &= target.ne(d.bos()) & target.ne(d.eos())
        sample["target"] = target.to(device)
        sample["prev_target"] = target.masked_fill(hidden, d.unk()).to(device)  # fairseq's mask
    return sample


def eisl(task, ngrams, **options):
    return EISLCriterion(EISLCriterionConfig(ngram=ngrams, **options), task).train()


def released_step(orders):
    """The steps of the authors' code: for every token a forward of the decoder over the whole
    prefix, with dropout and a graph, and its last features to logits; no end before the target's.
    All logits come from the last forward, which the gradient runs through."""

    def loss_of(model, sample):
        net_input, length = sample["net_input"], sample["target"].size(1)
        encoder_out = model.encoder(net_input["src_tokens"], net_input["src_lengths"])
        tokens, decoder = net_input["prev_output_tokens"][:, :1], model.decoder
        for step in range(length):
            features = decoder(tokens, encoder_out=encoder_out, features_only=True)[0]
            if step < length - 1:
                chosen = decoder.output_layer(features[:, -1:]).argmax(2)
                tokens = torch.cat([tokens, chosen], 1)
        return released(decoder.output_layer(features), sample["target"], orders)

    return loss_of


def stock(kind, task):
    """fairseq's own criterion of a kind of model, and its name."""
    if kind == "nat":
        return "nat_loss", LabelSmoothedDualImitationCriterion(task, 0.1)
    return "cross entropy", LabelSmoothedCrossEntropyCriterion(task, False, 0.1)


def systems(kind, task):
    """Name to a function of model and sample that gives the loss."""

    def of(criterion):
        return lambda model, sample: criterion(model, sample)[0]

    name, base = stock(kind, task)
    found = {name: of(base)}
    if kind == "nat":
        return {**found, "eisl 234": of(eisl(task, "2,3,4"))}
    found.update({f"eisl {name}": of(eisl(task, n)) for name, n in ORDERS.items()})
    found["eisl 12, target"] = of(eisl(task, "1,2", train_decoding="teacher-forcing"))
    found["eisl 12, parallel"] = of(eisl(task, "1,2", parallel_decoding=True))
    found["eisl 12, shared encoder"] = of(eisl(task, "1,2", share_encoder_output=True))
    found["eisl 12, blocks"] = of(eisl(task, "1,2", output_layer="blocks"))
    return {**found, "released 12": released_step((1, 2))}


def train_step(loss_of, model, sample, device):
    """Seconds of forward and backward."""
    model.zero_grad(set_to_none=True)
    return seconds_of(lambda: loss_of(model, sample).backward(), device)


def evaluations(task, model, sample):
    """EISL of a model's candidates by one forward, and exactly."""
    d, net_input = task.target_dictionary, sample["net_input"]
    found = decode(model, sample, d.pad(), d.eos())
    options = {"ngrams": (1, 2), "selection": "softmax", "output_mask": found.mask}
    encoder_out = model.encoder(net_input["src_tokens"], net_input["src_lengths"])

    def approximate():
        logits = model.decoder(found.prefix, encoder_out=encoder_out)[0]
        return eisl_loss(logits, sample["target"], **options)

    def logits_of(tokens, sentences):
        prefix = torch.cat([tokens.new_full((len(tokens), 1), d.eos()), tokens[:, :-1]], 1)
        out = model.encoder.reorder_encoder_out(encoder_out, sentences)
        return model.decoder(prefix, encoder_out=out)[0]

    return {
        "one forward": approximate,
        "exact": lambda: exact_autoregressive_eisl(
            logits_of, found.tokens, sample["target"], **options
        ),
    }


def measured(kind, args):
    """Rows of one kind of step."""
    device, dtype = torch.device(args.device), getattr(torch, args.dtype)
    task = make_task(args.vocabulary)
    model = make_model(kind, task, device, dtype)
    sample = make_sample(kind, task, args.batch, args.length, device)
    if kind != "exact":
        return measured_steps(kind, systems(kind, task), model, sample, args)
    model.eval()
    with torch.no_grad():
        calls = evaluations(task, model, sample)
        steps = {name: partial(seconds_of, call, device) for name, call in calls.items()}
        return rows_of(kind, taking_turns(steps, args.repeats, kind), args)


def measured_steps(kind, losses, model, sample, args):
    """Rows of training steps, by the names of functions of model and sample that give a loss."""
    device = torch.device(args.device)
    steps = {
        name: partial(train_step, loss_of, model, sample, device)
        for name, loss_of in losses.items()
    }
    return rows_of(kind, taking_turns(steps, args.repeats, kind), args)


def rows_of(kind, times, args):
    """Medians beside that of the first system."""
    base = statistics.median(next(iter(times.values())))
    rows = []
    for name, seconds in times.items():
        median = statistics.median(seconds)
        rows.append(
            {
                "kind": kind,
                "system": name,
                "batch": args.batch,
                "length": args.length,
                "vocabulary": args.vocabulary,
                "dtype": args.dtype,
                "beside": "none",
                "step_ms": f"{1e3 * median:.1f}",
                "step_ms_q20": f"{1e3 * q20(seconds):.1f}",
                "step_ms_q80": f"{1e3 * q80(seconds):.1f}",
                "ratio_to_first": f"{median / base:.3f}",
                "epoch_s": f"{median * SENTENCES / args.batch:.0f}",
            }
        )
    return rows


def with_sizes(parser):
    """Add the flags that say how large a batch is."""
    parser.add_argument("--batch", type=int, default=64, help="sentences")
    parser.add_argument(
        "--length", type=int, default=32, help="tokens a sentence, its end among them"
    )
    parser.add_argument("--vocabulary", type=int, default=4000)
    return parser


def check_sizes(parser, args, kinds):
    """Refuse sizes and kinds that there are not, in one line."""
    for name, least in (("batch", 1), ("length", 2), ("vocabulary", 10), ("repeats", 1)):
        if getattr(args, name) < least:
            parser.error(f"--{name}: {least} or more is needed, not {getattr(args, name)}")
    unknown = [kind for kind in args.kinds.split(",") if kind not in kinds]
    if unknown:
        parser.error(f"--kinds: {', '.join(unknown)} is unknown; choose from {', '.join(kinds)}")


def main():
    parser = with_sizes(parser_of(__doc__.splitlines()[0], repeats=5))
    parser.add_argument("--kinds", default="ar,nat,exact", help="ar, nat, exact, joined by commas")
    args = parser.parse_args()
    check_sizes(parser, args, ("ar", "nat", "exact"))
    settings = known()
    rows = [{**row, **settings} for kind in args.kinds.split(",") for row in measured(kind, args)]
    shown = ["kind", "system", "step_ms", "step_ms_q20", "step_ms_q80", "ratio_to_first", "epoch_s"]
    report(rows, shown, args.out)


if __name__ == "__main__":
    main()
