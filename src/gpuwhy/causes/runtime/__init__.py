"""Run time: kernels that touch memory they do not own, kernels a GPU traps on, and answers that are damaged."""
