"""Probes that look at the layers of a network while it is evaluated or trained, some of which keep what they see."""

import collections
import functools

import torch
from torch import nn


class Recorder:
    def __init__(self, model, names=("layer1", "layer2")):
        self.outputs = []
        self.by_name = {}
        self.grads = collections.defaultdict(list)
        self.sizes = []
        self.last = None
        self.handles = []
        for name, module in model.named_modules():
            if name in names:
                self.handles.append(module.register_forward_hook(self.keep(name)))
                module.register_full_backward_hook(functools.partial(self.note_grad, name))
        model.register_forward_hook(self.see)

    def keep(self, name):
        def hook(module, inputs, output):
            hidden = output[0] if isinstance(output, tuple) else output
            self.by_name.setdefault(name, []).append(hidden.mean(0))  # maybe: GPU105
            self.sizes.append(hidden.shape[0])

        return hook

    def note_grad(self, name, module, grad_input, grad_output):
        self.grads[name].append(grad_output[0].norm().item())

    def see(self, module, inputs, output):
        self.outputs += [output]  # maybe: GPU105
        self.last = output.detach().cpu()

    def remove(self):
        for handle in self.handles:
            handle.remove()
        self.handles = []


class Windowed:
    """Keeps the last ten outputs."""

    def __init__(self):
        self.kept = []

    def __call__(self, module, inputs, output):
        if len(self.kept) < 10:
            self.kept.append(output)

    def newest(self, module, inputs, output):
        self.kept.append(output.detach())
        while len(self.kept) > 10:
            self.kept.pop(0)


def evaluate_with_lists(model, loader):
    seen, inputs_seen, shapes = [], [], []

    def store(module, inputs, output):
        first = inputs[0]
        scaled = output * 2 if output.dim() > 2 else output
        seen.append(scaled.view(scaled.size(0), -1))  # maybe: GPU105
        inputs_seen.append(first.data)  # maybe: GPU105
        shapes.append(tuple(output.shape))

    handle = model.register_forward_hook(store)
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()  # maybe: GPU201
    handle.remove()
    return correct, torch.cat(seen)


def evaluate_with_lambdas(model, loader):
    model.cuda().eval()
    feats, means = [], []
    model.layer1.register_forward_hook(lambda module, inputs, output: feats.append(output))  # maybe: GPU105
    model.layer2.register_forward_hook(lambda m, i, o: means.append(o.mean().item()))
    with torch.no_grad():
        for x, _ in loader:
            model(x.cuda())
    feats.clear()
    return means


def evaluate_by_maker(model, loader, device="cuda"):
    model = model.to(device)
    store = collections.defaultdict(list)

    def maker(name):
        return lambda module, given, made: store[name].append(made.last_hidden_state[:, 0])  # maybe: GPU105

    for name, block in model.blocks.named_children():
        block.register_forward_hook(maker(name))
    with torch.no_grad():
        for batch in loader:
            model(batch.to(device))
    store = {name: torch.cat(parts) for name, parts in store.items()}
    return store


def evaluate_and_delete(model, loader):
    stored = {}

    def grab(module, inputs, output):
        stored["x"] = output
        stored["all"] = stored.get("all", ()) + (output.float().squeeze(),)  # expect: GPU105|GPU102

    model.cuda().register_forward_hook(grab)
    for x, _ in loader:
        with torch.no_grad():
            model(x.cuda())
        print(stored["x"].norm().item())
        del stored["x"]


class Masked(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.first.register_forward_hook(self.remember)
        self.stats = []

    def remember(self, module, inputs, output):
        self.stats.append(output.sum(dim=0))  # maybe: GPU105
        return output

    def forward(self, x):
        self.second.register_forward_pre_hook(lambda m, i: None)  # expect: GPU105
        for module in self.children():
            module.register_forward_hook(_check)  # expect: GPU105
        return self.second(torch.relu(self.first(x)))


def _check(module, inputs, output):
    assert torch.isfinite(output).all()


class Extractor(nn.Module):
    """Hands out what inner layers made of the newest batch."""

    def __init__(self, backbone, wanted):
        super().__init__()
        self.backbone = backbone
        self.wanted = wanted
        self._features = collections.OrderedDict()
        for name in wanted:
            dict(backbone.named_modules())[name].register_forward_hook(self._save(name))

    def _save(self, name):
        def fn(_, __, output):
            self._features[name] = output

        return fn

    def forward(self, x):
        self.backbone(x)
        taken, self._features = self._features, {}
        return taken


class GradCam:
    def __init__(self, model, layer):
        self.model = model
        self.activations = self.gradients = None
        layer.register_forward_hook(self.save_activation)  # maybe: GPU105
        layer.register_full_backward_hook(self.save_gradient)

    def save_activation(self, module, inputs, output):
        self.activations = output

    def save_gradient(self, module, grad_input, grad_output):
        self.gradients = grad_output[0].detach()

    def __call__(self, x, index):
        self.model.zero_grad()
        self.model(x)[0, index].backward()
        weights = self.gradients.mean((2, 3), keepdim=True)
        return (weights * self.activations).sum(1).relu().detach().cpu()


def main(model, loader, val_loader, optimizer):
    model = model.cuda()
    recorder = Recorder(model)
    window = Windowed()
    model.layer3.register_forward_hook(window)
    model.layer4.register_forward_hook(window.newest)
    for epoch in range(10):
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(evaluate_with_lists(model, val_loader), len(recorder.outputs), recorder.sizes[-1])
    recorder.remove()
    recorder.grads.clear()
    print(Masked(16).cuda()(torch.zeros(2, 16, device="cuda")))
    return evaluate_with_lambdas(model, val_loader), evaluate_by_maker(model, val_loader), Extractor(model, ["layer1"])
