"""The training step with its derivatives written out: the tuned form of both peers, over a small set of array operations.

Written out, every matrix product gets the shape and layout that the libraries like best, only the sigmoid and the
activation of each layer are kept (all derivatives of silu follow from them without another exponential), and what
depends on y alone, y @ wx and y @ wo', is computed once for all times of a row. A graph compiler sees the whole step.

`ops` is one of the two thin shims at the end of peers_jax.py and peers_torch.py. `wo` is stored transposed, (out, width).
"""

import math

from common import BETA1, BETA2, CLIP, EPSILON, HIDDEN, LEARNING_RATE, LEVELS, SAMPLES


def arranged(params):
    """Parameters in the layout used here."""
    return {name: value.T if name.endswith("wo") else value for name, value in params.items()}


def gate(ops, h):
    s = ops.sigmoid(h)
    return s, h * s


def slope(s, a):
    """silu' from sigmoid and silu."""
    return s + a * (1 - s)


def bend(s, a):
    """silu'' from sigmoid and silu."""
    return (1 - s) * (2 * s + a * (1 - 2 * s))


class Net:
    """One network: its parameters, and its entries of the gradient."""

    def __init__(self, ops, values, grads, prefix):
        self.ops, self.grads, self.prefix = ops, grads, prefix
        self.p = {name[len(prefix) :]: value for name, value in values.items() if name.startswith(prefix)}

    def add(self, name, value):
        name = self.prefix + name
        self.grads[name] = value if name not in self.grads else self.grads[name] + value

    def add_product(self, name, left, right):
        """grad[name] += left' @ right."""
        name = self.prefix + name
        known = self.grads.get(name)
        self.grads[name] = left.T @ right if known is None else self.ops.affine(known, left.T, right)

    def forward(self, h0):
        """Sigmoids and activations of all layers."""
        pairs = [gate(self.ops, h0)]
        for layer in range(1, HIDDEN):
            h = self.ops.affine(self.p[f"b{layer}"], pairs[-1][1], self.p[f"w{layer}"])
            pairs.append(gate(self.ops, h))
        return [s for s, _ in pairs], [a for _, a in pairs]

    def pull(self, s, a, cotangent):
        """Back-propagates a cotangent of the last activation: per layer g (of a) and u (of the pre-activation)."""
        g, u = [cotangent], []
        for layer in range(HIDDEN - 1, -1, -1):
            u.insert(0, g[0] * slope(s[layer], a[layer]))
            if layer:
                g.insert(0, u[0] @ self.p[f"w{layer}"].T)
        return g, u

    def pull_back(self, s, a, g, u, u_bar):
        """Reverse of `pull`, from a cotangent of u[0]; returns cotangents of each slope and of g[-1]."""
        slope_bar = []
        for layer in range(HIDDEN):
            slope_bar.append(u_bar * g[layer])
            g_bar = u_bar * slope(s[layer], a[layer])
            if layer + 1 < HIDDEN:
                self.add_product(f"w{layer + 1}", g_bar, u[layer + 1])
                u_bar = g_bar @ self.p[f"w{layer + 1}"]
        return slope_bar, g_bar

    def backward(self, s, a, a_bar, slope_bar=None):
        """Reverse of `forward`; returns the cotangent of h0."""
        for layer in range(HIDDEN - 1, -1, -1):
            h_bar = a_bar * slope(s[layer], a[layer])
            if slope_bar is not None:
                h_bar = h_bar + slope_bar[layer] * bend(s[layer], a[layer])
            if layer:
                self.add_product(f"w{layer}", a[layer - 1], h_bar)
                self.add(f"b{layer}", self.ops.column_sum(h_bar))
                a_bar = h_bar @ self.p[f"w{layer}"].T
        return h_bar


# Rows are the B*N points; "shift" k pairs point i of a source row with the level (i+k) mod N, so shift 0 is the diagonal.


def shifted(ops, x, count):
    """(B*N, ...) -> (N-1, B*N, ...): for each shift the value at the other level."""
    grouped = x.reshape((-1, count) + tuple(x.shape[1:]))
    return ops.stack([ops.roll(grouped, -k).reshape(tuple(x.shape)) for k in range(1, count)])


def unshifted(ops, x, count):
    """Transpose of `shifted`: sums the contributions of all shifts to each level."""
    shape = tuple(x.shape[1:])
    grouped = x.reshape((count - 1, -1, count) + shape[1:])
    return sum(ops.roll(grouped[k - 1], k) for k in range(1, count)).reshape(shape)


def classify(ops, own, others, free, level, count, grads):
    """Classification loss from -U at the own level (R) and the others (N-1,R), and its cotangents of both."""
    rows = own.shape[0]
    logits = ops.cat([(own + free)[None], others + shifted(ops, free, count)])
    log_total = ops.logsumexp(logits)
    bar = ops.exp(logits - log_total) / rows
    own_bar, others_bar = bar[0] - 1 / rows, bar[1:]
    grads["free_energy"] = ops.scatter_add(LEVELS, level, own_bar + unshifted(ops, others_bar, count))
    return (log_total - logits[0]).sum() / rows, own_bar, others_bar


def diffusion(ops, case, tables, values, x, z, levels):
    """Loss and gradient by name; x = [x0 (B,d)], z (B,N,d), levels (B,N)."""
    grads, count, dim = {}, case.levels, case.dim
    net = Net(ops, values, grads, "")
    level = levels.reshape(-1)
    rows = level.shape[0]
    table = tables["columns"][level]
    scale, noise, inv, rate, weight, constant = (table[:, i : i + 1] for i in range(6))
    z = z.reshape(rows, dim)
    y = scale * ops.repeat(x[0], count) + noise * z
    branch = ops.affine(net.p["b0"], tables["features"], net.p["wt"])[level]
    pre, post = y @ net.p["wx"], y @ net.p["wo"]

    s, a = net.forward(pre * inv + branch)
    g, u = net.pull(s, a, post * inv)
    gradient = a[-1] @ net.p["wo"].T + u[0] @ net.p["wx"].T + net.p["bo"]
    error = (rate * gradient - inv * y) * inv + z / noise
    loss = (weight * error * error).sum() / rows

    gradient_bar = (2 / rows) * weight * inv * rate * error
    net.add("bo", ops.column_sum(gradient_bar))
    net.add_product("wo", gradient_bar, a[-1])
    net.add_product("wx", gradient_bar, u[0])
    slope_bar, g_bar = net.pull_back(s, a, g, u, gradient_bar @ net.p["wx"])
    a_bar, post_bar = gradient_bar @ net.p["wo"], g_bar * inv

    if case.kind == "clf":
        inv_1, rate_1 = inv[:, 0], rate[:, 0]
        inv_k, rate_k = shifted(ops, inv_1, count), shifted(ops, rate_1, count)
        square, offset = (y * y).sum(1), y @ net.p["bo"]
        own = rate_1 * inv_1 * ((post * a[-1]).sum(1) + offset) - square * inv_1 * inv_1 / 2 - constant[:, 0]
        sk, ak = net.forward((pre * inv_k[..., None] + shifted(ops, branch, count)).reshape(-1, case.width))
        last = ak[-1].reshape(count - 1, rows, -1)
        others = rate_k * inv_k * ((post * last).sum(2) + offset) - square * inv_k * inv_k / 2
        others = others - shifted(ops, constant[:, 0], count)
        extra, own_bar, others_bar = classify(ops, own, others, values["free_energy"][level], level, count, grads)
        loss = loss + extra

        own_dot, other_dot = own_bar * rate_1 * inv_1, others_bar * rate_k * inv_k
        net.add("bo", (own_dot + other_dot.sum(0)) @ y)
        a_bar = a_bar + own_dot[:, None] * post
        post_bar = post_bar + own_dot[:, None] * a[-1] + (other_dot[..., None] * last).sum(0)
        hk_bar = net.backward(sk, ak, (other_dot[..., None] * post).reshape(-1, case.width)).reshape(count - 1, rows, -1)
    else:
        grads["free_energy"] = ops.zeros(LEVELS)
    branch_bar = net.backward(s, a, a_bar, slope_bar)
    pre_bar = branch_bar * inv
    if case.kind == "clf":
        pre_bar = pre_bar + (hk_bar * inv_k[..., None]).sum(0)
        branch_bar = branch_bar + unshifted(ops, hk_bar, count)
    net.add_product("wx", y, pre_bar)
    net.add_product("wo", y, post_bar)
    # A product with the gathered features is faster than scattering into a table of 512 levels.
    net.add_product("wt", tables["features"][level], branch_bar)
    net.add("b0", ops.column_sum(branch_bar))
    return loss, grads


def interpolant(ops, case, tables, values, x, z, levels):
    """Loss and gradient by name; x = [x0, x1]; score at y+ and y-, classification on y+."""
    grads, count, dim = {}, case.levels, case.dim
    nets = one, two = Net(ops, values, grads, "net1."), Net(ops, values, grads, "net2.")
    level = levels.reshape(-1)
    rows = level.shape[0]
    table = tables["columns"][level]
    t, noise = table[:, :1], table[:, 1:]
    x0, x1 = (ops.repeat(q, count) for q in x)
    z = z.reshape(rows, dim)
    centre = x0 + t * (x1 - x0)
    y = ops.cat([centre + noise * z, centre - noise * z])

    def twice(q):
        return ops.cat([q, q])

    def padded(q):
        return ops.cat([q, 0 * q])

    branches = [ops.affine(net.p["b0"], tables["features"], net.p["wt"])[level] for net in nets]
    pres = [y @ net.p["wx"] for net in nets]
    post = y @ one.p["wo"]
    state = []
    for net, pre, branch, cotangent in zip(nets, pres, branches, (post, two.p["wo"])):
        s, a = net.forward(pre + twice(branch))
        state.append((s, a, *net.pull(s, a, cotangent)))
    (s1, a1, g1, u1), (s2, a2, g2, u2) = state
    gradient = a1[-1] @ one.p["wo"].T + u1[0] @ one.p["wx"].T + u2[0] @ two.p["wx"].T + one.p["bo"]
    target = z / noise
    error = ops.cat([target, -target]) - gradient
    weight = twice(noise * noise)
    loss = (weight * error * error).sum() / (2 * rows)

    gradient_bar = (-1 / rows) * weight * error
    one.add("bo", ops.column_sum(gradient_bar))
    one.add_product("wo", gradient_bar, a1[-1])
    one.add_product("wx", gradient_bar, u1[0])
    two.add_product("wx", gradient_bar, u2[0])
    slope1, g1_bar = one.pull_back(s1, a1, g1, u1, gradient_bar @ one.p["wx"])
    slope2, g2_bar = two.pull_back(s2, a2, g2, u2, gradient_bar @ two.p["wx"])
    a1_bar = gradient_bar @ one.p["wo"]

    plus, post_plus = y[:rows], post[:rows]
    offset = plus @ one.p["bo"] + two.p["bo"]
    (sk1, ak1), (sk2, ak2) = (
        net.forward((pre[:rows] + shifted(ops, branch, count)).reshape(-1, case.width))
        for net, pre, branch in zip(nets, pres, branches)
    )
    last1 = ak1[-1].reshape(count - 1, rows, -1)
    own = -((post_plus * a1[-1][:rows]).sum(1) + a2[-1][:rows] @ two.p["wo"][0] + offset)
    others = -((post_plus * last1).sum(2) + (ak2[-1] @ two.p["wo"][0]).reshape(count - 1, rows) + offset)
    extra, own_bar, others_bar = classify(ops, own, others, values["free_energy"][level], level, count, grads)

    total_bar = own_bar + others_bar.sum(0)
    one.add("bo", -(total_bar @ plus))
    two.add("bo", -total_bar.sum().reshape(1))
    own_bar, flat_bar = padded(own_bar), others_bar.reshape(-1)
    a1_bar = a1_bar - own_bar[:, None] * post
    post_bar = g1_bar - own_bar[:, None] * a1[-1] - padded((others_bar[..., None] * last1).sum(0))
    two.add("wo", (ops.column_sum(g2_bar) - own_bar @ a2[-1] - flat_bar @ ak2[-1])[None])
    hk_bars = (
        one.backward(sk1, ak1, (-others_bar[..., None] * post_plus).reshape(-1, case.width)),
        two.backward(sk2, ak2, -flat_bar[:, None] * two.p["wo"]),
    )
    h_bars = one.backward(s1, a1, a1_bar, slope1), two.backward(s2, a2, -own_bar[:, None] * two.p["wo"], slope2)
    for net, h_bar, hk_bar in zip(nets, h_bars, hk_bars):
        hk_bar = hk_bar.reshape(count - 1, rows, -1)
        branch_bar = h_bar[:rows] + h_bar[rows:] + unshifted(ops, hk_bar, count)
        net.add_product("wx", y, h_bar + padded(hk_bar.sum(0)))
        net.add_product("wt", tables["features"][level], branch_bar)
        net.add("b0", ops.column_sum(branch_bar))
    one.add_product("wo", y, post_bar)
    return loss + extra, grads


def loss_and_gradient(ops, case, tables, values, x, z, levels):
    return (interpolant if case.kind == "si" else diffusion)(ops, case, tables, values, x, z, levels)


def evaluation(ops, values, points, row, features):
    """Energy and score of points at one time: the time branch is one row, a_in and sigma are numbers."""
    net = Net(ops, values, {}, "")
    inv, rate, constant = row[2], row[3], row[5]
    x = points * inv
    post = x @ net.p["wo"]
    s, a = net.forward(ops.affine(features @ net.p["wt"] + net.p["b0"], x, net.p["wx"]))
    _, u = net.pull(s, a, post)
    gradient = a[-1] @ net.p["wo"].T + u[0] @ net.p["wx"].T + net.p["bo"]
    energy = (x * x).sum(1) / 2 + constant - rate * ((post * a[-1]).sum(1) + x @ net.p["bo"])
    return energy, (rate * gradient - x) * inv


# --- randomness: a counter-based generator that fuses into the loops around it ------------------------------------


def hash32(ops, x):
    """The 32-bit integer mixer lowbias32, on wrapping 32-bit integers."""
    x = x ^ ops.shift_right(x, 16)
    x = x * ops.int32(0x7FEB352D)
    x = x ^ ops.shift_right(x, 15)
    x = x * ops.int32(0x846CA68B)
    return x ^ ops.shift_right(x, 16)


def uniform(ops, key, count):
    bits = hash32(ops, hash32(ops, ops.iota(count)) + key)
    return ops.float32(ops.shift_right(bits, 8)) * 2.0**-24


def normal(ops, key, count):
    """Box-Muller on hashed counters; the libraries' own normals are several times slower on CPU."""
    radius = ops.sqrt(-2 * ops.log(uniform(ops, key, count // 2) + 2.0**-25))
    angle = 2 * math.pi * uniform(ops, hash32(ops, key + 3), count // 2)
    return ops.cat([radius * ops.cos(angle), radius * ops.sin(angle)])


def draw(ops, case, data, first, size, key):
    """Source rows, noise and levels (one per stratum) of one step."""
    rows = case.batch * case.levels
    key = hash32(ops, key)
    x = [q[ops.index(uniform(ops, key + 11 * (i + 1), case.batch) * SAMPLES)] for i, q in enumerate(data)]
    levels = first + ops.index(uniform(ops, key + 5, rows).reshape(case.batch, case.levels) * size)
    return x, normal(ops, key + 7, rows * case.dim).reshape(case.batch, case.levels, case.dim), levels


def adam(ops, flat, m, v, count, gradient):
    """Global-norm clipping and Adam on flat vectors; `count` starts at 1."""
    norm = ops.sqrt((gradient * gradient).sum())
    gradient = gradient * ops.minimum(CLIP / (norm + 1e-12), 1.0)
    m = BETA1 * m + (1 - BETA1) * gradient
    v = BETA2 * v + (1 - BETA2) * gradient * gradient
    update = (m / (1 - BETA1**count)) / (ops.sqrt(v / (1 - BETA2**count)) + EPSILON)
    return flat - LEARNING_RATE * update, m, v
