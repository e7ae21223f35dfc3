"""How often does a line run: per element, step, epoch, phase, once?"""
