"""A copy for each of a few models that are computed with, for a window of rounds, or under a key that comes again."""

import copy

import torch


def federated(net, start, clients, train):
    net.cuda()
    states = {}
    for number in range(clients):
        net.load_state_dict(start)
        train(net, number)
        states[number] = copy.deepcopy(net.state_dict())
    return {key: sum(state[key] for state in states.values()) / clients for key in start}


def averaged(net, rounds, train):
    net.cuda()
    states = {}
    for number in range(rounds):
        train(net)
        states[number] = copy.deepcopy(net.state_dict())
    return {key: torch.stack([states[n][key] for n in states]).mean(0) for key in states[0]}


def window(net, rounds, train):
    net.cuda()
    states = {}
    for number in range(rounds):
        train(net)
        states[number % 3] = copy.deepcopy(net.state_dict())
    net.load_state_dict(states[0])


def dropped(net, rounds, train):
    net.cuda()
    states = {}
    for number in range(rounds):
        train(net)
        states[number] = copy.deepcopy(net.state_dict())
        states.pop(number - 3, None)
    net.load_state_dict(states[rounds - 1])


def of_each(nets):
    states = {}
    for name, net in nets.items():
        net.cuda()
        states[name] = copy.deepcopy(net.state_dict())
    return states
