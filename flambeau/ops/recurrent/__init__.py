"""Recurrent layers: many steps as one operator."""
