"""What the tests of the pictures draw."""

from fairseq_eisl.evaluation.readers.training_log import Curve

from .logs import row

LONG = "WMT14 en-de newstest2014, tokenised, compound split, five checkpoints averaged, one step"
ROWS = {
    "one": [row("CE"), row("EISL")],
    "no noise column": [{**row(s), "noise": ""} for s in ("CE", "EISL")],
    "seeds": [
        row(s, n, k) for n in ("repeat:0.5", "blank:0.4") for s in ("CE", "EISL") for k in "12"
    ],
    "many": [
        row(s, f"repeat:0.{i:02}", bleu="32.10") for i in range(0, 80, 5) for s in ("CE", "EISL")
    ],
    "long names": [
        row(system, noise, test_set=LONG)
        for noise in ("synthetic:5,blank:0.2,shuffle:3", "none")
        for system in ("CE, label smoothing 0.1", "EISL after CE, orders 1 and 2")
    ],
    "collapsed": [
        row("CE", bleu="0.00", repetition="nan", length_ratio="0.000", repetition_reference=""),
        row("EISL", bleu="0.00", repetition="0.00", length_ratio="0.970"),
    ],
}
CURVES = {
    "two stages": {"CE": Curve([100, 200, 300], [5.0, 9.0, 8.5]), "EISL": Curve([50], [20.0])},
    "long names": {f"a rather long name of stage {i}": Curve([9], [i]) for i in range(4)},
    "dense": {"CE": Curve(list(range(1, 4000, 10)), [0.0] * 400)},
}

ITERATIONS = {
    "seeds": [
        row(s, seed=k, iterations=str(i), bleu=str(20 + i + int(k)))
        for s in ("CE", "EISL")
        for i in (0, 1, 2, 4, 9)
        for k in "12"
    ],
    "archs": [
        row(s, iterations=str(i), arch=arch, test_set=LONG)
        for s in ("CE, label smoothing 0.1", "EISL after CE, orders 1 and 2")
        for arch in ("levenshtein_transformer", "cmlm_transformer")
        for i in (0, 10)
    ],
    "one point": [row(iterations="0")],
}
