"""The frame of the report page: head, style, body. Nothing is loaded from elsewhere."""

from .report_parts import escape

_STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --quiet: #57606a; --line: #d0d7de; --back: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 3rem 0 .5rem; padding-top: 1rem; border-top: 2px solid var(--line);
  overflow-wrap: anywhere; }
h3 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h4 { font-size: .95rem; margin: 1.25rem 0 .25rem; color: var(--quiet); font-weight: 600; }
.outcome { font-size: 1.15rem; margin: .25rem 0 1rem; padding: .6rem .9rem;
  background: #eaf4fb; border-left: 4px solid #0072b2; }
ul.outcome { padding-left: 2rem; }
.note, figcaption { color: var(--quiet); font-size: .9rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .55rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
td { min-width: 3rem; max-width: 14rem; }
td.number { white-space: nowrap; }
th { vertical-align: bottom; max-width: 6rem; border-bottom: 2px solid var(--ink);
  background: var(--back); }
.number { text-align: right; }
.published { border: 1px dashed #8c6d1f; padding: .25rem 1rem 1rem; background: #fffaf0;
  margin: 2rem 0; }
.published h3 { margin-top: .75rem; }
.published td { max-width: 32rem; }
pre { overflow-x: auto; max-width: 100%; margin: 0; padding: .7rem .9rem; font-size: .85rem;
  background: var(--back); border: 1px solid var(--line); border-radius: 4px; user-select: all; }
pre, code, .signatures dd { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
figure { margin: 1rem 0 1.5rem; }
figure svg { display: block; width: 100%; min-width: 620px; max-width: 800px; height: auto; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .25rem 1rem;
  margin: .5rem 0; }
dt { color: var(--quiet); overflow-wrap: anywhere; }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.signatures, .scored { font-size: .8rem; }
.example { padding: .6rem .9rem; border: 1px solid var(--line); border-radius: 4px; }
.missing { color: var(--quiet); font-size: .88rem; }
mark { background: #ffd9a8; border-bottom: 2px solid #d55e00; padding: 0 .15em; }
del { text-decoration: none; border-bottom: 2px dotted #0072b2; }
a { color: #0b5cad; }
@media (max-width: 600px) {
  main { padding: 1rem .8rem 3rem; }
  h1 { font-size: 1.35rem; }
  dl { grid-template-columns: minmax(5rem, max-content) 1fr; }
  .signatures, .example { grid-template-columns: 1fr; gap: 0; }
  .signatures dt, .example dt { font-size: .85rem; margin-top: .4rem; }
}
@media print { pre { white-space: pre-wrap; } figure, .example { break-inside: avoid; } }
"""


def page(title: str, body: str) -> str:
    """A whole HTML document; ``body`` is HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )
