"""A race: measures every method of every program with every setting in turn; prints the best."""

import numpy as np

from contest import measure
from programs import OURS, plural


def any_setting(program, label, method):
    return True


class Race:
    """methods: {(program, method): description}, KappaScope's first. verdicts: {description: methods}:
    the ratio of the best time of these methods to KappaScope's is printed. fits(program, label,
    method): whether a method can run with the settings of that label."""

    def __init__(self, methods, verdicts, fits=any_setting):
        self.methods, self.verdicts, self.fits = methods, verdicts, fits
        self.ours = next(iter(methods))

    def entries(self, every):
        """{(program, label): methods}, for all settings."""
        return {key: methods for key in every
                if (methods := [m for p, m in self.methods if p == key[0] and self.fits(*key, m)])}

    def last(self, every):
        """The same with only the last setting of each method: the one with the most workers or
        devices."""
        last = {(p, m): label for (p, label), methods in self.entries(every).items()
                for m in methods}
        return {key: methods for key in every
                if (methods := [m for (p, m), label in last.items() if (p, label) == key])}

    def finalists(self, seconds, n):
        """The n fastest settings of each method by their medians, as single rounds may be disturbed."""
        chosen = []
        for program, method in self.methods:
            keys = [key for key in seconds if (key[0], key[2]) == (program, method)]
            chosen += sorted(keys, key=lambda key: np.median(seconds[key]))[:n]
        return chosen

    def run(self, contestants, options, name, words, unit):
        """First finds the best two settings of every method, then measures only these. Times are per
        unit of work: a run of a method has `unit` units, and `words` describes one. Returns
        KappaScope's best time per unit, in seconds."""
        entries = (self.last if options.quick else self.entries)(contestants.every)
        runs = {(*key, m): (contestants[key], m) for key, methods in entries.items()
                for m in methods}
        chosen = self.finalists(measure(runs, 1 if options.quick else 3), 2)
        for key in entries:
            if key not in {c[:2] for c in chosen}:
                contestants[key].close()
        seconds = measure({key: runs[key] for key in chosen}, options.rounds)
        print(f"  milliseconds {words}, {plural(options.rounds, 'round')}; x ours: ratio of "
              "the best times; then median and quartiles of the ratios per round")
        return self.report(contestants, seconds, name, unit)

    def report(self, contestants, seconds, name, unit):
        """Prints a line per method with its best setting, then the ratios `verdicts`."""
        best = {(k[0], k[2]): k for k in self.finalists(seconds, 1)}
        ours = np.array(seconds[best[self.ours]])
        ratio = {}
        print(f"  {'':46}{'best':>8}{'median':>8}{'x ours':>8}{'median, quartiles':>24}  settings")
        for (program, method), key in best.items():
            s = np.array(seconds[key])
            low, middle, high = np.percentile(s / ours, [25, 50, 75])
            spread = f"{middle:.2f} ({low:.2f} .. {high:.2f})"
            ratio[program, method] = middle, spread, s.min() / ours.min()
            print(f"  {program:12}{self.methods[program, method]:34}{1e3 * s.min() / unit:8.2f}"
                  f"{1e3 * np.median(s) / unit:8.2f}{s.min() / ours.min():8.2f}{spread:>24}  "
                  f"{key[1]}")
        for words, rows in self.verdicts.items():
            _, spread, bests = min(ratio[row] for row in rows)
            print(f"  {name}: {words}: {spread} times KappaScope's time; best to best {bests:.2f}")
        for program, label in sorted({key[:2] for key in best.values()}, reverse=True):
            about = contestants[program, label].about
            print(f"  {program}, {label}:", ", ".join(f"{k} {v}" for k, v in about.items()))
        return ours.min() / unit
