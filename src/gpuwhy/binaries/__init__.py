"""What a binary says of itself: ELF, fatbins, cubins, archives, wheels. Standard library only, Python >= 3.6.

The collector carries these readers to a target, so nothing here imports another part of ours. They read headers, not
payloads: one to twenty megabytes where a library has hundreds, and never more than a few megabytes of it in memory.
"""
