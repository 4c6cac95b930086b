"""Will a model fit on these GPUs, under this release of an engine and these settings?

``read_model`` reads a model's folder, ``read_arguments`` what the user typed, ``estimate`` says what happens.
"""
