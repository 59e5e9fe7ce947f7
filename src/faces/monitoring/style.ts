/** The style sheet of all pages that need no console, light and dark. */
export const docsStyle = `
:root { color-scheme: light dark; --line: light-dark(#dde1e6, #343a42); --soft: light-dark(#f4f6f8, #1e232a); --accent: light-dark(#8a3b12, #f0a878); --quiet: light-dark(#55606d, #9aa5b1); --good: light-dark(#1b6b3a, #7fd0a0); --bad: light-dark(#a01c2c, #ff9b9b); }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 60rem; font: 16px/1.5 system-ui, sans-serif; background: light-dark(#fff, #14171b); color: light-dark(#1a1f25, #e6eaee); }
body:has(.columns) { max-width: 84rem; }
.skip { position: absolute; top: -10rem; padding: .5rem 1rem; background: var(--soft); }
.skip:focus { top: .5rem; }
main:focus { outline: none; }
h1 { margin-top: 0; }
h1 a { color: inherit; text-decoration: none; }
h1 small { font-size: .5em; color: var(--quiet); font-weight: normal; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
a { color: var(--accent); overflow-wrap: break-word; }
code { font: .9em ui-monospace, monospace; overflow-wrap: break-word; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: .5rem; padding: .75rem; overflow-x: auto; margin: .5rem 0; }
pre code { overflow-wrap: break-word; white-space: pre-wrap; }
main details pre { max-height: 32rem; overflow-y: auto; }
.pick { user-select: all; }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 1rem 0; }
.card p { margin: .25rem 0; }
.state { border-left: 4px solid var(--accent); background: var(--soft); padding: .6rem .9rem; }
.state.ok { border-color: var(--good); }
.links { display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: 0 .75rem; }
details[open] { padding-bottom: .75rem; }
summary { cursor: pointer; padding: .6rem 0; }
main summary { display: grid; grid-template-columns: 1rem 4.2rem minmax(0, 1fr); list-style: none; gap: 0 .5rem; align-items: baseline; }
main details > summary::before { content: '▸'; grid-row: 1; color: var(--quiet); }
main details[open] > summary::before { content: '▾'; }
.schema { margin: 1.5rem 0; }
.schema h3, .card h3 { font-size: 1.05rem; margin: 0 0 .5rem; }
.schema:target h3 { color: var(--accent); }
main summary b { color: var(--accent); font-size: .85em; }
main summary b.get { color: var(--good); }
main summary b.delete { color: var(--bad); }
main summary span { grid-column: 3; color: var(--quiet); }
details:target { border-color: var(--accent); padding-bottom: .75rem; }
@supports selector(::details-content) {
  details:target::details-content { content-visibility: visible; block-size: auto; }
  main details:target > summary::before { content: '▾'; }
}
ul.fields { margin: .25rem 0; padding-left: .9rem; border-left: 2px solid var(--line); list-style: none; }
ul.fields li { margin: .3rem 0; }
.either { margin: .25rem 0 .25rem .9rem; }
.either p { margin: 0; color: var(--quiet); font-size: .9em; }
i { color: var(--quiet); font-style: normal; font-size: .9em; overflow-wrap: anywhere; }
em { color: var(--accent); font-style: normal; font-size: .8em; }
.scope { color: var(--quiet); margin: .25rem 0; }
.contents ul { list-style: none; padding-left: .75rem; margin: .25rem 0; }
.contents > ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding-left: 0; }
.contents a { text-decoration: none; overflow-wrap: break-word; }
.contents ul ul { display: none; font-size: .85em; }
.contents ul ul b { color: var(--quiet); font-weight: normal; font-size: .85em; }
@media (min-width: 64rem) {
  .columns { display: grid; grid-template-columns: 19rem minmax(0, 1fr); gap: 2rem; }
  .contents > ul { display: block; position: sticky; top: 1rem; max-height: calc(100vh - 2rem); overflow-y: auto; margin: 0; border: 1px solid var(--line); border-radius: .5rem; padding: .75rem; }
  .contents ul ul { display: block; }
}
@media (max-width: 40rem) { body { padding: 1rem; } main summary { grid-template-columns: 1rem 3.6rem minmax(0, 1fr); } main summary span { grid-column: 1 / -1; } }
@media (min-width: 40rem) { p:not(.also) > code { white-space: nowrap; } }
@media print { .contents { display: none; } }
`;
