"""Toolchain: the compiler, the toolkit, the assembler and the caches of what they build."""
