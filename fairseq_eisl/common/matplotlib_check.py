"""Can pictures be drawn here? To be asked before work whose last step draws."""

import importlib

INSTALL = "pip install 'fairseq-eisl[plots]'"


def why_no_pictures() -> str:
    """One line that says why nothing can be drawn on this machine; empty where it can be.

    Imports matplotlib, since one that is installed may still be broken.
    """
    try:
        for name in ("matplotlib", "matplotlib.figure"):
            importlib.import_module(name)
    except ImportError as err:
        broken = "" if (err.name or "").split(".")[0] == "matplotlib" else f" ({err})"
        return f"pictures need matplotlib{broken}: pip install matplotlib, or {INSTALL}"
    return ""
