"""Many runs together: what each came to, in tables whose columns stay."""
