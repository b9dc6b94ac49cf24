"""Functions of torch.nn.functional whose signatures differ from an operator's."""
