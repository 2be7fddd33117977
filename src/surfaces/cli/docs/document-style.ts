/** The style sheet of the documents in a browser. It follows the light or dark theme of the system. */
export const documentStyle = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#ffffff, #16191b);
  --raised: light-dark(#f4f6f5, #1f2426);
  --line: light-dark(#d5dbd8, #3a4245);
  --ink: light-dark(#1c2321, #e6ebe9);
  --soft: light-dark(#55605c, #a4b0ac);
  --accent: light-dark(#0b6358, #6cc9b9);
  --mono: "Source Code Pro", Menlo, "Cascadia Mono", Consolas, monospace;
}
* { box-sizing: border-box; }
html { scroll-padding-top: 64px; }
body {
  margin: 0;
  background: var(--ground);
  color: var(--ink);
  font: 16px/1.6 "Noto Sans", -apple-system, BlinkMacSystemFont, "Segoe UI", "Liberation Sans", sans-serif;
}
a { color: var(--accent); text-underline-offset: 0.15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
main:focus { outline: none; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 8px; top: 8px; z-index: 2; padding: 8px; background: var(--ground); }
header {
  position: sticky;
  top: 0;
  z-index: 1;
  display: flex;
  gap: 16px;
  align-items: center;
  padding: 8px 16px;
  border-bottom: 1px solid var(--line);
  background: var(--raised);
}
.brand { color: var(--ink); font-weight: 600; font-size: 18px; text-decoration: none; }
form { flex: 1; max-width: 420px; min-width: 0; }
input {
  width: 100%;
  min-height: 40px;
  padding: 0 12px;
  border: 1px solid var(--soft);
  border-radius: 6px;
  background: var(--ground);
  color: var(--ink);
  font: inherit;
}
input::placeholder { color: var(--soft); opacity: 1; }
.to-pages { margin-left: auto; padding: 8px 0; }
.columns { display: flex; flex-direction: column; }
main { flex: 1; min-width: 0; max-width: 820px; padding: 8px 16px 48px; overflow-wrap: break-word; }
nav { padding: 16px; border-top: 1px solid var(--line); font-size: 15px; }
nav h2 { margin: 20px 0 4px; font-size: 15px; }
nav h3 { margin: 12px 0 2px; color: var(--soft); font-weight: 600; font-size: 13px; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li a { display: block; padding: 4px 8px; border-radius: 6px; color: var(--ink); text-decoration: none; }
nav li a:hover { background: var(--raised); text-decoration: underline; }
nav [aria-current] { background: var(--raised); color: var(--accent); font-weight: 600; }
h1 { margin: 24px 0 16px; font-size: 32px; line-height: 1.25; }
main h2 { margin: 40px 0 12px; font-size: 24px; line-height: 1.3; }
main h3 { margin: 28px 0 8px; font-size: 19px; line-height: 1.35; }
code { padding: 1px 4px; border-radius: 3px; background: var(--raised); font: 0.875em/1.5 var(--mono); }
pre { overflow-x: auto; margin: 16px 0; padding: 12px 16px; border: 1px solid var(--line); border-radius: 6px; background: var(--raised); }
pre code { padding: 0; background: none; font-size: 14px; }
.wide { overflow-x: auto; margin: 16px 0; }
table { border-collapse: collapse; font-size: 15px; }
th, td { padding: 6px 16px 6px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td { min-width: 120px; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; }
.picture { display: block; padding: 12px 16px; border: 1px dashed var(--line); border-radius: 6px; color: var(--soft); }
blockquote { margin: 16px 0; padding-left: 16px; border-left: 3px solid var(--line); color: var(--soft); }
.sections { margin-top: 16px; color: var(--soft); }
.sections ul { margin: 4px 0; }
.found { padding-left: 24px; }
.found p { margin: 0 0 16px; color: var(--soft); }
@media (min-width: 900px) {
  .columns { flex-direction: row; }
  .to-pages { display: none; }
  nav {
    order: -1;
    position: sticky;
    top: 57px;
    width: 280px;
    height: calc(100vh - 57px);
    overflow-y: auto;
    padding: 0 16px 24px;
    border-top: 0;
    border-right: 1px solid var(--line);
  }
  main { padding: 8px 48px 64px; }
}
`;
