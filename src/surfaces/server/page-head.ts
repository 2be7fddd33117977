import { escapeMarkup, type RunSummary } from "../../kernel/index.ts";
import { statusWords } from "../view/status-words.ts";

/** The element into which the script of the page draws. */
const emptyPage = '<div id="page"></div>';

/**
 * Adds the head of a run to the page: its title, id and status as elements, which the browser paints before it has loaded
 * the script, and its summary as JSON, with which the script begins.
 */
export function withRunHead(html: string, run: RunSummary): string {
  const { runId, title, agentId, status } = run;
  // The elements and classes are those that the script draws, so that nothing moves when it does.
  const head = `<div id="page"><header class="top"><a class="brand" href="/runs">reeve</a></header>
<main class="run" id="main"><header class="run-head">
<nav class="crumbs"><a href="/runs">Runs</a><span>/</span><code>${escapeMarkup(runId)}</code></nav>
<div class="run-title"><h1 class="cut">${escapeMarkup(title ?? agentId)}</h1></div>
<div class="facts-line"><span class="status">${statusWords[status]}</span></div>
</header></main></div>
<script type="application/json" id="run-summary">${scriptJson(run)}</script>`;
  return html.replace(emptyPage, () => head);
}

/** The script that loads the script of the page after the first paint. A page may be built without it. */
export const lateScript = "/after-paint.js";

const pageScript = /<script type="module"[^>]* src="(?<path>[^"]+)"><\/script>/u;

/** The page whose script is loaded after the browser has painted. */
export function withLateScript(html: string): string {
  return html.replace(
    pageScript,
    (_, path: string) => `<script type="module" src="${lateScript}" data-page="${path}"></script>`,
  );
}

/** JSON that can end no element and starts no comment. */
function scriptJson(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", String.raw`\u003c`);
}
