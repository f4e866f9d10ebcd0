"""The Debug Adapter Protocol in front of the debugger, for editors that speak it."""
