# SPDX-License-Identifier: Apache-2.0
"""Pictures for documents: matplotlib's, as SVG files."""
from benchmark.run import Failure

try:
    import matplotlib
except ImportError:
    raise Failure("a picture needs matplotlib for /usr/bin/python3: scripts/install-deps plot") from None
matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "stratus", "font.family": "sans-serif", "font.size": 9, "lines.markersize": 4.5,
    "axes.grid": True, "grid.alpha": 0.4, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False})


def save(figure, path, title, source):
    """`source`: of which measurement it is."""
    figure.savefig(path, format="svg", metadata={"Title": title, "Description": source, "Date": None, "Creator": None})
    pyplot.close(figure)
