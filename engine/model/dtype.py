"""The one type of numbers that the decoder computes in; the package says why."""

from __future__ import annotations

import torch

DTYPE = torch.float64
