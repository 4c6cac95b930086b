"""Carries a remedy out: plan and preview it, apply it by the program on the target, verify it, take it back."""
