"""The verifier: runs some steps of the user's script and measures what each line does to memory.

Only the child process imports torch. Its modules (`child`, `harness`, `stepping`, `calls`, `lines`, `drift`,
`holders`, `probes`) import nothing but torch and the standard library, because they run in the user's
interpreter.
"""
