"""``--help`` that shows every flag of the chosen task, criterion, architecture and optimiser.

fairseq parses a command line twice: first for what was chosen, then, once the flags of that are
known to the parser, for all of it. ``--help`` ends the first pass, so it never showed them.
"""

import functools
import sys


def show_all_flags():
    """Let ``--help`` wait for the second pass, where this package is the ``--user-dir``."""
    from fairseq import options

    parse = options.parse_args_and_arch
    if hasattr(parse, "__wrapped__"):
        return

    @functools.wraps(parse)
    def parse_args_and_arch(parser, input_args=None, *rest, **more):
        given = list(sys.argv[1:] if input_args is None else input_args)
        words = [word for word in given if word not in ("-h", "--help")]
        # fairseq's preprocessing and the like know their flags already.
        if len(words) == len(given) or rest or more.get("parse_known"):
            return parse(parser, input_args, *rest, **more)

        first_pass = parser.parse_known_args

        def choices(*args, **kwargs):
            found, unknown = first_pass(*args, **kwargs)
            if getattr(found, "arch", "") is None:  # fairseq dies of no --arch
                del found.arch
            return found, unknown

        def show(*args, **kwargs):
            parser.print_help()
            parser.exit()

        parser.parse_known_args, parser.parse_args = choices, show
        return parse(parser, words, **more)

    options.parse_args_and_arch = parse_args_and_arch
