"""Checks command lines with fairseq's own parsers, before any of them runs.

A process of its own, since recipes import no fairseq: ``python -m
fairseq_eisl.recipes.flag_check`` reads ``[[recipe, stage, command], ...]`` as JSON from
standard input and prints ``{"gpus": int, "errors": [[recipe, stage, message], ...]}``.
"""

import contextlib
import difflib
import io
import json
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import flag_values
from .worker_checks import workers

PROGRAMS = ("fairseq-preprocess", "fairseq-train", "fairseq-generate")
Parsed = Tuple[Any, Callable[[str], str]]
"""The values of a command line, and the flag that gave each."""


def find_error(command: List[str], cuda: bool = True) -> Optional[str]:
    """What fairseq or this package would refuse about a command line, in one line.

    ``cuda``: whether this machine has a GPU.
    """
    return _examine(command, cuda)[0]


def _examine(command: List[str], cuda: bool) -> Tuple[Optional[str], Optional[Parsed]]:
    """(what is wrong, what was read)"""
    program = next((word for word in command if word in PROGRAMS), None)
    if program is None:
        return None, None
    words = command[command.index(program) + 1 :]
    output = io.StringIO()
    parser = None
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            parser = _parser(program, words)
            from fairseq import options

            if program == "fairseq-preprocess":
                args = parser.parse_args(words)
            else:
                args = options.parse_args_and_arch(parser, input_args=list(words))
            _check_names(parser, words)
            name = _namer(parser, words)
            flag_values.check_numbers(args, name)
            _check_values(args)
            if program == "fairseq-train":
                flag_values.check_training(args, name, _asked(args, "validated") or "")
                launcher = command[: command.index(program)]
                found = None if cuda else workers(launcher, _given(words))
                if found:
                    raise ValueError(f"{found}, and torch finds no GPU here")
            if program == "fairseq-generate":
                flag_values.check_decoding(args, name)
    except SystemExit:
        lines = [line for line in output.getvalue().splitlines() if ": error: " in line]
        message = lines[-1].split(": error: ", 1)[1] if lines else output.getvalue().strip()
        return _with_choices(message, parser, words), None
    except (ValueError, KeyError, AssertionError, TypeError) as err:
        return " ".join(str(err).split()), None
    return None, (args, name)


def _parser(program: str, words: List[str]):
    from fairseq import options

    if program == "fairseq-preprocess":
        return options.get_preprocessing_parser()
    # fairseq looks at sys.argv for --user-dir, in whose files the tasks and criterions are.
    old, sys.argv = sys.argv, [program, *words]
    try:
        if program == "fairseq-train":
            return options.get_training_parser()
        return options.get_generation_parser()
    finally:
        sys.argv = old


def _given(words: List[str]) -> Dict[str, str]:
    """The flags of a command line and the word after each."""
    found = {}
    for word, after in zip(words, [*words[1:], ""]):
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            found[flag[2:]] = value if equals else after
    return found


def _check_names(parser, words: List[str]):
    """argparse takes the beginning of a flag for the flag, behind the back of who reads it."""
    for word in words:
        flag = word.split("=", 1)[0]
        if flag.startswith("--") and flag not in parser._option_string_actions:
            raise ValueError(_no_flag(flag, parser))


def _namer(parser, words: List[str]) -> Callable[[str], str]:
    given = {word.split("=", 1)[0] for word in words}

    def name(key: str) -> str:
        options = [
            option
            for action in parser._actions
            if action.dest == key
            for option in action.option_strings
        ]
        written = [option for option in options if option in given]
        return (written or options or ["--" + key.replace("_", "-")])[0]

    return name


def _check_values(args):
    """What this package checks only when task, model and criterion are made."""
    from fairseq.models import ARCH_MODEL_REGISTRY

    from ..noise import parse_noise

    if getattr(args, "target_noise", None) is not None:
        parse_noise(args.target_noise, flag="--target-noise")
    _asked(args, "check_flags", args)
    model = ARCH_MODEL_REGISTRY.get(getattr(args, "arch", None))
    if hasattr(model, "check_flags"):
        model.check_flags(args)


def _asked(args, question: str, *about):
    """What the criterion says, where it is one that can be asked."""
    from fairseq.criterions import CRITERION_REGISTRY

    criterion = CRITERION_REGISTRY.get(getattr(args, "criterion", None))
    answer = getattr(criterion, question, None)
    return None if answer is None else answer(*about)


def _with_choices(message: str, parser, words: List[str]) -> str:
    """argparse's message with the flags that an unknown one may have been meant to be, and with
    words for what fairseq reads numbers with."""
    message = re.sub(
        r"invalid <lambda> value: ('.*')$",
        r"\1 is no number, nor several in brackets or with commas",
        message,
    )
    unknown = re.search(r"unrecognized arguments: (\S+)", message)
    if parser is None or not unknown:
        return message
    if unknown[1].startswith("--"):
        return _no_flag(unknown[1].split("=", 1)[0], parser)
    if unknown[1] in words:
        flag = flag_values.first_flag(words, words.index(unknown[1]))
        return f"{flag} {unknown[1]}: true, false or null is needed, it takes no value"
    return message


def _no_flag(flag: str, parser) -> str:
    known = [option for option in parser._option_string_actions if option.startswith("--")]
    near = difflib.get_close_matches(flag, known, 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"{flag} is no flag of this command{hint}"


def check(commands: list) -> dict:
    """The answer to ``[[recipe, stage, command], ...]``; see the module."""
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    known: dict = {}  # the cells of a sweep have many commands in common
    trained: dict = {}
    errors = []
    for recipe, stage, command in commands:
        text = json.dumps(command)
        if text not in known:
            known[text] = _examine(command, gpus > 0)
        error, parsed = known[text]
        trained[recipe, stage] = parsed
        if error:
            errors.append([recipe, stage, error])
        if "average" in command and "--last" in command:
            training = command[command.index("--folder") + 1]
            error = _average_error(trained.get((recipe, training)), command)
            if error:
                errors.append([recipe, training, error])
    return {"gpus": gpus, "errors": errors}


def _average_error(parsed: Optional[Parsed], command: List[str]) -> Optional[str]:
    """What is wrong about averaging a training's last checkpoints."""
    if parsed is None:
        return None
    try:
        flag_values.check_average(parsed[0], int(command[command.index("--last") + 1]), parsed[1])
    except ValueError as err:
        return str(err)
    return None


def main() -> int:
    print(json.dumps(check(json.load(sys.stdin))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
