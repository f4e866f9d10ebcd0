"""Lines of text that are split, dated and gathered into rows, as several formats have them."""
