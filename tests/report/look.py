# SPDX-License-Identifier: Apache-2.0
"""Looks at a page in a browser: nothing on its console, no request, nothing too wide, all plots to be seen."""
import os

WIDTHS = (1280, 390)
pictures = None  # directory for screenshots, from --pictures

# Everything the page has that is wider than the window, unless it scrolls within its own box.
TOO_WIDE = """[...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) && !e.closest('.scroll') && !e.closest('svg *');
}).map(e => e.tagName + '.' + e.className).slice(0, 5)"""
# Per figure: the pictures to be seen, and how large each is.
PLOTS = """[...document.querySelectorAll('figure')].map(f => [...f.querySelectorAll('svg')]
  .map(s => s.getBoundingClientRect()).filter(b => b.width > 0).map(b => [b.width, b.height]))"""
# Texts of the pictures that are to be seen: the smallest size, those beyond the picture, and those over others.
TEXTS = """[...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width > 0).flatMap(s => {
  const frame = s.getBoundingClientRect();
  const texts = [...s.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect(), t]);
  const out = texts.filter(([, b]) => b.left < frame.left - 2 || b.right > frame.right + 2 || b.top < frame.top - 2 ||
                           b.bottom > frame.bottom + 2).map(([t]) => 'outside: ' + t);
  const over = [];
  for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
    const a = texts[i][1], b = texts[j][1];
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
      over.push('over each other: ' + texts[i][0] + ' / ' + texts[j][0]);
  }
  return [...out, ...over].map(t => s.parentElement.id + ': ' + t);
}).slice(0, 8)"""
SMALLEST = """Math.min(...[...document.querySelectorAll('svg text')].map(t => {
  const box = t.ownerSVGElement.getBoundingClientRect(), view = t.ownerSVGElement.viewBox.baseVal;
  return box.width > 0 ? parseFloat(getComputedStyle(t).fontSize) * box.width / view.width : 99;
}))"""


def check(browser, path, name, figures):
    for width in WIDTHS:
        page = browser.open(path, width=width)
        what = f"{name} at {width} px"
        if pictures:
            os.makedirs(pictures, exist_ok=True)
            page.screenshot(os.path.join(pictures, f"{name}-{width}.png"))
        assert page.problems == [], f"{what}: {page.problems}"
        assert page.requests == [], f"{what}: {page.requests}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{what}: scrolls sideways"
        assert page.evaluate(TOO_WIDE) == [], f"{what}: {page.evaluate(TOO_WIDE)}"
        plots = page.evaluate(PLOTS)
        assert len(plots) == figures, f"{what}: {len(plots)} figures"
        for each in plots:
            assert len(each) == 1 and each[0][0] > 0.8 * min(width, 1120) - 60 and each[0][1] > 90, f"{what}: {each}"
        assert page.evaluate(SMALLEST) >= 9, f"{what}: text of {page.evaluate(SMALLEST)} px"
        assert page.evaluate(TEXTS) == [], f"{what}: {page.evaluate(TEXTS)}"
        if width == WIDTHS[0]:
            check_tables(page, what, figures)


def check_tables(page, what, figures):
    """Opened, the tables are there and still nothing is too wide."""
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    shown = page.evaluate("[...document.querySelectorAll('details table')].filter(t => t.getBoundingClientRect().height > 30).length")
    assert shown == figures, f"{what}: {shown} tables"
    assert page.evaluate(TOO_WIDE) == [], f"{what}: {page.evaluate(TOO_WIDE)}"
