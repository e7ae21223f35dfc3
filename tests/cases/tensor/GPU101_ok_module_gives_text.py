import torch


def talk(path, lines):
    module = torch.jit.load(path).eval()
    context = []
    for line in lines:
        context.append(line)
        answer = module("\n".join(context))
        print("ANSWER: " + answer)
        context.append(answer)
    return context
