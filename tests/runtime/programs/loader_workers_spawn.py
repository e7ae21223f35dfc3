# A DataLoader with two workers, started by spawn; the last batch is kept on the host.
from setting import train_on_squares

if __name__ == "__main__":
    train_on_squares("spawn")
