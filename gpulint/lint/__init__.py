"""From files to findings: rules run, selected, suppressed, remembered."""
