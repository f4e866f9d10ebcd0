"""What rules look at: a trace by subject, as expressions over whole columns."""
