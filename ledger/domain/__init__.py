"""Pure rules: no Django, no clock, no I/O."""
