"""Checks command lines with fairseq's own parsers, before any of them runs.

A process of its own, since recipes import no fairseq: ``python -m
fairseq_eisl.recipes.flag_check`` reads ``[[recipe, stage, command], ...]`` as JSON from
standard input and prints ``{"cuda": bool, "errors": [[recipe, stage, message], ...]}``.
"""

import contextlib
import difflib
import io
import json
import re
import sys
from typing import List, Optional

PROGRAMS = ("fairseq-preprocess", "fairseq-train", "fairseq-generate")


def find_error(command: List[str]) -> Optional[str]:
    """What fairseq or this package would refuse about a command line, in one line."""
    program = next((word for word in command if word in PROGRAMS), None)
    if program is None:
        return None
    words = command[command.index(program) + 1 :]
    output = io.StringIO()
    parser = None
    try:
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            parser = _parser(program, words)
            from fairseq import options

            if program == "fairseq-preprocess":
                parser.parse_args(words)
                return None
            args = options.parse_args_and_arch(parser, input_args=list(words))
            _check_values(args)
    except SystemExit:
        lines = [line for line in output.getvalue().splitlines() if ": error: " in line]
        message = lines[-1].split(": error: ", 1)[1] if lines else output.getvalue().strip()
        return _with_choices(message, parser)
    except (ValueError, KeyError, AssertionError) as err:
        return " ".join(str(err).split())
    return None


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


def _check_values(args):
    """What this package checks only when task and criterion are made."""
    from ..criterions import eisl
    from ..noise import parse_noise

    if getattr(args, "target_noise", None) is not None:
        parse_noise(args.target_noise, flag="--target-noise")
    if getattr(args, "criterion", None) == "eisl":
        eisl.check_flags(args)
        eisl.loss_options(args)


def _with_choices(message: str, parser) -> str:
    """argparse's message with the flags that an unknown one may have been meant to be."""
    unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
    if parser is None or not unknown:
        return message
    known = [flag for flag in parser._option_string_actions if flag.startswith("--")]
    near = difflib.get_close_matches(unknown[1], known, 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"{unknown[1]} is no flag of this command{hint}"


def check(commands: list) -> dict:
    """The answer to ``[[recipe, stage, command], ...]``; see the module."""
    import torch

    known: dict = {}  # the cells of a sweep have many commands in common
    errors = []
    for recipe, stage, command in commands:
        text = json.dumps(command)
        if text not in known:
            known[text] = find_error(command)
        if known[text]:
            errors.append([recipe, stage, known[text]])
    return {"cuda": torch.cuda.is_available(), "errors": errors}


def main() -> int:
    print(json.dumps(check(json.load(sys.stdin))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
