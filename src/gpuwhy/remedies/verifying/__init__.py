"""Proves a remedy, rung by rung: facts, the failing check, a build, a launch, the service itself."""
