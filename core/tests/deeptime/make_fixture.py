"""Numbers of deeptime (0.4.5) that the tests of TICA compare with: python make_fixture.py > fixture.json

Two chains of five features: three autoregressive coordinates of different memory, mixed, and made of a generator that the tests repeat.
"""
import json
import numpy as np
from deeptime.decomposition import TICA


def chain(seed, frames):
    """The generator of the tests: a linear congruence, so that no library's draws are needed."""
    state = seed
    out = np.zeros((frames, 5))
    slow = np.zeros(3)
    for t in range(frames):
        draws = []
        for _ in range(5):
            total = 0.0
            for _ in range(12):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                total += (state >> 11) / 2**53
            draws.append(total - 6.0)
        for i, memory in enumerate([0.98, 0.9, 0.5]):
            slow[i] = memory * slow[i] + draws[i]
        a, b, c = slow
        out[t] = [a + 0.3 * b, b - 0.2 * c + 2.0, c + 0.1 * a, 0.5 * a - b + draws[3], draws[4] + 0.2 * c]
    return out


data = [chain(11, 900), chain(23, 700)]
answer = {}
for name, scaling in [("kinetic", "kinetic_map"), ("plain", None)]:
    model = TICA(lagtime=5, dim=3, scaling=scaling).fit_fetch(data)
    projected = model.transform(data[0][:20])
    answer[name] = {"values": model.singular_values[:3].tolist(), "projected": projected.tolist()}
print(json.dumps(answer))
