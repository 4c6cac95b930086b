"""Causes in the device itself: a GPU, its memory and links, the NVSwitch fabric, the host's kernel."""
