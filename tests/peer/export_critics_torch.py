"""The critics of seven published agents in PyTorch, small, and the losses that train them. Written
anew after the papers and the authors' public code; widths are arguments, everything else is as
published.

SAC        Haarnoja et al., arXiv 1812.05905; as CleanRL has it (Huang et al., JMLR 23, 2022)
SimBa      Lee et al., ICLR 2025, arXiv 2410.09754
SimBa-V2   Lee et al., ICML 2025, arXiv 2502.15280
BRO        Nauman et al., NeurIPS 2024, arXiv 2405.16158
TD-MPC2    Hansen, Su & Wang, ICLR 2024, arXiv 2310.16828
MR.Q       Fujimoto et al., ICLR 2025, arXiv 2501.16142
CrossQ     Bhatt et al., ICLR 2024, arXiv 1902.05605, while its renormalization equals batch
normalization """

import math

import torch
from torch import nn
from torch.nn import functional as F


class SAC(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = (
            nn.Linear(inputs, width),
            nn.Linear(width, width),
            nn.Linear(width, 1),
        )

    def forward(self, x, a):
        x = F.relu(self.fc1(torch.cat([x, a], 1)))
        return self.fc3(F.relu(self.fc2(x)))


class SimBaBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).relu())


class SimBa(nn.Module):
    def __init__(self, inputs, width, blocks=2):
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList([SimBaBlock(width) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 1)

    def forward(self, obs, action):
        x = self.embed(torch.cat((obs, action), dim=-1))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).squeeze(-1)


def to_sphere(x):
    return F.normalize(x, dim=-1, eps=1e-8)


class Scaler(nn.Module):
    def __init__(self, width, init=1.0, scale=1.0):
        super().__init__()
        self.factor, self.scaler = init / scale, nn.Parameter(torch.full((width,), scale))

    def forward(self, x):
        return x * (self.scaler * self.factor)


class SimBaV2Block(nn.Module):
    def __init__(self, width, blocks, expansion=4):
        super().__init__()
        scale = math.sqrt(2 / width) / math.sqrt(expansion)
        self.up = nn.Linear(width, expansion * width, bias=False)
        self.scaler = Scaler(expansion * width, scale, scale)
        self.down = nn.Linear(expansion * width, width, bias=False)
        self.alpha = Scaler(width, 1 / (blocks + 1), 1 / math.sqrt(width))

    def forward(self, x):
        h = to_sphere(self.down(F.relu(self.scaler(self.up(x))) + 1e-8))
        return to_sphere(x + self.alpha(h - x))


class SimBaV2(nn.Module):
    def __init__(self, inputs, width, atoms, blocks=2):
        super().__init__()
        self.embed, self.scaler = nn.Linear(inputs + 1, width, bias=False), Scaler(
            width, math.sqrt(2 / width), math.sqrt(2 / width)
        )
        self.blocks = nn.Sequential(*[SimBaV2Block(width, blocks) for _ in range(blocks)])
        self.neck, self.neck_scaler = nn.Linear(width, width, bias=False), Scaler(width)
        self.head = nn.Linear(width, atoms)

    def forward(self, obs, action):
        x = torch.cat([obs, action], -1)
        x = to_sphere(torch.cat([x, torch.full_like(x[..., :1], 3.0)], -1))
        x = self.blocks(to_sphere(self.scaler(self.embed(x))))
        return self.head(self.neck_scaler(self.neck(x)))


class BROBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(width, width),
            nn.LayerNorm(width, eps=1e-6),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.LayerNorm(width, eps=1e-6),
        )

    def forward(self, x):
        return self.net(x) + x


class BRO(nn.Module):
    def __init__(self, inputs, width, quantiles):
        super().__init__()
        self.embed = nn.Sequential(
            nn.Linear(inputs, width), nn.LayerNorm(width, eps=1e-6), nn.ReLU()
        )
        self.blocks = nn.Sequential(BROBlock(width), BROBlock(width))
        self.head = nn.Linear(width, quantiles)

    def forward(self, obs, action):
        return self.head(self.blocks(self.embed(torch.cat([obs, action], -1))))


class NormedLinear(nn.Linear):
    """Linear, then dropout, layer norm and mish."""

    def __init__(self, inputs, outputs, dropout=0.0):
        super().__init__(inputs, outputs)
        self.ln, self.act = nn.LayerNorm(outputs), nn.Mish(inplace=False)
        self.dropout = nn.Dropout(dropout) if dropout else None

    def forward(self, x):
        x = super().forward(x)
        if self.dropout:
            x = self.dropout(x)
        return self.act(self.ln(x))


class TDMPC2(nn.Module):
    """One of its five critics, on a latent state; the first layer has a dropout of 0.01."""

    def __init__(self, inputs, width, bins):
        super().__init__()
        self.mlp = nn.Sequential(
            NormedLinear(inputs, width, 0.01), NormedLinear(width, width), nn.Linear(width, bins)
        )

    def forward(self, z, a):
        return self.mlp(torch.cat([z, a], -1))


class MRQ(nn.Module):
    """Both critics in one module, on an embedding."""

    def __init__(self, inputs, width):
        super().__init__()
        self.q1 = nn.ModuleList(
            [
                nn.Linear(a, b)
                for a, b in ((inputs, width), (width, width), (width, width), (width, 1))
            ]
        )
        self.q2 = nn.ModuleList(
            [
                nn.Linear(a, b)
                for a, b in ((inputs, width), (width, width), (width, width), (width, 1))
            ]
        )

    def forward(self, zsa):
        return torch.cat([self.one(self.q1, zsa), self.one(self.q2, zsa)], 1)

    def one(self, layers, x):
        for layer in layers[:-1]:
            x = layer(x)
            x = F.elu(F.layer_norm(x, (x.shape[-1],)))
        return layers[-1](x)


class CrossQ(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        norm = dict(eps=1e-3, momentum=0.01)
        self.net = nn.Sequential(
            nn.BatchNorm1d(inputs, **norm),
            nn.Linear(inputs, width),
            nn.ReLU(),
            nn.BatchNorm1d(width, **norm),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.BatchNorm1d(width, **norm),
            nn.Linear(width, 1),
        )

    def forward(self, x, a):
        return self.net(torch.cat([x, a], -1))


def squared(f, t):
    return ((f.reshape(t.shape) - t) ** 2).mean()


def cross_entropy(f, t):
    return -(t * torch.log_softmax(f, -1)).sum(-1).mean()


def quantile_huber(f, t):
    """Dabney et al., AAAI 2018, equation 10, over all pairs; summed over quantiles, averaged over
    targets."""
    k = f.shape[1]
    tau = (torch.arange(k, dtype=f.dtype) + 0.5) / k
    u = t.unsqueeze(1) - f.unsqueeze(2)
    huber = torch.where(u.abs() <= 1, 0.5 * u**2, u.abs() - 0.5)
    return ((tau.view(1, -1, 1) - (u < 0).to(f.dtype)).abs() * huber).mean(2).sum(1).mean()


def smooth_l1_mean(f, t):
    """Of both critics' values f [B, 2] and one target, the mean over both."""
    d = (f - t.reshape(-1, 1)).abs()
    return torch.where(d < 1, 0.5 * d**2, d - 0.5).mean()


class BatchRenorm1d(nn.Module):
    """As sb3-contrib has it, during its warm-up."""

    def __init__(self, width, steps=0):
        super().__init__()
        self.register_buffer("ra_mean", torch.zeros(width))
        self.register_buffer("ra_var", torch.ones(width))
        self.register_buffer("steps", torch.tensor(steps))
        self.scale, self.bias = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))
        self.eps, self.momentum, self.warmup_steps, self.affine = 1e-3, 0.01, 100, True

    def forward(self, x):
        mean, var = x.mean(0), x.var(0)
        if self.steps <= self.warmup_steps:
            self.ra_mean += self.momentum * (mean.detach() - self.ra_mean)
            self.steps += 1
        return self.scale * (x - mean) / (var + self.eps).sqrt() + self.bias
