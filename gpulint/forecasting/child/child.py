"""Entry point of the child: `python child.py TARGET [ARGS…]`, with the options in the environment.

Runs in the user's interpreter, which need not have gpulint installed: the verifier's child knows how it is adopted.
"""

import os
import runpy
import sys

if __name__ == "__main__":
    verifiers = os.path.abspath(os.path.join(__file__, "..", "..", "..", "runtime", "child", "child.py"))
    runpy.run_path(verifiers)["_adopt_package"]()
    from gpulint.forecasting.child import running

    running.main(sys.argv[1], sys.argv[2:])
