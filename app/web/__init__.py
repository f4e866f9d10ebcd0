"""The web front (Dash and Plotly)."""
