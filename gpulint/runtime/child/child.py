"""Entry point of the child: `python child.py TARGET [ARGS…]`, with the options in the environment.

Runs in the user's interpreter, which need not have gpulint installed: the package is put into `sys.modules`
by hand and `sys.path` is left as the user's own run would have it.
"""

import importlib.util
import json
import os
import sys

_gpulint_bootstrap = True


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


def main() -> int:
    """Run the script under the harness; returns the exit code."""
    _adopt_package()
    from gpulint.runtime.child import ending, running
    from gpulint.runtime.child.harness import Harness, Stop
    from gpulint.runtime.record.channel import ADDRESS, OPTIONS, TOKEN, Channel
    from gpulint.runtime.record.result import Options
    from gpulint.runtime.trying import overlay

    options = Options.from_json(json.loads(os.environ[OPTIONS]))
    channel = Channel(os.environ[ADDRESS], os.environ[TOKEN])
    os.register_at_fork(after_in_child=channel.close)
    overlay.ensure()
    target, arguments = sys.argv[1], sys.argv[2:]
    running.prepare(target, arguments, options.module)
    home = os.getcwd() if options.module else os.path.dirname(os.path.realpath(target))
    harness = Harness(options, home, channel.send)

    def command(word: str) -> None:
        if not harness.done:
            ending.cut_short(harness, "timeout" if word == "timeout" else "interrupted")
        os._exit(0)

    channel.listen(command, lambda: os._exit(1))
    harness.start()
    try:
        running.run(target, options.module, harness.compile)
    except Stop:
        harness.stop_watching()
        return 0
    except BaseException as error:
        code = ending.failed(harness, error, options.module)
        harness.stop_watching()
        return code
    harness.report(ending.finished(harness))
    harness.stop_watching()
    return 0


if __name__ == "__main__":
    sys.exit(main())
