"""What follows a draw: gradients for the parameters it was drawn with."""
