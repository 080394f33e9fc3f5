# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser."""
from browser import Browser
from look import check
from test_page import EVERYTHING
from tool import data, page_of, run, scratch


def test_pages_in_chromium():
    """One browser for all pages: starting it takes longer than looking."""
    single = page_of("single.html", data("nccl-tests-2.17.txt"))
    everything = page_of("all.html", *EVERYTHING)
    hostile = page_of("hostile.html", f"{'W' * 60}={data('coll-none.1.json')}", f"{'a word ' * 20}={data('coll-stratus.1.json')}",
                      *(f"run {number}={data('coll-none.2.json')}" for number in range(8)), options=["-t", "X" * 200])
    versus = scratch("versus.html")
    run("compare", data("coll-none.1.json"), data("coll-stratus.1.json"), "-o", versus)
    with Browser() as browser:
        check(browser, single, "single", 1)
        check(browser, everything, "all", 9)
        check(browser, hostile, "long-names", 1)
        check(browser, versus, "compare", 2)
