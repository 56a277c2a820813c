"""The rule of configs/duel.study, as plots/gallery/duel/duel.py applies it."""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "plots" / "gallery" / "duel"))
import duel  # noqa: E402

duel.PERMUTATIONS = 999


def rows(strength):
    """A study in which only the noise scale is related to the return, besides the factors."""
    rng = np.random.default_rng(3)
    for k, architecture in enumerate(duel.ARCHITECTURES):
        hidden = rng.standard_normal()
        y = duel.FACTORS[k] @ (1.5, 0.3, 0.2, 0.2, 0.3) + 0.3 * hidden + 0.02 * rng.standard_normal()
        for seed in (4, 5, 6):
            for step in duel.STEPS:
                for analysis in (*duel.PUBLISHED, "standard", "ggn", "residual", "preconditioned"):
                    returned = y * (1 if step == duel.LAST else 0.5) + 0.02 * rng.standard_normal()
                    row = {"env": "dog-trot", "architecture": architecture, "seed": seed, "env_step": step}
                    row["analysis"] = analysis
                    row["return_mean"] = 10**returned if analysis == "standard" else "-"
                    for name, _, columns in duel.CANDIDATES:
                        x = rng.standard_normal() - (strength * hidden if name == "noise" else 0)
                        row |= {column: 10**x for of, column in columns if of == analysis}
                    yield row


class TestDuel(unittest.TestCase):
    def judged(self, strength, change=lambda row: row):
        return {tuple(row[:2]): row for row in duel.duel(duel.Table(map(change, rows(strength))))}

    def test_a_number_that_predicts(self):
        found = self.judged(10)
        self.assertEqual(len(found), 12)
        self.assertEqual(found["pooled", "noise"][-1], "predicts")
        for name, _, _ in duel.CANDIDATES[:-1]:
            self.assertEqual(found["pooled", name][-1], "not decided")

    def test_the_other_sign(self):
        self.assertEqual(self.judged(-10)["pooled", "noise"][-1], "contradicts its sign")

    def test_a_missing_value(self):
        def drop(row):
            late = row["architecture"] == "ln+mse" and row["seed"] == 5 and row["env_step"] == 75000
            return row | {"kappa_q99_lower": "-"} if late else row

        found = self.judged(10, drop)
        self.assertEqual([found["pooled", name][-1] for name in ("ggn", "noise")], ["no value", "predicts"])
        self.assertNotEqual(found["early", "ggn"][-1], "no value")
        with self.assertRaisesRegex(SystemExit, "expected returns above 0"):
            self.judged(10, lambda row: row | {"return_mean": "-"})

    def test_another_study(self):
        for change in ({"seed": 1}, {"env": "dog-run"}):
            with self.assertRaisesRegex(SystemExit, "expected dog-trot with seeds 4, 5, 6"):
                self.judged(10, lambda row, change=change: row | change)

    def test_level(self):
        """Without any relation a candidate is found in at most 5% of all studies, at whatever factors."""
        rng, hits = np.random.default_rng(5), 0
        for k in range(300):
            y, *x = (duel.FACTORS @ rng.normal(size=5) + rng.normal(size=12) for _ in range(7))
            hits += (duel.holm(duel.judge(duel.FACTORS, y, x, [1] * 6, k)[:, 2]) <= duel.LEVEL).any()
        self.assertLessEqual(hits, 25)

    def test_predicted_from_the_others(self):
        rng = np.random.default_rng(7)
        columns, y = np.column_stack([np.ones(12), rng.normal(size=(12, 2))]), rng.normal(size=12)
        errors, means = 0, 0
        for k in range(12):
            rest = np.arange(12) != k
            fit, *_ = np.linalg.lstsq(columns[rest], y[rest], rcond=None)
            errors += (y[k] - columns[k] @ fit) ** 2
            means += (y[k] - y[rest].mean()) ** 2
        self.assertAlmostEqual(duel.left_out(columns, y), 1 - errors / means)

    def test_holm(self):
        adjusted = duel.holm(np.array([0.01, 0.04, np.nan, 0.03]))
        np.testing.assert_allclose(adjusted, [0.04, 0.09, np.nan, 0.09])


if __name__ == "__main__":
    unittest.main()
