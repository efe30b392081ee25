"""Recurrent layers: unrolled step by step, so that each step's linear map is noted. Slower than the fused kernels."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sfumato.errors import InvalidParameter
from sfumato.learn.torch.layers.base import Layer, Tape
from sfumato.learn.torch.layers.linear import Owner

NAME = "a recurrent layer"


class Recurrent(Layer):
    """nn.LSTM, nn.GRU and nn.RNN with batch_first=True."""

    kinds = (nn.LSTM, nn.GRU, nn.RNN)

    def refusal(self, module: Any) -> str | None:
        if not module.batch_first:
            return "its first dimension is not the example; build it with batch_first=True"
        return "proj_size is not supported" if module.proj_size else None

    def forward(self, module: Any, tape: Tape, *args: Any, **kwargs: Any) -> Any:
        return unroll(module, tape, *args, **kwargs)


def unroll(module: Any, tape: Tape, x: Tensor, start: Any = None) -> tuple[Tensor, Any]:
    """The arguments and results of the module: all outputs, and the last state of each layer and direction."""
    if not isinstance(x, Tensor) or x.dim() != 3:
        raise InvalidParameter(
            "a recurrent layer is given examples × places × features.\n  found:  a packed sequence or another shape\n"
            "  do:     pad the sequences, and leave out padded places in the loss"
        )
    tape.check(NAME, x)
    ways = 2 if module.bidirectional else 1
    zeros = x.new_zeros(module.num_layers * ways, len(x), module.hidden_size)
    first = start if start is not None else (zeros, zeros) if module.mode == "LSTM" else zeros
    states = list(zip(*first, strict=True)) if module.mode == "LSTM" else [(h,) for h in first]
    last = []
    for layer in range(module.num_layers):
        outputs = []
        for way in range(ways):
            out, state = run(module, tape, x, states[layer * ways + way], f"_l{layer}{'_reverse' * way}", way == 1)
            outputs.append(out)
            last.append(state)
        x = torch.cat(outputs, 2) if ways == 2 else outputs[0]
        if module.dropout and layer + 1 < module.num_layers:
            x = functional.dropout(x, module.dropout, module.training)
    stacked = tuple(torch.stack(parts) for parts in zip(*last, strict=True))
    return x, stacked if module.mode == "LSTM" else stacked[0]


def run(
    module: Any, tape: Tape, x: Tensor, state: tuple[Tensor, ...], suffix: str, backwards: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """One layer in one direction."""
    weights: list[Any] = [
        getattr(module, f"{name}{suffix}", None) for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    ]
    inputs = Owner(tape, weights[0], weights[1]).apply(x, NAME)
    recurrent = Owner(tape, weights[2], weights[3])
    places = range(x.shape[1])
    outputs: list[Tensor] = [x] * x.shape[1]
    for t in reversed(places) if backwards else places:
        state = CELLS[module.mode](inputs[:, t], recurrent.apply(state[0], NAME), state)
        outputs[t] = state[0]
    return torch.stack(outputs, 1), state


def lstm(i: Tensor, h: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Long short-term memory."""
    enter, forget, cell, out = (i + h).chunk(4, 1)
    memory = forget.sigmoid() * state[1] + enter.sigmoid() * cell.tanh()
    return out.sigmoid() * memory.tanh(), memory


def gru(i: Tensor, h: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gated recurrent unit."""
    (ir, iz, inew), (hr, hz, hnew) = i.chunk(3, 1), h.chunk(3, 1)
    keep = (iz + hz).sigmoid()
    new = (inew + (ir + hr).sigmoid() * hnew).tanh()
    return ((1 - keep) * new + keep * state[0],)


def tanh(i: Tensor, h: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A plain recurrent cell."""
    return ((i + h).tanh(),)


def relu(i: Tensor, h: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A plain recurrent cell with a rectifier."""
    return ((i + h).relu(),)


CELLS = {"LSTM": lstm, "GRU": gru, "RNN_TANH": tanh, "RNN_RELU": relu}
