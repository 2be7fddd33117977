// The server puts this script into the page of a run, in the place of the page's script (`page-head.ts`). It loads that
// script after the browser has painted the head of the run. Loading and parsing it earlier delays the first paint of
// `npm run bench -- page` by a tenth. A hidden tab paints nothing, so it does not wait.

const { page } = document.querySelector<HTMLScriptElement>("script[data-page]")?.dataset ?? {};
if (page === undefined) throw new Error("the script of the page is missing: expected an attribute data-page");

const load = (): void => void import(/* @vite-ignore */ page);
if (document.hidden) load();
else requestAnimationFrame(() => setTimeout(load));
