"""Inputs and targets of minibatches, and the loss of the caller's training, without a framework."""

import unittest
import warnings

import numpy as np

from kappascope import Refused
from kappascope.description import Loss
from kappascope.minibatches import read_minibatches, read_targets, targets_of_heads
from kappascope.reference import compare_loss


class TestMinibatches(unittest.TestCase):
    def test_rows(self):
        """The last minibatch of a loader has fewer rows: refused, with two ways out."""
        rows = [np.zeros((n, 5), np.float32) for n in (16, 16, 5)]
        objects = np.empty(3, object)
        objects[:] = rows
        for given in (rows, tuple(rows), objects):
            with self.assertRaisesRegex(
                Refused, r"inputs: obs: .*\[16, 5\], \[5, 5\].*drop_last=True.*weight 0"
            ):
                read_minibatches({"obs": given})
        for wrong in (np.array(None), np.array([[1.0, None]], object), None):
            with self.assertRaisesRegex(Refused, "obs: expected real numbers, found object"):
                read_minibatches({"obs": wrong})
        arrays, batched = read_minibatches({"obs": rows[:2]})
        self.assertEqual((arrays["obs"].shape, batched), ((2, 16, 5), True))

    def test_one_row(self):
        """Batch normalization over one row gives a constant, which gets a warning."""
        arguments = np.zeros((3, 1)), True, (3, 1), [(Loss("mse"), 1)], 2
        with self.assertWarnsRegex(UserWarning, "minibatches of one row"):
            read_targets(*arguments, True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_targets(*arguments, False)

    def test_heads(self):
        """Critics that become heads have the targets of all, or each its own."""
        own = np.arange(24.0).reshape(3, 4, 2, 1)
        for batched, given in ((True, own), (False, own[0])):
            found = targets_of_heads(given, batched, 2)
            np.testing.assert_array_equal(np.stack(found, -2), given)
        for given in (own[..., 0, 0], own[..., 0, :]):
            np.testing.assert_array_equal(targets_of_heads(given, True, 2), [given, given])


class TestCheck(unittest.TestCase):
    def message(self, factor, line, shape, ensemble=2, outputs=1, heads=1):
        found, head = np.array([0.3, 0.5]), (Loss(line), outputs)
        with self.assertRaises(Refused) as refused:
            compare_loss(factor * found, found, ensemble, [head] * heads, np.zeros(shape))
        return str(refused.exception)

    def test_factors(self):
        """Means and sums over critics, outputs, targets and rows, alone and together."""
        for factor, line, shape, outputs, words in (
            (2, "mse", (2, 64, 1), 1, "without the 1/2 of mse? Then loss='mse' needs weight=2"),
            (
                1 / 2,
                "huber",
                (2, 64, 1),
                1,
                "the mean over the critics, where the sum is meant? Then loss='huber' ",
            ),
            (64, "mse", (2, 64, 1), 1, "the sum over the rows"),
            (64, "mse", (2, 64, 2, 1), 1, "weight=64"),
            (128, "mse", (2, 64, 1), 1, "without the 1/2 of mse, and the sum over the rows"),
            (1 / 5, "quantile", (2, 64, 3), 5, "the mean over the outputs"),
            (1 / 10, "quantile weight=4", (2, 64, 3), 5, "needs weight=0.4"),
            (3, "quantile", (2, 64, 3), 5, "the sum over the targets"),
            (5, "huber", (2, 64, 5), 5, "the sum over the outputs, where the mean is meant? Then"),
            (1 / 51, "ce min=0 max=1", (2, 64, 51), 51, "the mean over the outputs"),
            (10, "huber delta=0.1", (2, 64, 1), 1, "divided by 0.1, as smooth_l1_loss is by beta"),
        ):
            self.assertIn(words, self.message(factor, line, shape, 2, outputs))
        self.assertIn("every loss needs 0.5 times its weight", self.message(0.5, "mse", (2, 8, 2), 1, 1, 2))
        self.assertIn("Other inputs", self.message(0.77, "mse", (2, 64, 1)))
        self.assertIn("of minibatch 1 (mean", self.message(0.77, "mse", (2, 64, 1)))

    def test_one_number(self):
        """One number for several minibatches is their mean, and so named."""
        arguments = np.array([0.3, 0.5]), 1, [(Loss("mse"), 1)], np.zeros((2, 8, 1))
        compare_loss(0.4, *arguments)
        with self.assertRaisesRegex(Refused, "loss 0.4 of all 2 minibatches .*found 0.8"):
            compare_loss(0.8, *arguments)


if __name__ == "__main__":
    unittest.main()
