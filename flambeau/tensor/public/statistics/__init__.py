"""Functions of whole rows: order, spread, running extremes, windows."""
