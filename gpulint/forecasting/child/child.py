"""Entry point of the child: `python child.py TARGET [ARGS…]`, with the options in the environment.

Runs in the user's interpreter, which need not have gpulint installed.
"""

import importlib.util
import os
import sys


def _adopt_package() -> None:
    folder = os.path.abspath(os.path.join(__file__, "..", "..", ".."))
    spec = importlib.util.spec_from_file_location(
        "gpulint", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["gpulint"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    _adopt_package()
    from gpulint.forecasting.child import running

    running.main(sys.argv[1], sys.argv[2:])
