"""Layers whose examples can be clipped without forming their gradients: one file for one kind."""

from sfumato.learn.torch.layers.attention import Attention
from sfumato.learn.torch.layers.base import Layer, Tape
from sfumato.learn.torch.layers.convolution import Convolution
from sfumato.learn.torch.layers.embedding import Embedding
from sfumato.learn.torch.layers.linear import Linear
from sfumato.learn.torch.layers.normalisation import GroupNorm, LayerNorm, RmsNorm
from sfumato.learn.torch.layers.own import Own
from sfumato.learn.torch.layers.recurrent import Recurrent

LAYERS: tuple[Layer, ...] = (
    Linear(), Embedding(), LayerNorm(), GroupNorm(), RmsNorm(), Convolution(), Attention(), Recurrent(), Own(),
)  # fmt: skip

__all__ = ["LAYERS", "Layer", "Tape"]
