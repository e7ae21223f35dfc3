# A DataLoader with two workers, started by fork; the last batch is kept on the host.
from setting import train_on_squares

train_on_squares("fork")
