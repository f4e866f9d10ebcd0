"""Pictures of both fronts: those of the README, and many to look at. No code lies here."""
