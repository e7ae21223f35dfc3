import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv


class GCN(torch.nn.Module):
    def __init__(self, n_feat, n_cls):
        super().__init__()
        self.conv1 = GCNConv(n_feat, 16)
        self.conv2 = GCNConv(16, n_cls)

    def forward(self, data):
        x = F.relu(self.conv1(data.x, data.edge_index))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.conv2(x, data.edge_index), dim=1)


def run(data, n_cls, epochs=500):
    data = data.to("cuda")
    model = GCN(data.num_features, n_cls).to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    nlls = []
    for _ in range(epochs):
        model.train()
        optimizer.zero_grad()
        out = model(data)
        nll = F.nll_loss(out[data.train_mask], data.y[data.train_mask])
        nll.backward()
        optimizer.step()
        nlls += [nll]  # expect: GPU101
    return model, nlls
