"""What the errors of trimmed means must reach; the experiment itself is `sfumato.teach.experiments.trimmed_means`."""

from sfumato.teach.experiments.trimmed_means import TRIMS, compare_trimmed_means

BARS = {101: 6.0, 501: 3.0, 2001: 6.0}
compared = compare_trimmed_means

__all__ = ["BARS", "TRIMS", "compared"]
