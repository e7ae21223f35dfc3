import pandas as pd
import torch


def backtest(prices: pd.Series, signals: torch.Tensor):
    """Sums the losses of losing trades; nothing here has a gradient."""
    signals = signals.tolist()
    total_loss = 0.0
    losses = []
    output = []
    for i in range(1, len(prices)):
        change = prices.iloc[i] - prices.iloc[i - 1]
        pnl = change * signals[i - 1]
        if pnl < 0:
            loss = -pnl
            total_loss += loss
            losses.append(loss)
        output.append(pnl)
    return total_loss, losses, output
