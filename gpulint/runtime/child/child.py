"""Entry point of the child: `python child.py TARGET [ARGS…]`, with the options in the environment. A worker that the script
spawns runs this file too, under another name, before anything of the script.

Runs in the user's interpreter, which need not have gpulint installed: the package is put into `sys.modules`
by hand and `sys.path` is left as the user's own run would have it.
"""

import importlib.util
import os
import sys

_gpulint_bootstrap = True


def _adopt_package() -> None:
    folder = os.path.abspath(os.path.join(__file__, "..", "..", ".."))
    start = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location("gpulint", start, submodule_search_locations=[folder])
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["gpulint"] = package
    spec.loader.exec_module(package)


def main() -> int:
    """Run the script under the harness; returns the exit code."""
    _adopt_package()
    from gpulint.runtime.child import running, workers
    from gpulint.runtime.child.harness import Harness, Stop
    from gpulint.runtime.trying import overlay

    options = workers.asked()
    overlay.ensure()
    target, arguments = sys.argv[1], sys.argv[2:]
    running.prepare(target, arguments, options.module)
    harness = Harness(options)
    workers.connect(harness)
    harness.start()
    workers.follow(harness)
    try:
        running.run(target, options.module, harness.session.lines.compile)
    except Stop:
        pass  # this process's, which has reported then, or a worker's that a pool has handed on
    except BaseException as error:
        code = running.failed(harness, error, options.module)
        harness.stop_watching()
        return code
    harness.report(running.finished(harness))
    harness.stop_watching()
    return 0


def enter_worker(number: int) -> None:
    """In a spawned worker, the first thing that happens: have the script watched from its first import on."""
    if "gpulint" not in sys.modules:
        _adopt_package()
    from gpulint.runtime.child import workers

    workers.enter(number)


if __name__ == "__main__":
    sys.exit(main())
if __name__ == "__gpulint_worker__":
    enter_worker(globals()["worker_number"])
