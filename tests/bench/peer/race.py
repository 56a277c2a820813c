"""A race: every program's methods at every setting, measured in turns; a table of the best."""

import numpy as np

from contest import measure
from programs import OURS, plural


def any_setting(program, label, method):
    return True


class Race:
    """methods: {(program, method): words}, ours first. verdicts: {words: methods}: best of these,
    time as a multiple of ours. fits(program, label, method): whether the settings of that label are
    of use to a method."""

    def __init__(self, methods, verdicts, fits=any_setting):
        self.methods, self.verdicts, self.fits = methods, verdicts, fits
        self.ours = next(iter(methods))

    def entries(self, every):
        """{(program, label): methods} for all settings."""
        return {key: methods for key in every
                if (methods := [m for p, m in self.methods if p == key[0] and self.fits(*key, m)])}

    def last(self, every):
        """The same with the last settings of each method: those that share the work among most
        workers or devices."""
        last = {(p, m): label for (p, label), methods in self.entries(every).items()
                for m in methods}
        return {key: methods for key in every
                if (methods := [m for (p, m), label in last.items() if (p, label) == key])}

    def finalists(self, seconds, n):
        """The n fastest settings of each method, by their medians: others disturb single rounds."""
        chosen = []
        for program, method in self.methods:
            keys = [key for key in seconds if (key[0], key[2]) == (program, method)]
            chosen += sorted(keys, key=lambda key: np.median(seconds[key]))[:n]
        return chosen

    def run(self, contestants, options, name, words, unit):
        """A first part finds every method's best two settings, a second measures those alone. The
        table is in milliseconds a unit, of which a run of a method has `unit`; `words` say what it
        is. Returns our best time, in seconds a unit."""
        entries = (self.last if options.quick else self.entries)(contestants.every)
        runs = {(*key, m): (contestants[key], m) for key, methods in entries.items()
                for m in methods}
        chosen = self.finalists(measure(runs, 1 if options.quick else 3), 2)
        for key in entries:
            if key not in {c[:2] for c in chosen}:
                contestants[key].close()
        seconds = measure({key: runs[key] for key in chosen}, options.rounds)
        print(f"  milliseconds {words}, {plural(options.rounds, 'round')}; times ours: by the "
              "bests; in each round: median, quartiles")
        return self.report(contestants, seconds, name, unit)

    def report(self, contestants, seconds, name, unit):
        """One line a method, at its best settings; then the ratios that the goals speak of."""
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
            print(f"  {name}: {words}: {spread} times our time; by the bests {bests:.2f}")
        for program, label in sorted({key[:2] for key in best.values()}, reverse=True):
            about = contestants[program, label].about
            print(f"  {program}, {label}:", ", ".join(f"{k} {v}" for k, v in about.items()))
        return ours.min() / unit
