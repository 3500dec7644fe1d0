"""Parsing of noise specifications."""

import pickle

import pytest

from fairseq_eisl.noise import KINDS, Context, example_rng, parse_noise
from fairseq_eisl.noise import operators as ops

WORDS = [f"w{i}" for i in range(12)]
CONTEXT = Context("_", ["v0", "v1"])

PROBABILITY = "a probability between 0 and 1 is needed"
LEVEL = "a level between 0 and 10 is needed"
SWAPS = "a number of swaps (0, 1, 2, ...) or 'all' is needed"


def run(spec, seed=5):
    return parse_noise(spec)(WORDS, example_rng(seed, 0), CONTEXT)


@pytest.mark.parametrize(
    ("spec", "operator"),
    [
        ("shuffle:3", lambda w, r: ops.swap(w, r, 3)),
        ("shuffle:all", ops.permute),
        ("repeat:0.5", lambda w, r: ops.repeat(w, r, 0.5)),
        ("blank:0.5", lambda w, r: ops.blank(w, r, 0.5, "_")),
        ("drop:0.5", lambda w, r: ops.drop(w, r, 0.5)),
        ("substitute:0.5", lambda w, r: ops.substitute(w, r, 0.5, ["v0", "v1"])),
        ("insert:0.5", lambda w, r: ops.insert(w, r, 0.5, ["v0", "v1"])),
        ("synthetic:5", lambda w, r: ops.synthetic(w, r, 5, "_")),
        ("synthetic:2.5", lambda w, r: ops.synthetic(w, r, 2.5, "_")),
        (
            "synthetic_released:5",
            lambda w, r: ops.synthetic_released(w, r, 5, "_", ["v0", "v1"]),
        ),
    ],
)
def test_each_noise(spec, operator):
    for seed in range(20):
        assert run(spec, seed) == operator(WORDS, example_rng(seed, 0))


def test_parts_act_in_order_on_one_stream():
    rng = example_rng(5, 0)
    expected = ops.blank(ops.repeat(WORDS, rng, 0.5), rng, 0.3, "_")
    assert run("repeat:0.5,blank:0.3") == expected
    assert run("repeat:1,blank:1") == ["_"] * 24
    assert run("blank:0.3,repeat:0.5") != expected


@pytest.mark.parametrize("spec", ["none", " none ", None])
def test_no_noise(spec):
    noise = parse_noise(spec)
    assert noise.operators == () and noise.text == "none"
    assert not noise.needs_vocabulary
    assert noise(WORDS, example_rng(1, 0), Context("_")) == WORDS


@pytest.mark.parametrize(
    "spec", ["repeat:0.5 , blank:.3", " repeat:5e-1,blank:+0.3", "repeat : 0.5,blank: 0.30 "]
)
def test_spaces_and_ways_to_write_a_number(spec):
    assert run(spec) == run("repeat:0.5,blank:0.3")


def test_limits_are_allowed():
    assert run("repeat:0") == run("shuffle:0") == run("synthetic:0") == run("drop:0") == WORDS
    assert len(run("repeat:1")) == 2 * len(WORDS)
    assert sorted(run("shuffle: all")) == sorted(WORDS)
    assert run("shuffle:1000") == run("shuffle:11") != WORDS
    assert run("synthetic:10") != WORDS


@pytest.mark.parametrize(
    ("spec", "part", "reason"),
    [
        ("shufle:3", "shufle:3", "is no known noise"),
        ("Repeat:0.5", "Repeat:0.5", "is no known noise"),
        ("0.5", "0.5", "is no known noise"),
        ("repeat=0.5", "repeat=0.5", "is no known noise"),
        ("repeat:0.5;blank:0.1", "repeat:0.5;blank:0.1", PROBABILITY),
        ("repeat:0.5 blank:0.1", "repeat:0.5 blank:0.1", PROBABILITY),
        # empty parts
        ("repeat:0.5,", "", "is no known noise"),
        (",repeat:0.5", "", "is no known noise"),
        ("repeat:0.5,,blank:0.1", "", "is no known noise"),
        (",", "", "is no known noise"),
        (":0.5", ":0.5", "is no known noise"),
        ("none,repeat:0.5", "none", "is no known noise"),
        ("repeat", "repeat", PROBABILITY),
        ("blank:0.1,repeat:", "repeat:", PROBABILITY),
        # numbers
        ("repeat:half", "repeat:half", PROBABILITY),
        ("repeat:needed", "repeat:needed", PROBABILITY),
        ("repeat:50%", "repeat:50%", PROBABILITY),
        ("repeat:0,5", "5", "is no known noise"),
        ("repeat:0.1:0.2", "repeat:0.1:0.2", PROBABILITY),
        ("repeat:0_1", "repeat:0_1", PROBABILITY),
        ("repeat:nan", "repeat:nan", PROBABILITY),
        ("repeat:inf", "repeat:inf", PROBABILITY),
        ("blank:1.01", "blank:1.01", PROBABILITY),
        ("drop:-0.1", "drop:-0.1", PROBABILITY),
        ("substitute:2", "substitute:2", PROBABILITY),
        ("insert:x", "insert:x", PROBABILITY),
        ("synthetic:10.5", "synthetic:10.5", LEVEL),
        ("synthetic:-1", "synthetic:-1", LEVEL),
        ("synthetic:nan", "synthetic:nan", LEVEL),
        ("synthetic_released:all", "synthetic_released:all", LEVEL),
        ("shuffle:-1", "shuffle:-1", SWAPS),
        ("shuffle:2.0", "shuffle:2.0", SWAPS),
        ("shuffle:1_0", "shuffle:1_0", SWAPS),
        ("shuffle:nan", "shuffle:nan", SWAPS),
        ("shuffle:ALL", "shuffle:ALL", SWAPS),
        ("shuffle", "shuffle", SWAPS),
    ],
)
def test_errors_name_flag_value_and_choices(spec, part, reason):
    with pytest.raises(ValueError) as error:
        parse_noise(spec, flag="--target-noise")
    message = str(error.value)
    where = "" if part == spec else f" in {spec!r}"
    assert message.startswith(f"--target-noise: {part!r}{where}")
    assert (" in 'r" in message) == (bool(where) and spec.startswith("r"))
    assert reason in message and "\n" not in message
    if "no known" in reason:
        assert all(f"{name}:<" in message for name in KINDS) and "none" in message
    else:
        name = part.split(":")[0].split()[0]
        assert f"write {name}:<{KINDS[name].argument}>" in message


@pytest.mark.parametrize("spec", ["", " ", "\t"])
def test_an_empty_text_is_no_noise_by_accident(spec):
    with pytest.raises(ValueError, match="^--target-noise: .* names no noise; choose from none, "):
        parse_noise(spec, flag="--target-noise")


def test_default_flag():
    with pytest.raises(ValueError, match="^--noise: 'x'"):
        parse_noise("x")


@pytest.mark.parametrize("name", ["substitute", "insert", "synthetic_released"])
def test_random_words_need_a_vocabulary(name):
    noise = parse_noise(f"repeat:0.1,{name}:0.5")
    assert noise.needs_vocabulary
    for vocabulary in (None, []):
        with pytest.raises(ValueError, match=f"{name}.*vocabulary"):
            noise(WORDS, example_rng(1, 0), Context("_", vocabulary))


@pytest.mark.parametrize(
    ("spec", "permutes"),
    [
        ("shuffle:3", True),
        ("shuffle:all,shuffle:2", True),
        ("shuffle:3,repeat:0.1", False),
        ("blank:0.1", False),  # a blank may take more pieces, or fewer
        ("synthetic:1", False),
    ],
)
def test_keeps_words(spec, permutes):
    assert parse_noise(spec).keeps_words is permutes
    assert not parse_noise(spec).needs_vocabulary


def test_pickling():
    """Data loader workers that are spawned receive the noise pickled."""
    for spec in [f"{name}:1" for name in KINDS] + ["none", "repeat:0.3,shuffle:all"]:
        noise = parse_noise(spec)
        copy = pickle.loads(pickle.dumps(noise))
        assert copy.text == noise.text
        assert copy(WORDS, example_rng(2, 0), CONTEXT) == noise(WORDS, example_rng(2, 0), CONTEXT)
