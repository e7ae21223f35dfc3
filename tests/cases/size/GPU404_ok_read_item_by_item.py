import copy


def reptile(net, task, lr):
    before = copy.deepcopy(net.cuda().state_dict())
    task(net)
    after = net.state_dict()
    net.load_state_dict({k: before[k] + lr * (after[k] - before[k]) for k in before})
