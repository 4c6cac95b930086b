"""Causes of full disks, small shared memory and limits of a process."""
