"""The program that runs on a target: read-only, standard library only, Python >= 3.6, one file per subject."""
