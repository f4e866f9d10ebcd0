"""Time travel through a trace, without a screen."""
