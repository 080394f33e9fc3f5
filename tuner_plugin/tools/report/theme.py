# SPDX-License-Identifier: Apache-2.0
"""Colours and styles of the page.

Colours of lines differ for colour-blind readers as well, and in lightness; lines have markers and dashes of their own
besides. All texts have a contrast of 4.5 and more to what is behind them."""

COLOURS = {
    "page": "#ffffff", "panel": "#f6f7f9", "text": "#1a1f26",
    "soft": "#57606a", "rule": "#d5dae0", "grid": "#e3e7ec",
    "good": "#0a6b3d", "bad": "#b0201c", "link": "#0b57a8",
    # Lines: the base, the chosen, the best, then runs.
    "base": "#57606a", "chosen": "#0b57a8", "best": "#0a7a52",
    "line0": "#c04a00", "line1": "#0b57a8", "line2": "#8b1fa0",
    "line3": "#0a7a52", "line4": "#8a6100", "line5": "#a3134f",
    # Dots, by the number of hosts: blue, orange, red, green.
    "hosts1": "#1f6fd0", "hosts2": "#d06c00", "hosts4": "#c8202a",
    "hosts8": "#2a8c3a",
    # Heat: from as good as the best to far from it.
    "heat0": "#e2f0e9", "heat1": "#f3f0cf", "heat2": "#fbdca6",
    "heat3": "#f5b37c", "heat4": "#e08158", "heat5": "#b8402f",
    "ink0": "#123b29", "ink1": "#3d3a05", "ink2": "#4a3000",
    "ink3": "#442000", "ink4": "#2b0d00", "ink5": "#ffffff",
}
HEAT_STEPS = 6


def css():
    variables = "".join(f"--{name}:{colour};" for name, colour in COLOURS.items())
    return f":root{{color-scheme:light;{variables}}}\n{RULES}"


RULES = """*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1120px;margin:0 auto;padding:1.25rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:1rem;border-top:1px solid var(--rule)}
p{max-width:75ch;margin:.5rem 0}
h1,h2,h3,p,a,dt,dd,figcaption,summary,caption{overflow-wrap:anywhere}
.soft,figcaption small,.origin{color:var(--soft)}
nav{margin:1rem 0}nav a{color:var(--link);margin-right:1rem;display:inline-block}
.warning{border-left:4px solid var(--bad);background:var(--panel);padding:.5rem .75rem}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,13.5rem),1fr));gap:.75rem;margin:1rem 0;padding:0}
.facts div{background:var(--panel);border:1px solid var(--rule);border-radius:8px;padding:.6rem .8rem;min-width:0}
.facts dt{color:var(--soft);font-size:.85rem}
.facts dd{margin:0;font-size:1.35rem;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.facts dd.note{font-size:.85rem;color:var(--soft)}
.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}.quiet{color:var(--soft)}
figure{margin:1rem 0 1.5rem;min-width:0}
figcaption{font-weight:600}
figcaption small{font-weight:400;display:block}
svg{display:block;max-width:100%;min-width:54rem;height:auto;margin:.25rem 0}
svg *{stroke-linejoin:round;stroke-linecap:butt}
svg text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif!important}
details{margin:.25rem 0 1rem}
summary{cursor:pointer;color:var(--link)}
.scroll{overflow-x:auto;max-width:100%}
.scroll:focus-visible{outline:2px solid var(--link)}
table{border-collapse:collapse;font-size:.875rem;margin:.5rem 0}
caption{text-align:left;font-weight:600;padding:.25rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--rule);text-align:right;vertical-align:top;font-variant-numeric:tabular-nums;white-space:nowrap}
th{color:var(--soft);font-weight:600}
th.word,td.word,th[scope=row]{text-align:left}
th[scope=row]{color:var(--text);font-weight:400}
td.long{white-space:normal;min-width:16rem;overflow-wrap:anywhere}
table th[scope=row]{white-space:normal;overflow-wrap:break-word;max-width:24rem}
code{font:.85em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
footer{margin-top:3rem;border-top:1px solid var(--rule);padding-top:.75rem;color:var(--soft);font-size:.875rem}
@media print{svg{min-width:0}}
"""
