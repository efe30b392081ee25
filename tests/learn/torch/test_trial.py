"""What is tried on made-up data, and what may not change afterwards."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import sfumato as sf
from sfumato.errors import CheckpointFailed, InvalidParameter, TrainingFailed
from sfumato.learn.torch import NoisyLoss, Trainer, make_private
from sfumato.learn.torch.buffers import Buffers
from sfumato.learn.torch.trial import half_of
from tests.learn.torch.test_trainer import ENOUGH, data, net, trainer


def loop(losses, steps=1):
    """An own training loop; `losses(model, x, y)`."""
    model = net()
    optimizer, batches = make_private(
        model, torch.optim.SGD(model.parameters(), lr=0.1), data(), sampler=sf.Poisson(0.1), batch_size=20, steps=steps,
        noise=1.0, budget=ENOUGH,
    )  # fmt: skip
    for x, y in batches:
        optimizer.backward(partial(losses, model, x, y))
        optimizer.step()
    return optimizer


def fine(model, x, y):
    return cross_entropy(model(x), y, reduction="none")


def centred(model, x, y):
    out = model(x)
    return (out - out.mean(0)).square().sum(1)


def contrastive(model, x, y):
    out = model(x)
    return cross_entropy(out @ out.t(), torch.arange(len(x)), reduction="none")


def mixed_up(model, x, y):
    return fine(model, (x + x.roll(1, 0)) / 2, y)


def penalised(model, x, y):
    x = x.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return fine(model, x, y) + slope.square().sum(1)


def trimmed(model, x, y):
    return fine(lambda x: model(x[:, None].expand(-1, 1 + int(y.sum()), -1)).mean(1), x, y)


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        (centred, "see each other"),
        (contrastive, "see each other"),
        (mixed_up, "depends on the others"),
        (penalised, "gradient penalty"),
        (trimmed, "priced for"),
        (lambda model, x, y: model(x).detach().sum(1), "no gradient"),
    ],
)
def test_what_an_own_loop_does_with_a_batch_is_tried_too(losses, words):
    with pytest.raises(InvalidParameter, match=words):
        loop(losses)


def test_an_own_loop_sees_the_real_batch_after_the_trial():
    seen = []

    def watching(model, x, y):
        seen.append((x.clone(), y.clone()))
        return fine(model, x, y)

    loop(watching, steps=2)
    rows = {tuple(row.tolist()) for row in data()[0]}
    inside = [[tuple(row.tolist()) in rows for row in x if bool(row.any())] for x, _ in seen]
    assert [all(found) for found in inside] == [False] * 3 + [True] * 2
    assert len(seen) == 5


def test_an_error_in_an_own_loop_does_not_show_data():
    with pytest.raises(TrainingFailed) as failed:
        loop(lambda model, x, y: fine(model, x, y + 7531))
    assert "7531" not in str(failed.value)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.register_buffer("mean", torch.zeros(4))
        self.last = None

    def forward(self, x):
        return self.linear(x)


class FirstFour(Linear):
    def forward(self, x):
        x = x.clone()
        x[:4] = x[:4].mean(0)
        return self.linear(x)


class Remembering(Linear):
    """Each example sees the one that had its place before."""

    def forward(self, x):
        before, self.last = x if self.last is None else self.last, x.detach().clone()
        return self.linear(x + before)


class Centring(Linear):
    def forward(self, x):
        out = self.linear(x)
        return out - out.mean(0) if self.training else out


class Averaging(Linear):
    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return self.linear(x)


class Adding(Linear):
    def forward(self, x):
        if self.training:
            self.mean.add_(x.detach().mean(0))
        return self.linear(x)


@pytest.mark.parametrize("kind", [FirstFour, Remembering])
def test_examples_that_see_some_others_or_earlier_ones_are_refused(kind):
    with pytest.raises(InvalidParameter, match="depends on the others"):
        trainer(kind())


@pytest.mark.parametrize(("kind", "words"), [(Centring, "see each other"), (Averaging, "buffers"), (Adding, "buffers")])
def test_a_model_is_tried_again_in_another_mode(kind, words):
    model = kind().eval()
    run = trainer(model)
    model.train()
    with pytest.raises(InvalidParameter, match=words):
        run.fit(progress=False)
    assert not model.mean.any() and run.done == 0


def hooked(model):
    model[1].register_forward_hook(lambda module, args, out: out - out.mean(0))


def swapped(model):
    model[1] = nn.Softmax(0)


def patched(model):
    model[1].forward = lambda x: x - x.mean(0)


@pytest.mark.parametrize("change", [hooked, swapped, patched])
def test_a_model_that_is_changed_after_it_was_priced_is_tried_again(change):
    run = trainer()
    change(run.model)
    with pytest.raises(InvalidParameter, match="see each other"):
        run.fit(progress=False)


def test_modes_may_change_where_nothing_depends_on_them():
    run = trainer(steps=3)
    for step in run:
        run.model.train(step.number % 2 == 0)
    assert run.done == 3


def test_buffers_are_put_back_and_new_ones_are_removed():
    model = Linear()
    buffers = Buffers(model)
    buffers.remember()
    assert buffers.put_back() == []
    model.mean += 1.0
    model.linear.register_buffer("seen", torch.ones(3))
    assert sorted(buffers.put_back()) == ["linear.seen", "mean"]
    assert not model.mean.any() and not hasattr(model.linear, "seen")


def test_types_that_change_after_a_run_was_priced_are_refused():
    run = trainer()
    run.model.bfloat16()
    run.data.tensors = (run.data.tensors[0].bfloat16(), run.data.tensors[1])
    with pytest.raises(InvalidParameter, match="shapes and types"):
        run.fit(progress=False)


def test_a_step_that_was_interrupted_is_not_gone_on_with():
    """A batch that was added in part could otherwise be added again, and count twice."""
    model = net()
    optimizer, batches = make_private(
        model, torch.optim.SGD(model.parameters(), lr=0.1), data(), sampler=sf.Poisson(0.1), batch_size=20, steps=3,
        noise=1.0, budget=ENOUGH, watch=NoisyLoss(2.0),
    )  # fmt: skip
    x, y = next(iter(batches))
    add, optimizer.engine.sum.add = optimizer.engine.sum.add, interrupted
    with pytest.raises(KeyboardInterrupt):
        optimizer.backward(partial(fine, model, x, y))
    optimizer.engine.sum.add = add
    with pytest.raises(InvalidParameter, match="interrupted"):
        optimizer.backward(partial(fine, model, x, y))


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sums": torch.float16}, "float32 or float64"),
        ({"sums": torch.float32, "model": net().double(), "data": (data()[0].double(), data()[1])}, "no less than"),
        ({"clip": 1e-12}, "too small"),
        ({"per_unit": 2}, "about units"),
        ({"model": nn.Sequential(nn.LazyLinear(2))}, "lazy"),
    ],
)
def test_options_under_which_no_bound_holds_are_refused(options, words):
    with pytest.raises(InvalidParameter, match=words):
        trainer(**options)


def test_an_optimizer_that_is_loaded_stays_the_one_that_schedulers_see():
    optimizer = loop(fine)
    optimizer.optimizer.load_state_dict(optimizer.optimizer.state_dict())
    optimizer.param_groups[0]["lr"] = 5.0
    assert optimizer.optimizer.param_groups[0]["lr"] == 5.0


@pytest.mark.parametrize("content", [b"", b"junk", None])
def test_a_checkpoint_that_cannot_be_read_leaves_the_model_as_it_was(tmp_path, content):
    path = tmp_path / "run.pt"
    trainer(net(5), data=data(d=5)).save(path)  # another model
    if content is not None:
        path.write_bytes(content)
    model = net()
    with pytest.raises(CheckpointFailed, match="could not be read"):
        Trainer.load(path, model)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), net().parameters(), strict=True))


def test_half_of_the_places_is_public_and_separates_neighbours():
    half = set(half_of(64).tolist())
    assert len(half) == 32 and half == set(half_of(64).tolist())
    assert any((i in half) != (i + 1 in half) for i in range(0, 64, 2)) and half_of(1).tolist() == [0]
