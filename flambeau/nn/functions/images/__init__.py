"""Functions of images: resized, rearranged, sampled at given places."""
