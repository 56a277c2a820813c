"""Compares updates of the agents with PyTorch's: update_compare.py FLOAT64 FLOAT32 ARCHITECTURE...

FLOAT64 and FLOAT32 are folders written by tests/peer/update.c, compiled in these precisions. There
are three comparisons, each with a bound, for every architecture after 1, 10 and 100 updates:

1. In float64, from the start. The two differ only by rounding errors, so any missing or wrong term
   shows.
2. In float32, one update at a time, each starting from KappaScope's state before it, and step by
   step within the update: the gradients (from the first moments), the parameters computed from
   KappaScope's moments, the targets computed from its critics, and so on. So deviations do not
   accumulate. However, a relu whose input is within rounding errors of 0 may be active in one
   program and not in the other, which changes a whole gradient by 1e-4 to 1e-2. If the gradients
   differ, such kinks are searched, and counted if switching one removes the difference.
3. In float32, from the start; the same for PyTorch's own float32. Both are compared with PyTorch's
   float64. Adam divides each gradient by its own magnitude: if that is of the order of its rounding
   error, the sign of the weight's update is random. Also, the critic with the smaller value
   supplies a row's target: an error of one unit in the last place can exchange two distributions.
   So the bound of this comparison is wide.

A deviation is the Euclidean norm of the difference divided by the norm of an array: in comparison 1
a layer's kernel, bias, mean and so on, otherwise one quantity of all critics or of the actor. The
largest deviation of a group is reported. Before these comparisons, checks the content of the replay
buffer, the scale of the rewards, and the agents' initial values. Exit status 1 if a bound is
exceeded."""

import sys

import h5py
import numpy as np
import torch

import update as peer

EPISODE_STEPS = 1000 // 2  # dog-trot: 1000 control steps, two per agent step
AFTER = (1, 10, 100)
RESULTS = ("critic_loss", "q_mean", "clipped_fraction", "actor_loss", "temperature_loss", "entropy")
GROUPS = {"critic": ("critic",), "target": ("target",), "actor": ("actor",),
          "temperature": ("log_temperature",), "statistics": ("critic_state", "actor_state"),
          "moments": ("critic_m", "critic_v", "actor_m", "actor_v", "log_temperature_m",
                      "log_temperature_v")}
ARRAYS = [name for names in GROUPS.values() for name in names]
SIZES = ("observations", "actions", "hidden", "depth", "actor_hidden", "actor_depth", "atoms")

BOUND_64 = 1e-11       # measured: 9e-14
BOUND_GRADIENT = 3e-5  # measured: 3e-6
BOUND_STEP = 1e-5      # measured: 1e-6, for running statistics: 1 - 0.99 in float32
BOUND_32 = 5e-3        # or ten times PyTorch's own, if that is larger; measured: 8e-4
BOUND_REWARD = 1e-7    # rewards are float32 in the file, and exact in G; measured: 8e-9
KINK = 1e-5            # largest relu input at a kink, relative to the root mean square of all

failures = []


def expect(true, what):
    if not true:
        failures.append(what)


def read(path):
    """All datasets and attributes of a file, by their paths."""
    out = {}
    with h5py.File(path) as f:
        out.update(f.attrs)

        def take(name, thing):
            out.update({f"{name}/{key}": value for key, value in thing.attrs.items()})
            if isinstance(thing, h5py.Dataset):
                out[name] = thing[()]

        f.visititems(take)
    return out


def deviation(a, b):
    """The deviation of a from b; 0 if both are empty or zero."""
    size, off = np.linalg.norm(b), np.linalg.norm(a - b)
    return off / size if size > 0 else off


def largest_deviation(a, b, parts):
    """The largest deviation of the parts of a [E, ...] from those of b. The norm of a part counts
    as at least 1e-4 of the whole array's."""
    least = 1e-4 * np.linalg.norm(b)
    return max((np.linalg.norm(a[e, at:at + n] - b[e, at:at + n])
                / max(np.linalg.norm(b[e, at:at + n]), least, 1e-300)
                for e in range(len(b)) for at, n in parts), default=0)


# ---- The run: its replay buffer and the minibatches of its updates


def scales(reward, gamma):
    """The reward scale sqrt(Var(G)) + 1e-8 after each agent step."""
    g, all_g, scale = 0, [], []
    for step, r in enumerate(reward, 1):
        g = r if step % EPISODE_STEPS == 0 else gamma * g + r
        all_g.append(g)
        scale.append(np.sqrt(np.var(all_g)) + 1e-8)
    return scale


def check_run(run):
    s, next_s, a, mask = (run[f"replay/{x}"] for x in ("s", "next_s", "a", "mask"))
    n, random_steps = len(s), int(run["random_steps"])
    follows = (s[1:] == next_s[:-1]).all(1)
    last = np.arange(1, n) % EPISODE_STEPS == 0
    expect((follows != last).all() and last.any(), "replay: an episode has 500 agent steps, and "
           "its last next state is not the first state of the next episode")
    expect((mask == 1).all(), "replay: a time limit is not a terminal state")
    random = a[:random_steps]
    expect((np.abs(random) <= 1).all() and abs(random.mean()) < 0.02
           and abs(np.var(random) - 1 / 3) < 0.01, "replay: actions are uniform during random "
                                                   "steps")
    expect(np.unique(s.round(6), axis=0).shape[0] > n - 3, "replay: states differ")

    expect(run["run_updates"] == run["utd"] * (n - random_steps) and run["utd"] == 2,
           "updates start with the first agent step that is not random, two per agent step")
    row_of = {s[i].tobytes() + a[i].tobytes(): i for i in range(n)}
    scale = scales(run["replay/reward"], peer.discount(EPISODE_STEPS))
    drawn = []
    for u in range(len(run["batch/s"])):
        batch = {x: run[f"batch/{x}"][u] for x in ("s", "a", "next_s", "reward")}
        steps = random_steps + 1 + u  # an agent step's last minibatch is recorded
        rows = [row_of.get(batch["s"][i].tobytes() + batch["a"][i].tobytes(), n)
                for i in range(len(batch["s"]))]
        if max(rows) >= steps:
            failures.append(f"update {u + 1}: a row that is not in the replay buffer")
            return
        off = deviation(batch["reward"], run["replay/reward"][rows] / scale[steps - 1])
        if (next_s[rows] != batch["next_s"]).any() or not off < BOUND_REWARD:
            failures.append(f"update {u + 1}: wrong next states, or rewards with a deviation of "
                            f"{off:.1e}")
            return
        drawn += [row / steps for row in rows]
    expect(abs(np.mean(drawn) - 0.5) < 5 / np.sqrt(12 * len(drawn)), "rows are not drawn uniformly")


# ---- The initial values of an agent


def is_orthogonal(k, gain):
    gram = k.T @ k if k.shape[0] >= k.shape[1] else k @ k.T
    return np.abs(gram - gain ** 2 * np.eye(len(gram))).max() < 1e-5


def check_kernel(name, net, k, heads):
    if net.projected:
        expect(np.abs(np.linalg.norm(k, axis=0) - 1).max() < 1e-5, f"{name}: columns of norm 1")
        tall = k.shape[0] >= k.shape[1] // heads
        for part in np.split(k, heads, axis=1):
            expect(not tall or is_orthogonal(part, 1), f"{name}: orthogonal")
        return
    for part, gain in zip(np.split(k, heads, axis=1), (np.sqrt(2), 1)):
        expect(is_orthogonal(part, gain), f"{name}: orthogonal of gain {gain:.3g}")


def check_start(architecture, agent, record):
    start = {name: record["update_000/" + name] for name in ARRAYS}
    for what, net in ("critic", agent.critic), ("actor", agent.actor):
        for w, state in zip(start[what], start[what + "_state"]):
            for kind, layout, at, width in net.layers:
                for name, (offset, shape) in layout.items():
                    x, label = w[offset:offset + np.prod(shape)], f"{architecture}: {what} {name}"
                    if name == "kernel":
                        heads = 2 if kind == "head" and what == "actor" else 1
                        check_kernel(label, net, x.reshape(shape), heads)
                    else:
                        expect((x == (name == "scale")).all(), f"{label} at the start")
                if kind == "bn":
                    expect((state[at:at + width] == 0).all()
                           and (state[at + width:at + 2 * width] == 1).all(),
                           f"{architecture}: {what}'s running statistics at the start")
    expect((start["target"] == start["critic"]).all(), f"{architecture}: targets at the start")
    expect(deviation(start["critic"][0], start["critic"][1]) > 0.5, f"{architecture}: critics")
    expect(abs(start["log_temperature"][0, 0] - np.log(peer.TEMPERATURE)) < 1e-12,
           f"{architecture}: temperature at the start")
    expect(not any(start[name].any() for name in GROUPS["moments"]), f"{architecture}: moments")


# ---- The updates


def agent_at(architecture, run, record, update, dtype):
    """A PyTorch agent with the state of KappaScope's after that many updates."""
    group = f"update_{update:03d}/"
    schedule = int(run["utd"]) * int(run["env_steps"]) // 2
    agent = peer.Agent(architecture, {name: int(run[name]) for name in SIZES}, schedule,
                       peer.discount(EPISODE_STEPS), {n: record[group + n] for n in ARRAYS}, dtype)
    agent.updates = update
    agent.critic_adam.steps = int(record[group + "critic_steps"])
    agent.actor_adam.steps = agent.temperature_adam.steps = int(record[group + "actor_steps"])
    for net, w in (agent.critic, "critic"), (agent.actor, "actor"):
        if agent.now[w].shape[1] != net.size or agent.now[w + "_state"].shape[1] != net.states:
            sys.exit(f"{architecture}: {w}: expected {net.size} parameters and {net.states} "
                     f"statistics, found {agent.now[w].shape[1]}, "
                     f"{agent.now[w + '_state'].shape[1]}")
    return agent


def batch_of(run, update):
    return {name: run["batch/" + name][update] for name in ("s", "a", "next_s", "reward", "mask")}


def arrays(agent):
    return {name: agent.now[name].double().numpy().copy() for name in ARRAYS}


def parts_of(agent):
    """Offsets and sizes of the arrays in a vector, by the vector's name."""
    out = {name: [(0, 1)] for name in ARRAYS}
    for net, names in (agent.critic, ("critic", "target")), (agent.actor, ("actor",)):
        statistics = [part for kind, _, at, width in net.layers if kind == "bn"
                      for part in ((at, width), (at + width, width))]
        for name in names:
            out.update({name: net.arrays, name + "_m": net.arrays, name + "_v": net.arrays,
                        name + "_state": statistics})
    return out


def simulate(architecture, run, record, dtype):
    """PyTorch's agent after the updates AFTER, and the statistics of all updates."""
    agent = agent_at(architecture, run, record, 0, dtype)
    after, results = {}, []
    for u in range(len(run["batch/s"])):
        found = agent.update(batch_of(run, u), run["batch/next_noise"][u], run["batch/noise"][u])
        results.append([found.get(name, np.nan) for name in RESULTS])
        if u + 1 in AFTER:
            after[u + 1] = arrays(agent)
    return after, np.array(results)


def group_deviations(found, expected):
    return [max(deviation(found[name], expected[name]) for name in names)
            for names in GROUPS.values()]


def snapshot(record, update):
    return {name: record[f"update_{update:03d}/{name}"] for name in ARRAYS}


def result_deviation(found, expected):
    expect((np.isnan(found) == np.isnan(expected)).all(), "the actor steps at other updates")
    off = np.nanmax(np.abs(found - expected), axis=0)
    return (off / np.maximum(np.nanmax(np.abs(expected), axis=0), 1e-30)).max()


def compare_64(architecture, run, record):
    """Rows of the first table."""
    after, results = simulate(architecture, run, record, torch.float64)
    parts = parts_of(agent_at(architecture, run, record, 0, torch.float64))
    for u, expected in after.items():
        found = snapshot(record, u)
        row = [max(largest_deviation(found[name], expected[name], parts[name]) for name in names)
               for names in GROUPS.values()]
        row.append(result_deviation(record["results"][:u], results[:u]))
        yield u, row, [BOUND_64] * len(row), ""


def moved(agent, name, record, update):
    """The parameters after an update, computed from KappaScope's previous ones and its new
    moments."""
    adam = getattr(agent, name + "_adam")
    before, after = (torch.tensor(record[f"update_{u:03d}/{name}"]) for u in (update - 1, update))
    adam.w, adam.m, adam.v = before, *(torch.tensor(record[f"update_{update:03d}/{name}_{x}"])
                                       for x in "mv")
    adam.move()
    getattr(agent, name).project(adam.w)
    return deviation(after.numpy(), adam.w.numpy())


def gradient(moments, before):
    return (moments - peer.BETA1 * before) / (1 - peer.BETA1)


class Gates:
    """Replaces a network's relu: records inputs at the kink, and negates some of them. An input is
    identified by the number of the call and its index; only calls with gradients count."""

    def __init__(self, flipped):
        self.calls, self.flipped, self.at_kink = 0, flipped, []

    def __call__(self, x):
        self.calls += 1
        gate = x > 0
        if x.requires_grad:
            near = x.abs() < KINK * x.square().mean().sqrt()
            self.at_kink += [(self.calls, *index) for index in near.nonzero().tolist()]
        for call, *index in self.flipped:
            if call == self.calls:
                gate[tuple(index)] ^= True
        return x * gate


class Step:
    """PyTorch's update number `update`, from KappaScope's state before it; its second half uses
    KappaScope's critics. `flipped`: kinks of critic and actor whose input is negated."""

    def __init__(self, architecture, run, record, update, flipped):
        before, after = snapshot(record, update - 1), snapshot(record, update)
        agent = self.agent = agent_at(architecture, run, record, update - 1, torch.float64)
        batch = batch_of(run, update - 1)
        agent.critic.relu, agent.actor.relu = Gates(flipped[0]), Gates(flipped[1])
        agent.update_critics(batch, run["batch/next_noise"][update - 1])
        critic = self._gradient("critic", before, after)
        self.critic_state = agent.now["critic_state"].numpy().copy()
        for name in "critic", "critic_state":
            agent.now[name].copy_(torch.tensor(after[name]))
        agent.update_actor(batch, run["batch/noise"][update - 1])
        self.gradients = [critic, self._gradient("actor", before, after)]

    def _gradient(self, name, before, after):
        m = name + "_m"
        return deviation(gradient(after[m], before[m]),
                         gradient(self.agent.now[m].numpy(), before[m]))

    def kinks(self):
        """All kinks found, in the form of `flipped`."""
        for at in self.agent.critic.relu.at_kink:
            yield [[at], []]
        for at in self.agent.actor.relu.at_kink:
            yield [[], [at]]


def step_by_kinks(*arguments):
    """The update, and the number of kinks in which KappaScope's and PyTorch's differ."""
    flipped = [[], []]
    step = first = Step(*arguments, flipped)
    if max(step.gradients) < BOUND_GRADIENT / 3:
        return step, 0
    for kink in first.kinks():
        more = [old + new for old, new in zip(flipped, kink)]
        other = Step(*arguments, more)
        if sum(other.gradients) < 0.9 * sum(step.gradients):
            step, flipped = other, more
    return step, len(flipped[0]) + len(flipped[1])


def compare_step(architecture, run, record, update):
    """A row of the second table: KappaScope's update number `update`, step by step."""
    before, after = snapshot(record, update - 1), snapshot(record, update)
    step, kinks = step_by_kinks(architecture, run, record, update)
    now = step.agent.now
    mixed = (1 - peer.TAU) * before["target"] + peer.TAU * after["critic"]
    statistics = max(deviation(after["critic_state"], step.critic_state),
                     deviation(after["actor_state"], now["actor_state"].numpy()))
    agent = agent_at(architecture, run, record, update - 1, torch.float64)
    return [*step.gradients, moved(agent, "critic", record, update),
            moved(agent, "actor", record, update), deviation(after["target"], mixed),
            deviation(after["log_temperature"], now["log_temperature"].numpy()), statistics], kinks


def compare_32(architecture, run, record):
    """Rows of the second and of the third table."""
    exact, results = simulate(architecture, run, record, torch.float64)
    rounded, _ = simulate(architecture, run, record, torch.float32)
    steps, whole = [], []
    for u, expected in exact.items():
        row, kinks = compare_step(architecture, run, record, u)
        bounds = [BOUND_GRADIENT] * 2 + [BOUND_STEP] * (len(row) - 2)
        steps.append((u, row, bounds, f"{kinks} kinks" if kinks else ""))
        row = group_deviations(snapshot(record, u), expected)[:-1]
        peers = group_deviations(rounded[u], expected)[:-1]
        whole.append((u, row, [max(BOUND_32, 10 * p) for p in peers], "", peers))
    return steps, whole


def report(title, columns, rows):
    width = 17 if len(rows[0]) > 5 else 12
    print(f"\n{title}\n{'':18}" + "".join(f"{c:>{width}}" for c in columns))
    for architecture, u, row, bounds, note, *peers in rows:
        cells = [f"{x:.1e}/{p:.1e}" for x, p in zip(row, *peers)] if peers else \
            [f"{x:.1e}" for x in row]
        line = "".join(f"{cell:>{width}}" for cell in cells)
        bad = [c for c, x, bound in zip(columns, row, bounds) if not x <= bound]
        note += f"exceeds its bound: {', '.join(bad)}" if bad else ""
        print(f"{architecture:14}{u:4}{line}  {note}".rstrip())
        failures.extend(f"{title.split(':')[0]}: {architecture}, after {u}: {c}" for c in bad)
    worst = np.max([row for _, _, row, *_ in rows], axis=0)
    print(f"{'worst':18}" + "".join(f"{x:{width}.1e}" for x in worst), flush=True)


def main(folder_64, folder_32, names):
    torch.set_num_threads(1)
    tables = [], [], []
    run_64, run_32 = read(folder_64 + "/run.h5"), read(folder_32 + "/run.h5")
    for run in run_64, run_32:
        check_run(run)
    for name in names:
        record = read(f"{folder_64}/{name}.h5")
        tables[0].extend((name, *row) for row in compare_64(name, run_64, record))
        record = read(f"{folder_32}/{name}.h5")
        check_start(name, agent_at(name, run_32, record, 0, torch.float32), record)
        for table, rows in zip(tables[1:], compare_32(name, run_32, record)):
            table.extend((name, *row) for row in rows)
        print(f"{name} compared", file=sys.stderr)
    report("float64: from the start", [*GROUPS, "results"], tables[0])
    report("float32, one update: KappaScope's last update, step by step",
           ["grad critic", "grad actor", "critic", "actor", "target", "temperature", "statistics"],
           tables[1])
    report("float32: from the start, and PyTorch's float32", list(GROUPS)[:-1], tables[2])
    for what in failures:
        print(f"FAILED: {what}")
    print(f"\n{len(names)} of the agents compared, {len(failures)} deviations exceed their bounds")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
