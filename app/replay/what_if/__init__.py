"""What another variant, setting or a fault less would have changed: asked, run apart, and told."""
