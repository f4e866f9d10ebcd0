"""The timeline drawn in cells: the map, the ruler, the lanes and the bars in them."""
