"""What a profile has beside its lanes: names of kernels, those that took most, the GPU's load."""
