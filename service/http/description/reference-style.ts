/** The style sheet of the reference. */
export const REFERENCE_STYLE = `
:root { color-scheme: light dark; --line: #d5d9df; --quiet: #5a6472; --code: #f3f5f8; --link: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a4048; --quiet: #a4adba; --code: #20252c; --link: #8ab4f8; }
}
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; display: grid;
  grid-template-columns: 17rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem 1.25rem;
  border-right: 1px solid var(--line); font-size: .875rem; }
nav p { margin: 1rem 0 .25rem; font-weight: 600; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { margin: .2rem 0; }
main { padding: 1.5rem 2.5rem 6rem; max-width: 62rem; }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
main :is(p, li) a { text-decoration: underline; }
h2 { margin-top: 3.5rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
section { margin-top: 2.5rem; }
h3 { margin-bottom: .25rem; }
h4 { margin: 1.25rem 0 .5rem; }
.path { margin: 0 0 .75rem; }
.quiet { color: var(--quiet); font-size: .875rem; }
code { font: .875em ui-monospace, monospace; background: var(--code); padding: .1em .3em; border-radius: 3px;
  overflow-wrap: anywhere; }
pre { background: var(--code); padding: .9rem 1rem; overflow: auto; border-radius: 6px;
  font: .8125rem/1.5 ui-monospace, monospace; }
pre code { background: none; padding: 0; font-size: 1em; overflow-wrap: normal; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .9375rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0;
  border-bottom: 1px solid var(--line); }
td:first-child code { white-space: nowrap; overflow-wrap: normal; }
th { font-weight: 600; color: var(--quiet); font-size: .8125rem; }
details { margin: .4rem 0; padding: .35rem .75rem; border: 1px solid var(--line); border-radius: 6px; }
summary { cursor: pointer; }
@media (max-width: 50rem) {
  body { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); }
  main { padding: 1rem 1.25rem 4rem; }
  table { display: block; overflow-x: auto; }
}
@media print { nav { display: none; } body { display: block; } }
`;
