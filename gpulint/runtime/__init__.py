"""The verifier: runs some steps of the user's script and measures what each line does to memory.

The way of `gpulint verify train.py` from its options to its exit status:

    cli/commands/verify.command        the options
    cli/_verify.request_of             what is run (`Run`), what that is held against (`Limits`)
    cli/_verify.perform                one run, or with --fix a trial
    gate/running.run_limited           who else is on the cards; calls back, and holds the run against limits
    verifying.verification_of          the places of the findings, to be watched
    parent/runner.run                  starts child/child.py in the user's interpreter, follows it, ends it
        child/child.main               runs the script under a `Harness`
        child/harness.Harness          told of optimizers, forwards, batches, windows: `Steps` makes steps of them
        child/looks.look               judges births and survivors: `record/drift.judge`, `holding/holders.find`
        child/stopping.Stopping        raises `Stop` once enough is known
        child/session.assemble         all that was measured, as a `RankResult`, sent to the parent as JSON
    parent/verdict.verify              findings x measurements: `parent/judging.judge`, and what nobody predicted
    Verification.exit_code             0, 1, 2, 3 or 130
    reports/verify.document            the report

It is given findings as data and knows nothing of the linter (`tests/test_rooms.py` holds what it may import); the two are
put together by `gpulint.verifying`. Only the child process imports torch. Its rooms (`child`, `trying`, `observing`, `holding`,
`probes`, `record`) import nothing but torch and the standard library, because they run in the user's interpreter.
"""
