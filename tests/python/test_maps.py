"""Maps: patterns for names, the order of names, the lines of a map; what they leave unused, missing, "
"ambiguous."""

import unittest

import numpy as np
from foreign import CE, MSE, ImportTest

from kappascope.maps import match_glob, order_of, valid_glob


class TestGlobs(unittest.TestCase):
    def test_matches(self):
        for glob, name, parts in (
            ("q*.net.0.weight", "q12.net.0.weight", ("12",)),
            ("q*.weight", "q1.net.weight", None),
            ("q*.weight", "q1/net.weight", None),
            ("q**.weight", "q1/net.weight", ("1/net",)),
            ("q?", "q1", ("1",)),
            ("q?", "q.", None),
            ("q?", "q", None),
            ("*", "", ("",)),
            ("a*b*c", "abbcbc", ("", "bcb")),
            ("a", "ab", None),
            ("a[b]", "a[b]", ()),
            ("*a*a*a*a*a*a*a*b", "a" * 299, None),  # at once
        ):
            self.assertEqual(match_glob(glob, name), parts, (glob, name))

    def test_shortest(self):
        self.assertEqual(match_glob("a*b*c", "abbcbc"), ("", "bcb"))
        self.assertEqual(match_glob("**/*", "a/b/c"), ("a/b", "c"))

    def test_valid(self):
        self.assertTrue(valid_glob("*" * 16))
        for glob in ("", "*a*b*c*d*e*f*g*h*i", "x" * 256):
            self.assertFalse(valid_glob(glob))

    def test_order(self):
        self.assertLess(order_of("q2.w"), order_of("q10.w"))
        self.assertGreater(order_of("q10.w"), order_of("q9.w"))
        self.assertEqual(order_of("q02"), order_of("q2"))
        self.assertLess(order_of("a"), order_of("ab"))
        self.assertGreater(order_of("b"), order_of("a10"))


class TestMaps(ImportTest):
    def test_unused(self):
        e = self.example()
        e.files |= {"actor.0.weight": np.zeros((2, 3)), "count": np.array(3)}
        e.write()
        self.refused(e, "w.npz", "2 arrays unused, 0 missing, 0 ambiguous", "actor.0.weight float64 [2, 3]")
        e.extend_map("ignore actor.**")
        self.refused(e, "w.npz", "1 arrays unused")
        e.extend_map("ignore c?u*")
        self.assertIn("ignored    count <i8 []\n", self.imported(e))
        e.extend_map("ignore **.bias")
        self.refused(e, "w.npz", "4 ambiguous")

    def test_missing(self):
        e = self.example()
        for q in ("q9", "q10"):
            e.files[f"{q}.bias"] = e.files.pop(f"{q}.02_dense.bias")
        e.write()
        e.extend_map("ignore q*.bias")
        self.refused(
            e, "w.npz", "0 arrays unused, 1 missing, 0 ambiguous", "02_dense/bias [1]: no array matches"
        )
        e.write_text("m.map", "layout=flax\nignore **\n")
        self.refused(e, "w.npz", "4 missing", "has no line for it")

    def test_ambiguous(self):
        e = self.example()
        e.files["q8.02_dense.bias"] = e.files.pop("q9.02_dense.bias")
        e.write()
        self.refused(e, "w.npz", "is '8', but")
        e.files["bias"] = e.files.pop("q8.02_dense.bias")
        e.write()
        e.extend_map("ignore bias")
        self.refused(e, "w.npz", "matches 1 arrays, but")

    def test_several_names(self):
        """Names that no pattern has in common, one for each critic, in the order of the line."""
        e = self.example()
        for name in list(e.files):
            if name.startswith("q10"):
                e.files[name.replace("q10", "another/copy")] = e.files.pop(name)
        e.write()
        both = [f"{n}= q9.{n.replace('/', '.')} ano*/copy.{n.replace('/', '.')}" for n in e.arrays]
        for lines, words in (
            (both, ()),
            ([*both[:3], both[3].replace("q9", "q8")], ("1 arrays unused, 1 missing",)),
            ([*both[:3], both[3].replace("q9", "**")], ("2 ambiguous", "line 5 of", "has it twice")),
            ([*both[:3], both[3].replace("q9", "ano*/copy")], ("1 arrays unused", "1 ambiguous")),
            ([*both[:3], "02_dense/bias = **2_dense.bias"], ("02_dense/bias: expected names of all",)),
            ([*both[:3], both[3].split(" ano")[0]], ("1 arrays unused", "1 ambiguous")),
            (["layout = a b"], ("expected 'NN_kind/ARRAY = NAME', with a name for each critic",)),
        ):
            e.write_text("m.map", "\n".join(["layout = torch", *lines]))
            self.refused(e, "w.npz", *words) if words else self.imported(e)
        e.files["q8.02_dense.bias"] = np.zeros(1)
        e.write()
        e.write_text("m.map", "\n".join(["layout = torch", *both[:3], both[3].replace("q9", "q?")]))
        self.refused(e, "w.npz", "02_dense/bias: expected one array for each of 2 names, found 3")
        e.write_text("m.map", "\n".join(["layout = torch", *both, "ignore q8.**"]))
        self.refused(e, "w.npz", "whose axis has the critics", options=("--ensemble-axis", "0"))

    def test_lines(self):
        e = self.example()
        form = "m.map:2: expected 'NN_kind/ARRAY = NAME'"
        for text, words in (
            ("00_dense/kernel = q*.k\n", "expected a line 'layout = torch'"),
            ("layout = keras\n", "m.map:1: layout: expected torch or flax, found 'keras'"),
            ("layout=torch\nlayout=flax\n", "m.map:2: layout is given twice"),
            (
                "layout=torch\n05_dense/kernel = a\n",
                "m.map:2: the description has no array 05_dense/kernel: expected one of 00_dense/kernel, "
                "00_dense/bias, 02_dense/kernel, 02_dense/bias",
            ),
            ("layout=torch\n00_dense/bias = a\n00_dense/bias = b\n", "m.map:3: 00_dense/bias has a"),
            ("layout=torch\n00_dense/bias a\n", form),
            ("layout=torch\n00_dense/bias =\n", form),
            ("layout=torch\nignore\n", form),
            ("layout=torch\nignore *a*b*c*d*e*f*g*h*i\n", "m.map:2: expected a name with at most 8"),
            (
                "layout=torch\nignore " + "a" * 4089,
                "m.map:2: the line has 4096 characters, expected at most 4095",
            ),
            ("layout=torch\n\0", "expected a text, found a zero byte"),
        ):
            e.write_text("m.map", text)
            self.refused(e, "w.npz", words)

    def test_needed_statistics(self):
        """batchrenorm reads its running statistics in training mode, so the map must have them."""
        e = self.example("batchrenorm\ndense 1\nloss mse\n")
        self.imported(e)
        names = [n for n in e.arrays if not n.endswith(("mean", "var"))]
        lines = [f"{n} = q*.{n.replace('/', '.')}" for n in names] + ["ignore **.mean", "ignore **.var"]
        e.write_text("m.map", "layout=torch\n" + "\n".join(lines) + "\n")
        self.refused(e, "w.npz", "0 arrays unused, 2 missing, 0 ambiguous", "00_batchrenorm/mean [5]: ")

    def test_statistics_that_are_left_out(self):
        e = self.example(CE)
        e.extend_map("")
        kept = {n: a for n, a in e.arrays.items() if not n.endswith(("mean", "var"))}
        lines = [f"{n} = q*.{n.replace('/', '.')}" for n in kept] + ["ignore **.mean", "ignore **.var"]
        e.write_text("m.map", "layout=torch\n" + "\n".join(lines) + "\n")
        e.arrays = kept
        self.imported(e)

    def test_errors_of_the_description(self):
        e = self.example()
        for text, words in (
            ("dense 4\nrelux\ndense 1\nloss mse\n", "a.arch:2: "),
            ("dense 4\npolicy tanh-gaussian log-std=clip min=-10 max=2\n", "found a policy or outputs"),
            ("dense 4\nrelu\ndense 1\n", "a.arch:3: the line 'loss ...' or 'policy ...' is missing"),
        ):
            e.write_text("a.arch", text)
            self.refused(e, "w.npz", words)
        self.assertEqual(e.text, MSE)


if __name__ == "__main__":
    unittest.main()
