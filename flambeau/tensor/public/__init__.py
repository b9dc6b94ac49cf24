"""What torch has under its own name or on Tensor, beyond what operators become by themselves."""
