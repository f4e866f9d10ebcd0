"""The terminal front: the timeline, findings, overview and step detail of a trace."""
