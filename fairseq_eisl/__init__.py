"""Edit-Invariant Sequence Loss for fairseq (``--user-dir fairseq_eisl``) and plain PyTorch.

``fairseq_eisl.losses`` and ``fairseq_eisl.noise`` need no fairseq.
"""

import importlib
import importlib.abc
import importlib.util
import os
import pkgutil
import sys

__version__ = "0.1.0"


def register():
    """Register the criterions, tasks and models with fairseq; safe to call twice.

    fairseq calls nothing of a ``--user-dir`` but its import, followed by
    ``tasks/`` and ``models/``; the criterions and the mends in ``fairseq_fixes`` would
    be missed.
    """
    from fairseq.criterions import CRITERION_REGISTRY

    from . import fairseq_fixes, full_help

    other = CRITERION_REGISTRY.get("eisl")
    if other is not None and not other.__module__.startswith(__name__ + "."):
        folder = os.path.dirname(os.path.abspath(__file__))
        raise ImportError(
            f"--user-dir: {folder} would register --criterion eisl again, after the module "
            f"{other.__module__} ({sys.modules[other.__module__].__file__}); load one of the two"
        )
    fairseq_fixes.apply()
    full_help.show_all_flags()
    for name in ("criterions", "tasks", "models"):
        package = importlib.import_module(f"{__name__}.{name}")
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                importlib.import_module(f"{package.__name__}.{module.name}")


class _AfterFairseq(importlib.abc.MetaPathFinder):
    """Calls :func:`register` once fairseq has been imported.

    A process may import ``fairseq_eisl.losses`` first and fairseq later. fairseq
    then takes the user folder for known and registers nothing of it.
    """

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "fairseq":
            return None
        sys.meta_path.remove(self)  # ask the other finders
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            register()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if sys.modules.get("fairseq") is not None:
    register()
else:
    sys.meta_path.insert(0, _AfterFairseq())
