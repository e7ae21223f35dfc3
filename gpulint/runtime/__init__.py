"""The verifier: runs some steps of the user's script and measures what each line does to memory.

It is given findings as data and knows nothing of the linter (`tests/test_layers.py` holds what it may import); the two are
put together by `gpulint.verifying`. Only the child process imports torch. Its modules (`child`, `harness` and what that is
composed of, `calls`, `lines`, `drift`, `holders`, `probes`) import nothing but torch and the standard library, because
they run in the user's interpreter.
"""
