import torch


class Scale(torch.nn.Module):
    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x * self.factor) * x


def train(model: Scale, batches: list[torch.Tensor]) -> float:
    total = 0.0
    for batch in batches:
        loss = model(batch).sum()
        total += loss.item()
    return total
