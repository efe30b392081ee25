"""Checkpoints: written whole or not at all, and without random state."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sfumato.errors import CheckpointFailed


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write to a new file, flush it to the disk, then rename it: an earlier checkpoint stays until then."""
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError) as problem:  # torch reports a failed write as RuntimeError
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise CheckpointFailed(
            f"the checkpoint could not be written.\n  found:  {type(problem).__name__} at {path}\n"
            "  do:     make room and save again; the model, the charge and an earlier checkpoint are unchanged"
        ) from problem


def load_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> dict[str, Any]:
    """Put weights (and the optimizer's state) back, all or nothing; the rest of the content is returned."""
    try:
        content: dict[str, Any] = dict(torch.load(path, weights_only=True))
        weights, state = content.pop("weights"), content.pop("optimizer")
    except Exception as problem:  # a damaged file raises whatever its bytes lead to
        raise unreadable(f"{type(problem).__name__} at {path}", "give a file that Trainer.save wrote") from problem
    before = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        model.load_state_dict(weights)
        if optimizer is not None:
            optimizer.load_state_dict(state)
    except Exception as problem:
        model.load_state_dict(before)
        raise unreadable(
            f"weights of another model or optimizer at {path}", "build the model and the optimizer of the saved run"
        ) from problem
    return content


def unreadable(found: str, do: str) -> CheckpointFailed:
    return CheckpointFailed(
        f"the checkpoint could not be read.\n  found:  {found}\n  do:     {do}; the model is what it was"
    )
