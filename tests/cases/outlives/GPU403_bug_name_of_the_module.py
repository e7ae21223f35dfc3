"""Names of a script's own module, which keep a checkpoint while somebody out of sight runs the network."""
# file: serve.py
import torch
from torchvision.models import resnet50

from web import app

device = torch.device("cuda")
net = resnet50().to(device)
checkpoint = torch.load("last.pt", map_location=device)  # expect: GPU403
net.load_state_dict(checkpoint["net"])
net.eval()


@torch.no_grad()
def classify(image):
    return net(image.to(device)).argmax(1).tolist()


app.route("/classify")(classify)
app.run()
# file: serve_and_forget.py
import torch
from torchvision.models import resnet50

from web import app

device = torch.device("cuda")
net = resnet50().to(device)
checkpoint = torch.load("last.pt", map_location=device)
net.load_state_dict(checkpoint["net"])
del checkpoint
net.eval()


@torch.no_grad()
def classify(image):
    return net(image.to(device)).argmax(1).tolist()


app.route("/classify")(classify)
app.run()
# file: score.py
import torch
from fidelity import distance
from torchvision.models import resnet50


def main(path):
    net = resnet50().cuda().eval()
    checkpoint = torch.load(path)  # expect: GPU403
    net.load_state_dict(checkpoint["net"])

    def features(images):
        with torch.no_grad():
            return net(images.cuda())

    print(distance(features, "cifar10"))
    torch.save({"net": net.state_dict()}, path)
