"""torch.utils.tensorboard: SummaryWriter, through the package tensorboard where it is installed."""

from flambeau.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
