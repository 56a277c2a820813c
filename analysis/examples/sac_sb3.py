"""Stable-Baselines3's SAC as a run of a study, by a callback.

python3 sac_sb3.py STUDY relu|tanh SEED [STEPS]"""

import sys

import torch
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import kappascope


def draw(model):
    """8 minibatches of 256 rows: of each array of the samples [8, 256, D]."""
    samples = model.replay_buffer.sample(8 * 256, env=model.get_vec_normalize_env())
    return {name: x.reshape(8, 256, -1) for name, x in samples._asdict().items() if x is not None}


def save(model, path, minibatches):
    """The critics with the targets of SAC.train. Samples of n-step returns have discounts of their own."""
    rows = {"discounts": model.gamma, **{name: x.flatten(0, 1) for name, x in minibatches.items()}}
    with torch.no_grad():
        action, log_p = model.actor.action_log_prob(rows["next_observations"])
        value = torch.cat(model.critic_target(rows["next_observations"], action), 1).min(1, keepdim=True)[0]
        alpha = model.log_ent_coef.exp() if model.ent_coef_optimizer else model.ent_coef_tensor
        y = rows["rewards"] + (1 - rows["dones"]) * rows["discounts"] * (value - alpha * log_p[:, None])
    kappascope.save(
        path,
        critics=model.critic,
        inputs=(minibatches["observations"], minibatches["actions"]),
        targets=y.reshape(8, 256, 1),
        loss="mse",  # the mean of (f - y)^2 / 2, as in SAC.train; that of TD3 is F.mse_loss
        optimizer=model.critic.optimizer,
    )


class StudyCallback(BaseCallback):
    """Saves checkpoints and evaluates, every `every` steps."""

    def __init__(self, study, name, env, every):
        super().__init__()
        self.study, self.name, self.env, self.every = study, name, env, every

    def _on_training_start(self):
        model = self.model
        self.run = kappascope.Run(
            self.study,
            env=self.env,
            name=self.name,
            seed=model.seed,
            every=self.every,
            draw=lambda: draw(model),
            save=lambda path, step, minibatches: save(model, path, minibatches),
            attributes={"gamma": model.gamma},
        )
        self.eval_env = make_vec_env(self.env, seed=1000)

    def _on_step(self):
        if self.num_timesteps > self.model.learning_starts:
            self.run(self.num_timesteps)
        if self.num_timesteps % self.every == 0:
            self.run.evaluated(self.num_timesteps, evaluate_policy(self.model, self.eval_env, 5)[0])
        return True


if __name__ == "__main__":
    study, name, seed, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int((sys.argv[4:] or ["3000"])[0])
    torch.set_num_threads(1)
    activation = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}[name]
    model = SAC(
        "MlpPolicy",
        "Pendulum-v1",
        learning_rate=1e-3,
        batch_size=128,
        policy_kwargs={"net_arch": [64, 64], "activation_fn": activation},
        seed=seed,
        device="cpu",
    )
    model.learn(steps, callback=StudyCallback(study, name, "Pendulum-v1", every=1000))
