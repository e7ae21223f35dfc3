"""The phases of a training run as they happen: marked by hand, by hooks of torch or by a framework's callback."""
