"""XPlane, the protobuf of the profilers of XLA: JAX, TensorFlow, PyTorch/XLA."""
