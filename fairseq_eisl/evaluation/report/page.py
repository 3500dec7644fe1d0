"""The frame of the report page: head, style, body. Nothing is loaded from elsewhere."""

from .parts import escape

_STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --quiet: #57606a; --line: #d0d7de; --back: #f6f8fa;
  --paper: #ffffff; --grid: #dddddd; --blue: #0072b2;
  --told: #eaf4fb; --edge: #0072b2; --link: #0b5cad;
  --theirs: #fffaf0; --theirs-edge: #8c6d1f; --mark: #ffd9a8; --mark-edge: #d55e00;
  --shade: rgba(27, 31, 36, .38); }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ink: #e6edf3; --quiet: #9da7b3; --line: #3d444d; --back: #1b2129;
    --paper: #10151b; --grid: #39414b; --blue: #3d9bdc;
    --told: #10273a; --edge: #56b4e9; --link: #79b8ff;
    --theirs: #241e10; --theirs-edge: #c9a24a; --mark: #5c3a10; --mark-edge: #f0883e;
    --shade: rgba(230, 237, 243, .45); }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1, h2, h3, h4, p, li, td, th, dt, dd, summary { overflow-wrap: anywhere;
  unicode-bidi: plaintext; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .5rem; padding-top: 1rem;
  border-top: 2px solid var(--line); }
h3 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h4 { font-size: .95rem; margin: 1.25rem 0 .25rem; color: var(--quiet); font-weight: 600; }
.outcome { font-size: 1.15rem; margin: .25rem 0 0; padding: .6rem .9rem;
  background: var(--told); border-left: 4px solid var(--edge); }
.evidence { margin: 0 0 1rem; padding: 0 .9rem .6rem; background: var(--told);
  border-left: 4px solid var(--edge); }
.contents ul { margin: .25rem 0; padding-left: 1.5rem; }
.note, figcaption { color: var(--quiet); font-size: .9rem; overflow-wrap: anywhere; }
/* Where a part is wider than the page, it scrolls: a shadow at the side where there is more. */
.wide { overflow-x: auto; max-width: 100%; scrollbar-width: thin;
  background: linear-gradient(to right, var(--paper) 45%, transparent) 0 0 / 44px 100% local,
    linear-gradient(to left, var(--paper) 45%, transparent) 100% 0 / 44px 100% local,
    linear-gradient(to right, var(--shade), transparent) 0 0 / 18px 100% scroll,
    linear-gradient(to left, var(--shade), transparent) 100% 0 / 18px 100% scroll;
  background-repeat: no-repeat; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .55rem; border-bottom: 1px solid var(--line); text-align: start;
  vertical-align: top; }
td { min-width: 7rem; max-width: 14rem; }
td.number { min-width: 3rem; white-space: nowrap; }
th { vertical-align: bottom; max-width: 7rem; overflow-wrap: break-word;
  border-bottom: 2px solid var(--ink); }
.number { text-align: right; }
.published { border: 1px dashed var(--theirs-edge); padding: .25rem 1rem 1rem; margin: 2rem 0;
  --paper: var(--theirs); background: var(--theirs); }
.published h3 { margin-top: .75rem; }
.published td { max-width: 32rem; }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--link); }
.folds > details { border: 1px solid var(--line); border-radius: 4px; padding: .4rem .9rem; }
.folds > details > summary { font-weight: 600; }
dd details { margin: 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; max-width: 100%; margin: 0;
  padding: .7rem .9rem; font-size: .85rem; background: var(--back);
  border: 1px solid var(--line); border-radius: 4px; user-select: all; }
pre, code, .signatures dd { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; }
figure { margin: 1rem 0 1.5rem; }
figure svg { display: block; width: 100%; min-width: 620px; max-width: 800px; height: auto;
  fill: var(--ink); }
figure svg text { font-family: "DejaVu Sans", Verdana, sans-serif !important; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .25rem 1rem;
  margin: .5rem 0; }
dt { color: var(--quiet); max-width: 16rem; }
dd { margin: 0; min-width: 0; }
.signatures, .scored { font-size: .8rem; }
.example { padding: .6rem .9rem; border: 1px solid var(--line); border-radius: 4px; }
.missing, .more { color: var(--quiet); font-size: .88rem; }
mark { color: inherit; background: var(--mark); border-bottom: 2px solid var(--mark-edge);
  padding: 0 .15em; }
del { text-decoration: none; border-bottom: 2px dotted var(--edge); }
a { color: var(--link); }
@media (max-width: 600px) {
  main { padding: 1rem .8rem 3rem; }
  h1 { font-size: 1.35rem; }
  dl { grid-template-columns: minmax(5rem, max-content) 1fr; }
  dt { max-width: 8rem; }
  .signatures, .example { grid-template-columns: 1fr; gap: 0; }
  .signatures dt, .example dt { font-size: .85rem; margin-top: .4rem; max-width: none; }
}
@media print {
  @page { margin: 12mm; }
  main { max-width: none; padding: 0; }
  .wide { overflow: visible; background: none; }
  table { width: 100%; font-size: 7.5pt; }
  th, td { padding: .2rem .25rem; min-width: 0; max-width: none; }
  th { overflow-wrap: break-word; }
  .summary th { overflow-wrap: anywhere; }
  figure svg { min-width: 0; max-width: 100%; }
  figure, .example, tr { break-inside: avoid; }
  h2, h3, h4 { break-after: avoid; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
}
"""


def page(title: str, body: str) -> str:
    """A whole HTML document; ``body`` is HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )
