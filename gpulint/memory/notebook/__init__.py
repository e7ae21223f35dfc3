"""The extension for IPython and Jupyter: `%load_ext gpulint`."""
