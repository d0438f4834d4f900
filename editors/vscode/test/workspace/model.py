import torch


class Scale(torch.nn.Module):
    # stitchcuda: init(1.5)
    # stitchcuda: inputs(randn(256, 64))
    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.sigmoid(row * self.factor) * row for row in x])


def train(model: Scale, batches: list[torch.Tensor]) -> float:
    total = 0.0
    for batch in batches:
        loss = model(batch).sum()
        total += loss.item()
    return total
