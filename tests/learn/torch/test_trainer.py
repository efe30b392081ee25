"""A training run: priced by its sampler, charged once before the first batch, and it learns."""

import math
import os
import signal
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from torch import nn
from torch.nn.utils import prune

import sfumato as sf
from sfumato.errors import BudgetExceeded, CheckpointFailed, InvalidParameter, TrainingFailed
from sfumato.learn.torch import (
    Adaptive,
    Automatic,
    Banded,
    Independent,
    NoisyLoss,
    PerLayer,
    Trainer,
    Tree,
    calibrate,
    make_private,
)
from sfumato.learn.torch.batches import Data, physical_batches
from sfumato.learn.torch.engine import Shape, full_precision
from sfumato.learn.torch.noise import Move
from sfumato.learn.torch.sizes import overflow, physical_shape
from sfumato.loss import GaussianLoss
from tests.noise.sources import Recorded

torch.set_num_threads(1)
ENOUGH = (1e6, 0.5)
SAMPLERS = {
    "Poisson": sf.Poisson(0.1),
    "WithoutReplacement": sf.WithoutReplacement(200, 20),
    "FixedCycles": sf.FixedCycles(200, 20),
    "ShuffledEpochs": sf.ShuffledEpochs(200, 20),
}


def data(n=200, d=4):
    g = torch.Generator().manual_seed(5)
    x = torch.randn(n, d, generator=g)
    return x, (x.sum(1) > 0).long()


def net(d=4):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Linear(8, 2))


def trainer(model=None, **options):
    usual = {"sampler": sf.Poisson(0.1), "batch_size": 20, "steps": 5, "noise": 1.0, "budget": ENOUGH}
    return Trainer(model or net(), nn.CrossEntropyLoss(), options.pop("data", data()), **{**usual, **options})


# ---- prices --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLERS)
def test_epsilon_is_that_of_the_calculus_for_each_sampler(name):
    sampler = SAMPLERS[name]
    run = trainer(sampler=sampler, steps=30)
    size = (1 + run.float_error.growth) * sampler.moves
    one = sampler.amplify(GaussianLoss(size * (1 + 1e-15), relation=sampler.relation))
    times = 30 if sampler.span == 1 else 3
    expected = (times * one).epsilon(1e-5 - run.prepared.failure)  # batches of random size may exceed their places
    assert run.epsilon(1e-5) == pytest.approx(expected.upper, rel=1e-6)
    assert run.float_error.certified and run.float_error.growth < 1e-3


def test_balls_in_bins_price_whole_epochs():
    run = trainer(sampler=sf.BallsInBins(10), steps=11)
    assert run.loss.inner == 2 * sf.BallsInBins(10).amplify(GaussianLoss(run.engine.move().size))
    assert 0 < run.loss.failure == run.prepared.failure <= 1e-8


def test_switching_samplers_changes_epsilon():
    """Opacus 1.6 reports 1.9949 for both."""
    found = {name: trainer(sampler=sampler, steps=30).epsilon(1e-5) for name, sampler in SAMPLERS.items()}
    assert found["Poisson"] < found["WithoutReplacement"] < found["FixedCycles"] == found["ShuffledEpochs"]
    assert found["FixedCycles"] > 2 * found["Poisson"]


def test_noise_that_is_left_out_is_calibrated_to_the_budget():
    run = trainer(noise=None, budget=(2.0, 1e-5), steps=20)
    assert 1.95 < run.epsilon(1e-5) <= 2.0


def test_a_clip_norm_is_calibrated_to_noise_of_a_given_deviation():
    asked = {"epsilon": 2.0, "delta": 1e-5, "sampler": sf.Poisson(0.1), "steps": 20}
    noise, clip = calibrate(**asked), calibrate(**asked, deviation=3.0)
    assert 3.0 / noise.upper * 0.999 <= float(clip) <= 3.0 / noise.upper


def test_a_run_beyond_its_budget_is_refused_before_data_are_read():
    run = trainer(budget=(0.1, 1e-5))
    before = [p.clone() for p in run.model.parameters()]
    with pytest.raises(BudgetExceeded, match="do:"):
        next(iter(run))
    assert all(torch.equal(a, b) for a, b in zip(before, run.model.parameters(), strict=True))


def test_a_ledger_is_charged_once_and_before_the_first_batch(tmp_path):
    ledger = sf.Ledger.create(tmp_path / "ledger", sf.Budget(epsilon=8.0, delta=1e-5))
    run = trainer(budget=ledger, steps=3, noise=2.0)
    steps = iter(run)
    assert len(ledger.history()) == 1  # the budget alone
    first = next(steps)
    assert len(ledger.history()) == 2
    assert first.epsilon == run.epsilon(1e-5)
    assert [step.number for step in steps] == [2, 3]
    assert len(ledger.history()) == 2
    with pytest.raises(InvalidParameter, match="new charge"):
        next(iter(run))
    ledger.close()


def test_noise_that_is_left_out_is_what_the_rest_of_a_ledger_pays_for(tmp_path):
    ledger = sf.Ledger.create(tmp_path / "ledger", sf.Budget(epsilon=3.0, delta=1e-5, relation=sf.ReplaceOne))
    usual = {"budget": ledger, "sampler": sf.FixedCycles(200, 20), "noise": None, "steps": 10}
    ledger.charge(GaussianLoss(0.5, relation=sf.ReplaceOne), question="another")
    trainer(**usual).fit(progress=False)
    _, limit, spent = ledger.account()
    assert 0.97 * limit.gauss < spent.gauss <= limit.gauss
    with pytest.raises(BudgetExceeded):
        trainer(**{**usual, "noise": 1.0}).fit(progress=False)
    ledger.close()


@pytest.mark.parametrize(
    ("noise", "per_epoch"),
    [(Tree(3.0, epoch=10), 4.0), (Banded(3.0, band=4), (1 + 0.5**2 + 0.375**2 + 0.3125**2))],
)
def test_correlated_noise_has_a_price_of_its_own(noise, per_epoch):
    cycles = sf.FixedCycles(200, 20)
    loss = noise.loss(cycles, Move(1.0), 30)
    mu = 2 / 3.0 * (3 * per_epoch) ** 0.5
    assert loss.epsilon(1e-5).upper == pytest.approx(GaussianLoss(mu).epsilon(1e-5).upper, rel=1e-3)
    with pytest.raises(InvalidParameter, match="FixedCycles"):
        noise.loss(sf.Poisson(0.1), Move(1.0), 30)


def test_the_count_of_adaptive_clipping_is_priced():
    plain, adaptive = trainer(clip=1.0), trainer(clip=Adaptive(1.0, count_noise=2.0))
    exact = trainer(noise=1 / (1 + 1 / 16) ** 0.5)
    assert adaptive.epsilon(1e-5) == pytest.approx(exact.epsilon(1e-5), rel=1e-4)
    assert adaptive.epsilon(1e-5) > plain.epsilon(1e-5)


def test_a_noisy_training_loss_is_priced_and_shown():
    plain, watched = trainer(), trainer(watch=NoisyLoss(4.0, noise=2.0), source=Recorded("watched"))
    exact = trainer(noise=1 / (1 + 1 / 16) ** 0.5)
    assert plain.epsilon(1e-5) < watched.epsilon(1e-5) == pytest.approx(exact.epsilon(1e-5), rel=1e-4)
    seen = [step.loss for step in watched]
    assert all(abs(loss - 0.7) < 6 * 4.0 * 2.0 / 20 for loss in seen)  # six deviations of its noise
    assert [step.loss for step in plain] == [None] * 5


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e30])
def test_one_example_moves_a_watched_loss_by_half_its_range_whatever_it_is(bad):
    watch, mask = NoisyLoss(3.0), torch.ones(3, dtype=torch.bool)
    with_it = watch.units(torch.tensor([0.1, bad, 2.0]), mask)
    mask[1] = False
    assert abs(with_it - watch.units(torch.tensor([0.1, bad, 2.0]), mask)) <= 2**19


def test_epsilon_so_far_grows_to_what_was_charged():
    run = trainer(steps=4, budget=(1e6, 1e-5))
    found = [run.epsilon_so_far(1e-5), *(run.epsilon_so_far(1e-5) for _ in run)]
    assert found == sorted(found) and found[0] == 0 < found[1] < found[-1] == run.charge.epsilon


# ---- batches beyond their places -----------------------------------------------------------------------------------


@given(st.integers(1, 3000), st.floats(1e-3, 1.0), st.integers(0, 200))
def test_overflow_is_never_below_the_binomial_tail(people, rate, beyond):
    size, steps = people * rate, 7
    capacity = math.ceil(size) + 1 + beyond
    tail = float(binom.sf(capacity - 1, people, rate))
    assert overflow(sf.Poisson(rate), size, capacity, steps) >= min(1.0, steps * rate * tail) * (1 - 1e-9)
    assert overflow(sf.BallsInBins(5), size, capacity, steps) >= min(1.0, 10 * tail) * (1 - 1e-9)
    assert overflow(sf.FixedCycles(people, 1), size, capacity, steps) == 0.0


def test_random_batches_have_places_for_all_but_a_part_of_delta():
    for size, delta in ((1, 1e-5), (50, 1e-12), (256, 1e-5), (5000, 0.5)):
        shape = physical_shape(sf.Poisson(0.01), size, 1, 1000, delta)
        assert overflow(sf.Poisson(0.01), size, shape.capacity, 1000) <= min(1e-8, 1e-3 * delta)
        assert shape.places <= 512
    assert shape.capacity < 1.13 * 5000


def test_a_hard_cap_is_priced_and_cuts():
    run = trainer(most=48)
    assert run.engine.shape.capacity == 48 and 0 < run.prepared.failure < 1e-5
    assert run.loss.failure == run.prepared.failure
    assert trainer(most=24).epsilon(1e-5) == math.inf  # too many batches are larger
    shape = Shape(8, 1, 2, cut=True)
    drawn = list(physical_batches(Data(data(50)), sf.Poisson(1.0), shape, 3, Recorded("cut")))
    assert [int(batch.mask.sum()) for batch in drawn] == [8] * 6


# ---- training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sampler": sf.WithoutReplacement(200, 20)},
        {"sampler": sf.ShuffledEpochs(200, 20)},
        {"sampler": sf.FixedCycles(200, 20), "noise": Tree(0.2, epoch=10)},
        {"sampler": sf.FixedCycles(200, 20), "noise": Banded(0.2, band=4)},
        {"clip": Automatic(1.0)},
        {"clip": PerLayer(1.0)},
        {"clip": Adaptive(0.1)},
        {"physical": 8},
        {"sums": torch.float64},
        {"sums": torch.float32},
        {"augment": lambda x: x + 0.01, "augmentations": 3},
        {"units": [i // 2 for i in range(200)], "per_unit": 2, "sampler": sf.sampling.PoissonUnits(0.2)},
    ],
)
def test_every_way_to_train_learns(options):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    run = trainer(model, **{"steps": 40, "noise": 0.2, "optimizer": optimizer, **options})
    run.fit(progress=False)
    x, y = data()
    assert (model(x).argmax(1) == y).float().mean() > 0.85
    assert run.done == 40


def test_an_own_loop_learns_and_is_charged_alike():
    model, (x, y) = net(), data()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer, batches = make_private(
        model,
        optimizer,
        (x, y),
        sampler=sf.Poisson(0.1),
        batch_size=20,
        steps=40,
        noise=0.2,
        budget=ENOUGH,
        physical=16,
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000)  # takes it for an optimizer
    optimizer.load_state_dict(optimizer.state_dict())
    criterion = nn.CrossEntropyLoss(reduction="none")
    updates = 0
    for inputs, targets in batches:
        before = model[0].weight.clone()
        optimizer.backward(lambda inputs=inputs, targets=targets: criterion(model(inputs), targets))
        optimizer.step()
        scheduler.step()
        updates += not torch.equal(before, model[0].weight)
    assert updates == 40
    assert (model(x).argmax(1) == y).float().mean() > 0.85
    assert batches.epsilon(0.5) == trainer(noise=0.2, steps=40, physical=16).epsilon(0.5)


def losses_of(model, criterion, x, y):
    return criterion(model(x), y)


@pytest.mark.parametrize(
    "options", [{"augmentations": 2}, {"units": [i // 2 for i in range(200)], "per_unit": 2}], ids=["versions", "units"]
)
def test_an_own_loop_averages_the_rows_of_an_example_as_a_trainer_does(options):
    found = []
    for own in (True, False):
        model, source = net(), Recorded("rows of an example")
        usual = {"sampler": sf.Poisson(0.1), "batch_size": 20, "steps": 3, "noise": 1.0, "budget": ENOUGH}
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        if own:
            optimizer, batches = make_private(model, optimizer, data(), **usual, **options, source=source)
            criterion = nn.CrossEntropyLoss(reduction="none")
            for x, y in batches:
                optimizer.backward(partial(losses_of, model, criterion, x, y))
                optimizer.step()
        else:
            trainer(model, **usual, **options, optimizer=optimizer, source=source).fit(progress=False)
        found.append(model[0].weight)
    assert torch.equal(*found)


def test_batches_of_an_own_loop_cannot_be_left_out_or_added_twice():
    model = net()
    optimizer, batches = make_private(
        model, torch.optim.SGD(model.parameters(), lr=0.1), data(), sampler=sf.Poisson(0.1), batch_size=20, steps=5,
        noise=1.0, budget=ENOUGH,
    )  # fmt: skip
    drawn = iter(batches)
    x, y = next(drawn)

    def losses():
        return nn.functional.cross_entropy(model(x), y, reduction="none")

    with pytest.raises(InvalidParameter, match="step without backward"):
        optimizer.step()
    optimizer.backward(losses)
    with pytest.raises(InvalidParameter, match="once for each batch"):
        optimizer.backward(losses)
    with pytest.raises(InvalidParameter, match="without a step"):
        next(drawn)


@pytest.mark.parametrize("count", [0, 1])
def test_empty_batches_and_single_examples_get_noise(count):
    x, y = data(count)
    model = net()
    before = [p.clone() for p in model.parameters()]
    trainer(model, data=(x, y), steps=1, sampler=sf.Poisson(0.5)).fit(progress=False)
    assert all(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_an_interrupt_ends_a_run_after_a_whole_step_and_the_charge_stays(capfd):
    run = trainer(steps=50)
    seen = []

    def interrupt(x):
        seen.append(1)
        if len(seen) == 12:
            signal.raise_signal(signal.SIGINT)
        return x

    run.augment = interrupt
    run.fit(progress=False)
    assert 0 < run.done < 50
    assert run.charge is not None
    assert "the charge for all stays" in capfd.readouterr().err


def test_the_progress_of_a_run_shows_steps_and_epsilon_and_no_loss(capsys, monkeypatch):
    from sfumato.learn.torch import progress

    clock = iter(range(0, 10_000, 3))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    trainer(steps=5).fit()
    shown = capsys.readouterr().err
    assert "step 4 of 5 · ε =" in shown and "so far, " in shown and "s left" in shown and "loss" not in shown


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_checkpoint_holds_weights_and_the_charge_and_no_random_state(tmp_path):
    run = trainer(steps=3)
    run.fit(progress=False)
    run.save(tmp_path / "run.pt")
    other = net()
    found = Trainer.load(tmp_path / "run.pt", other)
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), other.parameters(), strict=True))
    assert found["done"] == 3 and found["charged"]["epsilon"] == run.charge.epsilon
    content = torch.load(tmp_path / "run.pt", weights_only=True)
    assert set(content) == {"weights", "optimizer", "done", "steps", "loss", "charged", "ledger", "run"}
    assert sf.loss.from_json(found["loss"]) == run.loss


def test_a_full_disk_keeps_the_earlier_checkpoint(tmp_path, monkeypatch):
    run = trainer(steps=2)
    run.save(tmp_path / "run.pt")
    before = (tmp_path / "run.pt").read_bytes()
    run.fit(progress=False)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointFailed, match="make room"):
        run.save(tmp_path / "run.pt")
    assert (tmp_path / "run.pt").read_bytes() == before
    assert os.listdir(tmp_path) == ["run.pt"]
    assert run.done == 2


# ---- refusals --------------------------------------------------------------------------------------------------------


class Raw(nn.Module):
    """A parameter beside those of its layers."""

    def __init__(self):
        super().__init__()
        self.shift, self.out = nn.Parameter(torch.zeros(4)), nn.Linear(4, 2)

    def forward(self, x):
        return self.out(x + self.shift)


class Noisy(nn.Module):
    """No rule, and random."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.scale * torch.rand_like(x)


def replaced(layer):
    layer.forward = layer.forward
    return layer


class Stray(nn.Module):
    """Uses a weight without calling its module."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        return nn.functional.linear(x, self.linear.weight)


class Mixing(nn.Module):
    """Centres its batch by hand."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        y = self.linear(x)
        return y - y.mean(0)


class Centring(nn.Module):
    """Centres raw inputs: every gradient stays in its own row, and has all others in it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        return self.linear(x - x.mean(0))


class Lowering(nn.Module):
    """Mixed precision inside the model."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 3), nn.Flatten(), nn.Linear(4, 2))

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.net(x).float()


class Remembering(nn.Module):
    """Keeps data in a buffer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x):
        self.last.copy_(x[0])
        return self.linear(x)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), "1 (BatchNorm1d)"),
        (nn.Sequential(nn.BatchNorm1d(4, affine=False), nn.Linear(4, 2)), "GroupNorm"),
        (Raw(), "itself (Raw)"),
        (nn.Sequential(nn.Linear(4, 2), Noisy()), "found:  Noisy"),
        (nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))), "ParametrizationList"),
        (prune.l1_unstructured(nn.Linear(4, 2), "weight", 0.5), "pruning"),
        (replaced(nn.Linear(4, 2)), "forward of this layer was replaced"),
        (nn.Sequential(nn.Embedding(4, 2, sparse=True)), "sparse"),
        (nn.LSTM(4, 2), "batch_first"),
        (nn.MultiheadAttention(4, 2), "batch_first"),
        (Stray(), "linear.weight"),
        (Mixing(), "see each other"),
        (Centring(), "depends on the others"),
        (nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False).eval(), nn.Linear(4, 2)), "0 (BatchNorm1d)"),
        (Remembering(), "last"),
        (nn.Linear(4, 2).requires_grad_(False), "nothing to train"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else value,
)
def test_models_whose_examples_cannot_be_clipped_are_refused_by_name(model, words):
    with pytest.raises(InvalidParameter) as refusal:
        trainer(model)
    assert words in str(refusal.value) and "do:" in str(refusal.value)


def test_positions_that_all_examples_share_are_refused_even_if_shapes_agree():
    """Twenty-four places in a physical batch, and as many positions: the first dimension looks right."""

    class Placed(nn.Module):
        def __init__(self):
            super().__init__()
            self.places, self.out = nn.Embedding(24, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.out(x[:, None] + self.places(torch.arange(24))).mean(1)

    with pytest.raises(InvalidParameter, match="see each other"):
        trainer(Placed(), physical=24)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": None}, "batch_size"),
        ({"sampler": 0.1}, "no default"),
        ({"model": torch.tanh}, "torch module"),
        ({"model": torch.jit.ScriptModule()}, "compiled script"),
        ({"sampler": sf.WithoutReplacement(10, 2), "batch_size": 2}, "n = 10"),
        ({"sampler": sf.sampling.PoissonUnits(0.1)}, "units="),
        ({"budget": 3.0}, "ledger"),
        ({"data": [1, 2, 3]}, "tensors"),
        ({"data": (torch.zeros(3, 4), torch.zeros(2))}, "first dimension"),
        ({"noise": -1.0}, "noise"),
        ({"clip": 0.0}, "clip"),
        ({"augment": lambda x: x + x.roll(1, 0)}, "depends on the others"),
        ({"model": (model := net()), "optimizer": torch.optim.LBFGS(model.parameters())}, "closure"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, words):
    with pytest.raises(InvalidParameter, match=words):
        next(iter(trainer(**options)))


def test_parameters_without_noise_are_never_trained():
    """A loss with a parameter of its own, another model, and a layer that is unfrozen after the run was priced."""

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, out, y):
            return nn.functional.cross_entropy(out * self.scale, y, reduction="none")

    model, loss = net(), Scale()
    usual = {"sampler": sf.Poisson(0.1), "batch_size": 20, "steps": 2, "noise": 1.0, "budget": ENOUGH}
    for strays in ([*model.parameters(), *loss.parameters()], list(net().parameters())):
        with pytest.raises(InvalidParameter, match="without noise"):
            Trainer(model, loss, data(), optimizer=torch.optim.SGD(strays, lr=1.0), **usual)
        with pytest.raises(InvalidParameter, match="without noise"):
            make_private(model, torch.optim.SGD(strays, lr=1.0), data(), **usual)
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    run = trainer(model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0))
    model[0].requires_grad_(True)
    with pytest.raises(InvalidParameter, match="outside of their layers"):
        run.fit(progress=False)
    assert torch.equal(before, model[0].weight) and model[0].weight.grad is None


def test_an_error_of_the_model_on_data_does_not_show_them():
    x, y = data()
    y[3] = 7531
    run = trainer(data=(x, y), sampler=sf.Poisson(1.0), batch_size=200)
    with pytest.raises(TrainingFailed, match="charge for all steps stays") as failed:
        run.fit(progress=False)
    assert "7531" not in str(failed.value) and failed.value.__suppress_context__ and run.charge is not None


def test_a_loss_that_is_one_number_for_all_is_refused():
    with pytest.raises(InvalidParameter, match="one number for each example"):
        Trainer(
            net(), lambda out, y: nn.functional.cross_entropy(out, y), data(), sampler=sf.Poisson(0.1), batch_size=20,
            steps=1, noise=1.0, budget=ENOUGH,
        )  # fmt: skip


def test_low_precision_is_reported_as_not_certified():
    run = trainer(net().to(torch.bfloat16), data=(data()[0].to(torch.bfloat16), data()[1]))
    assert not run.float_error.certified and "float error not certified" in run.describe()
    assert run.float_error.growth < 1e-3  # norms and sums are taken in float32


def test_mixed_precision_inside_a_model_is_not_certified_and_learns_as_a_loop_does():
    run = trainer(Lowering(), steps=2)
    assert not run.float_error.certified
    assert run.fit(progress=False).done == 2


def test_precision_that_is_lowered_after_a_run_was_priced_is_refused():
    """Products of a sum would be taken in bfloat16, and its error bound would not hold."""
    run, later = trainer(), trainer()
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(InvalidParameter, match="full precision"):
        next(iter(run))
    torch.set_float32_matmul_precision("medium")
    try:
        with pytest.raises(InvalidParameter, match="full precision"):
            next(iter(later))
    finally:
        torch.set_float32_matmul_precision("highest")
    assert full_precision()
    torch.backends.mkldnn.conv.fp32_precision = "bf16"
    try:
        assert not full_precision()
    finally:
        torch.backends.mkldnn.conv.fp32_precision = "none"


def test_importing_sfumato_imports_no_torch():
    import subprocess
    import sys

    code = "import sys, sfumato as sf; sf.Poisson(0.1); sf.BallsInBins; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_number_of_noise_means_independent_noise():
    assert trainer(noise=1.5).noise == Independent(1.5)
